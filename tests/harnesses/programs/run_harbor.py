"Results of Harbor's trials and of the job, by its own models, as its job ends"

import uuid
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harbor.metrics.mean import Mean
from harbor.models.agent.context import AgentContext
from harbor.models.job.result import JobResult, JobStats
from harbor.models.task.id import LocalTaskId
from harbor.models.trial.config import AgentConfig, TaskConfig, TrialConfig
from harbor.models.trial.result import (
    AgentInfo,
    ExceptionInfo,
    ModelInfo,
    TimingInfo,
    TrialResult,
)
from harbor.models.verifier.result import VerifierResult

START = datetime(2026, 1, 1, tzinfo=UTC)
TRIALS = [  # reward, and what went wrong
    *((1, None), (1, None), (0, None), (0.5, None)),
    *((0, "ApiRateLimitError"), (0, "AgentTimeoutError"), (None, "SomethingElseError")),
]


def trial(number, reward, error):
    "One trial as Harbor keeps it"
    task = f"t{number}"
    name = f"{task}__x"
    failure = None
    if error:
        failure = ExceptionInfo(
            exception_type=error,
            exception_message="it failed",
            exception_traceback="Traceback",
            occurred_at=START,
        )
    agent = AgentConfig(name="terminus-2", model_name="openai/m")
    place = TaskConfig(path=Path("tasks") / task, source="exam")
    rewards = None if reward is None else VerifierResult(rewards={"reward": reward})
    return TrialResult(
        id=uuid.uuid5(uuid.NAMESPACE_URL, name),
        task_name=task,
        trial_name=name,
        trial_uri=f"file:///jobs/{name}",
        task_id=LocalTaskId(path=Path("tasks") / task),
        source="exam",
        task_checksum=task.ljust(64, "0"),
        config=TrialConfig(task=place, trial_name=name, agent=agent),
        agent_info=AgentInfo(
            name="terminus-2",
            version="2.0",
            model_info=ModelInfo(name="m", provider="openai"),
        ),
        agent_result=AgentContext(n_input_tokens=100, n_output_tokens=20),
        verifier_result=rewards,
        exception_info=failure,
        started_at=START,
        finished_at=START + timedelta(seconds=60),
        agent_execution=TimingInfo(started_at=START, finished_at=START),
    )


done = [trial(number, *kind) for number, kind in enumerate(TRIALS)]
for one in done:
    folder = Path("jobs/job") / one.trial_name
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(one.model_dump_json())
stats = JobStats.from_trial_results(done, n_total_trials=len(done))
rewards = defaultdict(list)
for one in done:
    key = JobStats.format_agent_evals_key("terminus-2", "m", "exam")
    if one.reward_valid and one.verifier_result is not None:
        rewards[key].append(one.verifier_result.rewards)
for key, own in rewards.items():
    stats.evals[key].metrics.append(Mean().compute(own))
job = JobResult(
    id=uuid.uuid4(), started_at=START, n_total_trials=len(done), stats=stats
)
text = job.model_dump_json(exclude={"trial_results"})
Path("jobs/job/result.json").write_text(text)

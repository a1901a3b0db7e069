"""What the plug-in takes from Inspect is there and is called as it was. When this fails
after an upgrade: `nbs/live/in_inspect.ipynb` uses these names, the first two, which
are not public, in `load_original` alone. `HARNESSES=folder` tries another version."""

import json

from helpers.harnesses import PYTHON, call, needed

NAMES = {  # module:name -> parameters that we pass or are given
    "inspect_ai._eval.loader:load_tasks": ["task_specs", "task_args"],
    "inspect_ai._eval.task.constants:TASK_FILE_ATTR": None,
    "inspect_ai:task_with": ["task", "dataset", "early_stopping", "name"],
    "inspect_ai:SampleSource.from_samples": ["next_samples", "sample_complete"],
    "inspect_ai.util:registry_info": ["o"],
    "inspect_ai.util:EarlyStop": ["id", "epoch", "reason"],
    "inspect_ai.util:EarlyStopping.start_task": ["self", "task", "samples", "epochs"],
    "inspect_ai.util:EarlyStopping.schedule_sample": ["self", "id", "epoch"],
    "inspect_ai.util:EarlyStopping.complete_sample": ["self", "id", "epoch", "scores"],
    "inspect_ai.util:EarlyStopping.complete_task": ["self"],
    "inspect_ai.hooks:Hooks.on_task_start": ["self", "data"],
    "inspect_ai.hooks:TaskStart": ["eval_id"],
    "inspect_ai.hooks:SampleEnd": ["eval_id", "sample"],
    "inspect_ai.hooks:TaskEnd": ["eval_id", "log"],
    "inspect_ai.log:edit_eval_log": ["log", "edits", "provenance"],
    "inspect_ai.log:write_eval_log_async": ["log", "location", "header_only"],
}
LOOK = """
import inspect, json, sys
from importlib import import_module
from operator import attrgetter
found = {}
for place in json.loads(sys.argv[1]):
    module, _, name = place.partition(":")
    try:
        one = attrgetter(name)(import_module(module))
        found[place] = [*inspect.signature(one).parameters] if callable(one) else None
    except (ImportError, AttributeError) as error:
        found[place] = str(error)
from inspect_ai.scorer import match
from inspect_ai.util import registry_info
metrics = registry_info(match()).metadata["metrics"]
found["metrics"] = [registry_info(one).name for one in metrics]
print(json.dumps(found))
"""


@needed
def test_inspect_has_the_names_that_the_plugin_calls(tmp_path):
    found = json.loads(call(PYTHON, "-c", LOOK, json.dumps([*NAMES]), cwd=tmp_path))
    assert found.pop("metrics") == ["inspect_ai/accuracy", "inspect_ai/stderr"]
    for place, wanted in NAMES.items():
        there = found[place]
        same = there is None if wanted is None else {*wanted} <= {*(there or [])}
        assert same and not isinstance(there, str), (place, wanted, there)

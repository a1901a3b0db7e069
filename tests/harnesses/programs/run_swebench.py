"swebench's own report over instances of every kind, in the folder where it is called"

import json

from swebench.harness.constants import RUN_EVALUATION_LOG_DIR as LOGS
from swebench.harness.reporting import make_run_report

KINDS = "resolved resolved unresolved empty never no_report broken unresolved".split()
names = [f"django__django-1109{n}" for n in range(len(KINDS))]
predictions = {}
for name, kind in zip(names, KINDS, strict=True):
    if kind == "never":
        continue
    patch = "" if kind == "empty" else "diff"
    predictions[name] = {
        "instance_id": name,
        "model_name_or_path": "org/agent",
        "model_patch": patch,
    }
    if kind == "empty":
        continue
    folder = LOGS / "one" / "org__agent" / name
    folder.mkdir(parents=True)
    (folder / "run_instance.log").write_text("ran\n")
    (folder / "test_output.txt").write_text("tests\n")
    report = {
        "patch_is_None": False,
        "patch_exists": True,
        "patch_successfully_applied": True,
        "resolved": kind == "resolved",
        "tests_status": {},
    }
    text = json.dumps({name: report})
    if kind != "no_report":
        (folder / "report.json").write_text(text[:20] if kind == "broken" else text)
data = [{"instance_id": name} for name in names]
make_run_report(predictions, data, "one", report_dir="reports")

"""Score language models and agents on a few benchmark items."""

__version__ = "0.1.0"

# where each name lives; imported when it is first used, so that `import benchnb` is fast
_HOME = {
    "Scores": "data.scores",
    "load": "data.sources",
    "load_table": "data.sources",
    "data_sets": "data.sources",
    "Method": "evaluation.method",
    "Coreset": "evaluation.method",
    "Estimate": "evaluation.method",
    "param": "evaluation.method",
    "register": "evaluation.registry",
    "get_method": "evaluation.registry",
    "list_methods": "evaluation.registry",
    "check_method": "evaluation.checks",
    "simulate": "evaluation.simulate",
    "PerTask": "evaluation.per_task",
    "compare": "evaluation.compare",
    "Comparison": "evaluation.compare",
    "recommend": "evaluation.recommend",
    "Advice": "evaluation.recommend",
    "Evaluation": "live.evaluation",
    "paired": "live.paired",
    "gate": "live.gate",
    "race": "live.race",
    "audit": "live.audit",
    "publish": "live.bundles",
    "load_bundle": "live.bundles",
    "Harness": "harnesses.harness",
    "check_harness": "harnesses.checks",
}
__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'benchnb' has no attribute {name!r}")
    from importlib import import_module

    from benchnb.evaluation.method import document_example, document_parameters

    found = getattr(import_module(f"benchnb.{_HOME[name]}"), name)
    return document_example(document_parameters(found, members=True))


def __dir__():
    return [*globals(), *_HOME]

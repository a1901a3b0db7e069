"""Score language models and agents on a few benchmark items."""

__version__ = "0.1.0"

# where each name lives; imported when it is first used, so that `import benchnb` is fast
_HOME = {
    "Scores": "data.scores",
    "load": "data.sources",
    "data_sets": "data.sources",
    "load_table": "data.sources",
    "Estimate": "evaluation.method",
    "Method": "evaluation.method",
    "Coreset": "evaluation.method",
    "register": "evaluation.registry",
    "get_method": "evaluation.registry",
    "list_methods": "evaluation.registry",
    "simulate": "evaluation.simulate",
    "compare": "evaluation.compare",
    "summary": "evaluation.compare",
    "recommend": "studies.recommend",
    "Advice": "studies.recommend",
    "PerTask": "evaluation.per_task",
    "Evaluation": "live.evaluation",
}
__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'benchnb' has no attribute {name!r}")
    from importlib import import_module

    from benchnb.evaluation.method import documented

    found = getattr(import_module(f"benchnb.{_HOME[name]}"), name)
    return documented(found, members=True)


def __dir__():
    return [*globals(), *_HOME]

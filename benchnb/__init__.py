"""Score language models on few benchmark items."""

__version__ = "0.1.0"

# Names are imported when they are first used, so that `import benchnb` is fast.
# `compare` is not among them: it is the name of a module, benchnb.compare.compare.
_HOME = {
    "Scores": "data.scores",
    "Estimate": "evaluation.method",
    "Method": "evaluation.method",
    "Coreset": "evaluation.method",
    "PerTask": "evaluation.method",
    "Session": "evaluation.method",
    "simulate": "evaluation.method",
    "register": "evaluation.method",
    "get_method": "evaluation.method",
    "list_methods": "evaluation.method",
    "load": "data.sources",
    "data_sets": "data.sources",
    "load_table": "data.tables",
}
__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'benchnb' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"benchnb.{_HOME[name]}"), name)


def __dir__():
    return [*globals(), *_HOME]

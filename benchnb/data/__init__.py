from . import splits, tables  # noqa: F401  (they add methods to Scores)

"Tables of scores; this import adds `split` and `from_long` to `Scores`"

from . import splits, tables  # noqa: F401

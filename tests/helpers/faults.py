"What a gate says when it fails"

import pytest


def none_of(faults, remedy):
    "Fail with all faults at once, and what to do about them"
    faults = list(faults)
    if faults:
        pytest.fail("\n  ".join([remedy, *map(str, faults)]), pytrace=False)

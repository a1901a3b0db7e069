"""What the chapter on genetic search does not show: a slow reference, kills, files"""

import subprocess
import sys

import numpy as np
import pytest

from benchnb.stats.genetic_search import (
    Search,
    SearchSettings,
    draw_subsets,
    genetic_search,
    next_generation,
    positions_to_masks,
)

VALUE = np.random.default_rng(7).random(30)
SMALL = SearchSettings(population=20, generations=25, elite=3)


def total_value(masks, rng):
    "The sum of the values of the chosen items"
    return masks @ VALUE


def some_masks(count=12, total=30, size=6, seed=0):
    rng = np.random.default_rng(seed)
    return positions_to_masks(
        [rng.choice(total, size, False) for _ in range(count)], total
    )


# Against loops that say what is meant ---------------------------------------------


def slow_generation(masks, fitness, size, settings, rng):
    "One generation bit by bit, with the same random numbers"
    count, total = len(masks) - settings.elite, masks.shape[1]
    order = sorted(range(len(masks)), key=lambda one: (-fitness[one], one))
    parents = []
    for rivals in rng.integers(len(masks), size=(2 * count, settings.rivals)):
        best = rivals[0]
        for rival in rivals[1:]:
            best = rival if fitness[rival] > fitness[best] else best
        parents.append(best)
    uniforms = rng.integers(2, size=(count, total), dtype=np.uint8)
    children = []
    for child, uniform in enumerate(uniforms):
        a, b = masks[parents[child]], masks[parents[count + child]]
        bits = zip(a, b, uniform, strict=True)
        children.append([(x and c == 1) or (y and c == 0) for x, y, c in bits])
    for places in rng.integers(total, size=(settings.flips, count)):
        for child, place in zip(children, places, strict=True):
            child[place] = not child[place]
    keys = rng.random((count, total), dtype=np.float32)
    for child, key in zip(children, keys, strict=True):
        ones = [place for place in range(total) if child[place]]
        zeros = [place for place in range(total) if not child[place]]
        while len(ones) > size:  # those with the smallest keys go
            ones.remove(min(ones, key=lambda place: key[place]))
        while len(ones) < size:  # those with the largest keys come
            ones.append(max(zeros, key=lambda place: key[place]))
            zeros.remove(ones[-1])
        child[:] = [place in ones for place in range(total)]
    return np.array([*masks[order[: settings.elite]], *children], dtype=bool)


@pytest.mark.equation("essence_bench", "genetic search")
@pytest.mark.parametrize("seed", range(5))
def test_a_generation_is_that_of_the_slow_reference(seed):
    masks = some_masks(seed=seed)
    fitness = np.random.default_rng(seed).integers(5, size=12) / 5  # with ties
    settings = SearchSettings(population=12, elite=2, flips=3)
    fast = next_generation(masks, fitness, 6, settings, np.random.default_rng(seed))
    slow = slow_generation(masks, fitness, 6, settings, np.random.default_rng(seed))
    assert (fast == slow).all()


# The search -----------------------------------------------------------------------


def test_subsets_are_distinct_items_and_all_items_are_likely():
    subsets = draw_subsets(20, 7, 3000, np.random.default_rng(0))
    assert all(len(set(row)) == 7 for row in subsets)
    share = np.bincount(subsets.ravel(), minlength=20) / 3000
    np.testing.assert_allclose(share, 7 / 20, atol=0.04)
    assert draw_subsets(5, 5, 100, np.random.default_rng(0)).tolist() == [[*range(5)]]


def test_it_finds_what_sorting_finds_and_beats_random_subsets():
    found = genetic_search(total_value, 30, 6, SearchSettings(40, 120, 4))
    assert found.items.tolist() == sorted(np.argsort(-VALUE)[:6])
    assert found.fitness == pytest.approx(np.sort(VALUE)[-6:].sum())
    drawn = positions_to_masks(
        draw_subsets(30, 6, 121 * 40, np.random.default_rng(0)), 30
    )
    assert found.fitness >= total_value(drawn, None).max()


@pytest.mark.parametrize("at", [0, 3, 24, 25])
def test_a_search_killed_anywhere_ends_as_if_it_had_not_been(at, tmp_path):
    calls = []

    def noisy(masks, rng):
        calls.append(1)
        if len(calls) == at + 1:
            raise KeyboardInterrupt
        return masks @ VALUE + rng.normal(0, 0.1, len(masks))

    with pytest.raises(KeyboardInterrupt):
        genetic_search(noisy, 30, 6, SMALL, 3, folder=tmp_path, every=4)
    again = genetic_search(noisy, 30, 6, SMALL, 3, folder=tmp_path, every=4)
    whole = genetic_search(noisy, 30, 6, SMALL, 3)
    for one, other in zip(again, whole, strict=True):
        np.testing.assert_array_equal(one, other)
    number = len(calls)  # a finished search is only read
    genetic_search(noisy, 30, 6, SMALL, 3, folder=tmp_path, every=4)
    assert len(calls) == number
    genetic_search(noisy, 30, 6, SMALL, 3, folder=tmp_path, key="another fitness")
    assert len(list(tmp_path.glob("search-*.npz"))) == 2


def test_a_killed_process_loses_nothing(tmp_path):
    script = """
import os, signal, sys
import numpy as np
from benchnb.stats.genetic_search import SearchSettings, genetic_search
value, calls = np.random.default_rng(7).random(30), []
def fitness(masks, rng):
    calls.append(1)
    if len(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return masks @ value
settings = SearchSettings(population=20, generations=25, elite=3)
found = genetic_search(fitness, 30, 6, settings, folder=sys.argv[1], every=5)
print(len(calls), found.items.tolist())
"""
    run = [sys.executable, "-c", script, str(tmp_path)]
    assert subprocess.run([*run, "18"]).returncode == -9
    done = subprocess.run([*run, "0"], capture_output=True, text=True, check=True)
    calls, items = done.stdout.split(" ", 1)
    assert int(calls) == 26 - 16  # generation 15 was the last one written
    assert items.strip() == str(
        genetic_search(total_value, 30, 6, SMALL).items.tolist()
    )


def test_damaged_files_and_wrong_settings_are_named(tmp_path):
    genetic_search(total_value, 30, 6, SMALL, folder=tmp_path)
    path = next(tmp_path.glob("*.npz"))
    data = path.read_bytes()
    for bad in (b"", b"nonsense", data[:200]):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match="is no state of a search: remove it"):
            genetic_search(total_value, 30, 6, SMALL, folder=tmp_path)
    path.write_bytes(data)
    assert Search.load(path).generation == 25
    for size in (0, 31):
        with pytest.raises(ValueError, match="size must lie in"):
            genetic_search(total_value, 30, size)
    for wrong in ({"population": 1}, {"rivals": 0}, {"flips": -1}, {"elite": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            SearchSettings(**wrong)

"""Sorted keys against a sorted list, with buckets small enough to split and vanish."""

from __future__ import annotations

import random

import pytest

from dray.store import Key
from dray.store import sorted_keys as module
from dray.store.sorted_keys import SortedKeys


def key(number: int) -> Key:
    return Key("r", f"{number // 10:03}", f"{number % 10}")


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_a_sorted_list(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(module, "BUCKET", 4)
    dice = random.Random(seed)
    twin = {key(n) for n in dice.sample(range(300), 40)}
    keys = SortedKeys(twin)
    for _ in range(600):
        chosen = key(dice.randrange(300))
        if chosen not in twin:
            keys.add(chosen)
            twin.add(chosen)
        elif dice.random() < 0.6:
            keys.remove(chosen)
            twin.discard(chosen)
        start, stop = sorted((key(dice.randrange(310)), key(dice.randrange(310))))
        expected = [k for k in sorted(twin) if start <= k < stop]
        limit = dice.choice([None, 1, 7, 100])
        assert keys.slice(start, stop, limit) == expected[:limit]
        assert keys.count(start, stop) == len(expected)


def test_it_can_be_emptied_and_filled_again() -> None:
    keys = SortedKeys()
    for _ in range(2):
        keys.add(key(1))
        assert keys.count(key(0), key(9)) == 1
        keys.remove(key(1))
        assert keys.slice(key(0), key(9)) == []

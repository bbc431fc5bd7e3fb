"""The sorted index against a sorted list, with buckets small enough to split and vanish."""

from __future__ import annotations

import random

import pytest

from dray.store import Key, Record
from dray.store import index as index_module
from dray.store.index import SortedIndex


def key(number: int) -> Key:
    return Key("r", f"{number // 10:03}", f"{number % 10}")


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_a_sorted_list(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(index_module, "BUCKET", 4)
    dice = random.Random(seed)
    twin = {key(n): Record(key(n), 1, 1, b"") for n in dice.sample(range(300), 40)}
    index = SortedIndex(twin.values())
    for revision in range(2, 600):
        chosen = key(dice.randrange(300))
        if chosen in twin and dice.random() < 0.6:
            index.remove(chosen)
            del twin[chosen]
        else:
            twin[chosen] = Record(chosen, revision, revision, b"")
            index.put(twin[chosen])
        start, stop = sorted((key(dice.randrange(310)), key(dice.randrange(310))))
        expected = [twin[k] for k in sorted(twin) if start <= k < stop]
        limit = dice.choice([None, 1, 7, 100])
        assert index.slice(start, stop, limit) == expected[:limit]
        assert index.count(start, stop) == len(expected)


def test_it_can_be_emptied_and_filled_again() -> None:
    index = SortedIndex()
    for _ in range(2):
        index.put(Record(key(1), 1, 1, b""))
        assert index.count(key(0), key(9)) == 1
        index.remove(key(1))
        assert index.slice(key(0), key(9)) == []

"""Collections of garbage look at what is young alone (issue 21)."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from dray.process import garbage


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


class Cycle:
    """Something that holds itself."""

    def __init__(self) -> None:
        self.itself = self


def test_what_was_loaded_is_not_looked_at_again_and_what_is_young_is() -> None:
    with garbage.loading():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 1000
    before = [one["collections"] for one in gc.get_stats()]
    freed = sum(one["collected"] for one in gc.get_stats())
    kept: list[list[int]] = []
    for _ in range(20 * garbage.THRESHOLDS[0]):
        Cycle()
        kept.append([])
    young, older, oldest = (one["collections"] for one in gc.get_stats())
    assert young > before[0]
    assert older > before[1]
    assert oldest == before[2]
    assert sum(one["collected"] for one in gc.get_stats()) - freed > 19 * garbage.THRESHOLDS[0]


def test_no_look_takes_more_objects_than_a_turn_has_time_for() -> None:
    """What survives the first look is looked at once more, together with what came since: 2 million in a second."""
    first, second, last = garbage.THRESHOLDS
    assert first * (second + 2) <= 15_000
    assert last >= 1_000_000

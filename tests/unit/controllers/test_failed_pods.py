"""How long failed pods stay, and what it costs to count them."""

from __future__ import annotations

from dray.api.generated.apps import StatefulSet
from dray.api.meta import ObjectMeta
from dray.controllers.failed_pods import FailedPods
from work import lines_run


def workload(generation: int) -> StatefulSet:
    return StatefulSet(metadata=ObjectMeta(name="w", uid="uid-w", generation=generation))


def test_failures_count_by_place_and_a_changed_workload_starts_anew() -> None:
    failed = FailedPods(lambda: 0.0)
    for _ in range(3):
        failed.count(workload(1), 7)
    failed.count(workload(1), 8)
    assert [failed.wait(workload(1), place) for place in (7, 8, 9)] == [4.0, 1.0, 0.0]
    assert failed.wait(workload(2), 7) == 0.0
    failed.count(workload(2), 8)
    assert [failed.wait(workload(2), place) for place in (7, 8)] == [0.0, 1.0]
    failed.forget(workload(2))
    assert failed.wait(workload(2), 8) == 0.0


def test_a_failure_costs_the_same_however_many_others_there_were() -> None:
    def lines(others: int) -> int:
        failed = FailedPods(lambda: 0.0)
        for place in range(others):
            failed.count(workload(1), place)
        return lines_run(lambda: failed.count(workload(1), -1)).total()

    assert lines(1_000) == lines(10)

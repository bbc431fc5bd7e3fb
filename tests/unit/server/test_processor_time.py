"""How long expressions may take: processor time of their own thread counts, and nothing else."""

from __future__ import annotations

import time
from typing import Any

import pytest

from dray import cel
from dray.server import processor_time
from dray.server.admission.slow_policies import TookTooLong, within_time
from dray.server.engine import Call


class Clocks:
    """What the thread has used, and what time it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.used = self.now = 100.0
        monkeypatch.setattr(time, "thread_time", lambda: self.used)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def test_time_that_others_take_does_not_count(clocks: Clocks) -> None:
    more = processor_time.allowance()
    clocks.now += 3600
    clocks.used += processor_time.MOST_SECONDS - 0.1
    assert more() == processor_time.STEPS


def test_what_is_used_up_ends_the_evaluation(clocks: Clocks) -> None:
    more = processor_time.allowance()
    clocks.used += processor_time.MOST_SECONDS
    with pytest.raises(cel.OutOfTime):
        more()


def test_a_policy_that_uses_all_its_time_has_failed(clocks: Clocks) -> None:
    def evaluate(budget: cel.Budget) -> None:
        clocks.used += processor_time.MOST_SECONDS
        budget.more()

    with pytest.raises(TookTooLong, match="its expressions took more than 5 seconds"):
        within_time(a_call(), evaluate)


def test_all_policies_for_one_request_have_so_much_together(clocks: Clocks) -> None:
    call, seconds = a_call(), processor_time.MOST_SECONDS - 1

    def evaluate(budget: cel.Budget) -> None:
        clocks.used += seconds
        budget.more()

    within_time(call, evaluate)
    within_time(call, evaluate)
    with pytest.raises(TookTooLong, match="all policies for one request may take 10 seconds"):
        within_time(call, evaluate)
    seconds = 0.0
    with pytest.raises(TookTooLong):
        within_time(call, evaluate)
    within_time(a_call(), evaluate)


def a_call() -> Call:
    nothing: Any = None
    return Call(nothing, nothing, nothing)

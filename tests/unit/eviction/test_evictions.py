"""Rates, deadlines and cancellation with a clock that only the test moves."""

from collections.abc import Iterable

import pytest

from dray.eviction import Cause, Evictions, Limiter

START = 1_000_000.0


def run(evictions: Evictions[str], until: float, start: float = START) -> dict[str, float]:
    """When each pod was evicted, in seconds after the start."""
    taken: dict[str, float] = {}
    now = start
    while True:
        for pod, _ in evictions.take(now):
            taken[pod] = now - start
        following = evictions.next_time(now)
        if following is None or following > start + until:
            return taken
        now = max(following, now)


def plan(pods: Iterable[str], *causes: Cause) -> Evictions[str]:
    evictions: Evictions[str] = Evictions()
    for pod in pods:
        evictions.set(pod, {cause.taint: cause for cause in causes}, START)
    return evictions


def names(count: int) -> list[str]:
    return [f"p{number:03}" for number in range(count)]


@pytest.mark.req("5055-91", "5055-133")
def test_ten_at_once_then_the_default_rate() -> None:
    taken = run(plan(names(30), Cause(1, START, 10)), 60)
    assert [taken[pod] for pod in names(10)] == [0.0] * 10
    assert [round(taken[pod], 3) for pod in names(30)[10:]] == [round((n - 10) / 10, 3) for n in range(11, 31)]


@pytest.mark.req("5055-90", "5055-132", "5055-133")
def test_an_explicit_rate() -> None:
    taken = run(plan(names(100), Cause(1, START, 5)), 60)
    assert round(max(taken.values()), 3) == 18.0


@pytest.mark.req("5055-92", "5055-93", "5055-132")
def test_the_fastest_of_several_taints_wins() -> None:
    taken = run(plan(names(110), Cause(1, START, 1), Cause(2, START, 100)), 600)
    assert len(taken) == 110
    assert max(taken.values()) <= 1.0


@pytest.mark.req("5055-90", "5055-132")
def test_different_pods_under_different_taints_do_not_share_a_rate() -> None:
    evictions: Evictions[str] = Evictions()
    for number, pod in enumerate(names(60)):
        taint = number % 2
        evictions.set(pod, {taint: Cause(taint, START, (10, 40)[taint])}, START)
    taken = run(evictions, 60)
    slow = [moment for number, moment in enumerate(taken[pod] for pod in names(60)) if number % 2 == 0]
    fast = [moment for number, moment in enumerate(taken[pod] for pod in names(60)) if number % 2 == 1]
    assert (round(max(slow), 3), round(max(fast), 3)) == (2.0, 0.5)


@pytest.mark.req("5055-88")
def test_nobody_leaves_before_its_time() -> None:
    taken = run(plan(["a"], Cause(1, START + 10, 10)), 60)
    assert taken == {"a": 10.0}


@pytest.mark.req("5055-95")
def test_removing_the_cause_cancels_what_is_left() -> None:
    evictions = plan(names(200), Cause(1, START, 10, "rule"))
    first = run(evictions, 2)
    assert len(first) == 30
    for pod in names(200):
        if pod not in first:
            assert evictions.set(pod, {}, START + 2) is True
    assert run(evictions, 600, START + 2) == {}
    assert evictions.progress("rule") == (0, 30)


@pytest.mark.req("5055-94")
def test_limiters_are_dropped_when_idle() -> None:
    evictions = plan(names(5), Cause(1, START, 10))
    assert evictions.active_limiters == 0
    run(evictions, 1)
    assert evictions.active_limiters == 1
    evictions.take(START + 5)
    assert evictions.active_limiters == 0
    assert len(evictions) == 0


@pytest.mark.req("5055-80", "5055-96")
def test_a_changed_rate_acts_at_once_and_does_not_start_anew() -> None:
    evictions = plan(names(100), Cause(1, START, 1, "rule"))
    slow = run(evictions, 5)
    assert len(slow) == 15
    for pod in names(100):
        if pod not in slow:
            evictions.set(pod, {1: Cause(1, START, 1000, "rule")}, START + 5)
    fast = run(evictions, 1, START + 5)
    assert len(fast) == 85
    assert max(fast.values()) < 0.2
    assert evictions.progress("rule") == (0, 100)


def test_setting_the_same_causes_again_changes_nothing() -> None:
    evictions = plan(["a"], Cause(1, START + 5, 10))
    assert evictions.set("a", {1: Cause(1, START + 5, 10)}, START) is False
    assert run(evictions, 60) == {"a": 5.0}


def test_a_cause_that_moves_its_time_moves_the_eviction() -> None:
    evictions = plan(["a"], Cause(1, START + 5, 10))
    evictions.set("a", {1: Cause(1, START + 20, 10)}, START)
    assert run(evictions, 60) == {"a": 20.0}


@pytest.mark.parametrize("rate", [-5, 0, 1])
def test_a_rate_below_one_is_one(rate: int) -> None:
    limiter = Limiter(rate)
    for _ in range(10):
        limiter.take(0.0)
    assert limiter.free_at(0.0) == 1.0


def test_a_huge_rate_does_not_overflow() -> None:
    taken = run(plan(names(500), Cause(1, START, 2**62)), 60)
    assert len(taken) == 500
    assert max(taken.values()) < 0.01

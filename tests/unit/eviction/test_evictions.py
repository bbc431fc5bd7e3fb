"""Rates, deadlines and cancellation with a clock that only the test moves."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.eviction import Cause, Evictions, Limiter
from work import Counts, lines_run

START = 1_000_000.0


def run(evictions: Evictions[str], until: float, start: float = START) -> dict[str, float]:
    """When each pod was evicted, in seconds after the start. Both clocks show the same."""
    taken: dict[str, float] = {}
    now = start
    while True:
        for pod, _ in evictions.take(now, now):
            taken[pod] = now - start
            evictions.finish(pod)
        following = evictions.wait(now, now)
        if following is None or now + following > start + until:
            return taken
        now += following


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


def test_who_stands_in_line_and_may_stay_longer_leaves_the_line() -> None:
    evictions = plan(names(30), Cause(1, START, 1))
    left = run(evictions, 2)
    waiting = [pod for pod in names(30) if pod not in left]
    for pod in waiting:
        evictions.set(pod, {1: Cause(1, START + 100, 1)}, START + 2)
    assert run(evictions, 90, START + 2) == {}
    assert set(run(evictions, 60, START + 92)) == set(waiting)


@pytest.mark.req("5055-92", "5055-93", "5055-132")
def test_the_fastest_of_several_taints_wins() -> None:
    taken = run(plan(names(110), Cause(1, START, 1), Cause(2, START, 100)), 600)
    assert len(taken) == 110
    assert max(taken.values()) <= 1.0


@pytest.mark.req("5055-92", "5055-93")
def test_whom_a_fast_taint_evicts_takes_no_turn_of_a_slow_one() -> None:
    slow, fast = Cause(1, START, 1), Cause(2, START, 100)
    evictions: Evictions[str] = Evictions()
    evictions.set("both", {1: slow, 2: fast}, START)
    evictions.set("slow only", {1: slow}, START)
    assert evictions.take(START, START) == [("both", fast), ("slow only", slow)]


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
    assert len(evictions) == 0


@pytest.mark.req("5055-94")
def test_limiters_are_dropped_when_idle() -> None:
    evictions = plan(names(5), Cause(1, START, 10))
    assert evictions.active_limiters == 0
    run(evictions, 1)
    assert evictions.active_limiters == 1
    evictions.take(START + 5, START + 5)
    assert evictions.active_limiters == 0
    assert len(evictions) == 0


@pytest.mark.req("5055-80", "5055-96", "implied-9")
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
    assert len(evictions) == 0


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


@pytest.mark.req("implied-9")
def test_a_huge_rate_does_not_overflow() -> None:
    taken = run(plan(names(500), Cause(1, START, 2**62)), 60)
    assert len(taken) == 500
    assert max(taken.values()) < 0.01


@pytest.mark.req("5055-90", "5055-91")
def test_whoever_looks_late_catches_up_so_that_the_rate_holds() -> None:
    evictions = plan(names(500), Cause(1, START, 100))
    taken = 0
    for step in range(1, 22):
        moment = START + step * 0.2
        taken += len(evictions.take(moment, moment))
        assert taken <= 10 + 100 * (step - 1) * 0.2 + 1
    assert taken >= 400


@pytest.mark.req("5055-90", "5055-91")
def test_at_a_high_rate_several_are_let_go_together_and_the_rate_holds() -> None:
    evictions = plan(names(2000), Cause(1, START, 1000))
    taken, rounds, now = len(evictions.take(START, START)), 0, START
    assert taken == 10
    while (wait := evictions.wait(now, now)) is not None:
        now += wait
        taken += len(evictions.take(now, now))
        rounds += 1
        assert taken == pytest.approx(10 + 1000 * (now - START), abs=1)
    assert taken == 2000
    assert rounds <= 201


@pytest.mark.req("5055-90", "5055-91")
def test_after_a_long_stop_no_five_seconds_see_more_than_a_twentieth_too_many() -> None:
    evictions = plan(names(10_000), Cause(1, START, 1000))
    for step in range(100):
        evictions.take(START + step * 0.01, START + step * 0.01)
    resumed = START + 4
    after = sum(len(evictions.take(resumed + step * 0.01, resumed + step * 0.01)) for step in range(500))
    assert 5000 <= after <= 5251


def test_a_pod_that_was_taken_is_pending_until_it_is_gone_and_is_not_taken_twice() -> None:
    evictions = plan(["a"], Cause(1, START, 10))
    assert [each.pod for each in evictions.take(START, START)] == ["a"]
    assert len(evictions) == 1
    evictions.set("a", {1: Cause(1, START, 10), 2: Cause(2, START, 10)}, START)
    assert evictions.take(START + 1, START + 1) == []
    assert evictions.finish("a") is True
    assert evictions.finish("a") is False


def test_a_cancelled_pod_that_must_leave_again_leaves() -> None:
    evictions = plan(["a"], Cause(1, START, 10))
    evictions.take(START, START)
    evictions.set("a", {}, START)
    evictions.set("a", {1: Cause(1, START, 10)}, START)
    assert [each.pod for each in evictions.take(START, START)] == ["a"]


@pytest.mark.req("implied-8")
def test_setting_the_wall_clock_back_does_not_stop_a_limiter() -> None:
    evictions = plan(names(20), Cause(1, START, 10))
    assert len(evictions.take(START, 5.0)) == 10
    assert len(evictions.take(START - 3600, 6.0)) == 10


@given(
    pods=st.lists(
        st.dictionaries(
            st.integers(0, 2), st.floats(0, 20).map(lambda seconds: round(seconds, 2)), min_size=1, max_size=3
        ),
        min_size=1,
        max_size=40,
    ),
    rates=st.tuples(*[st.integers(1, 50)] * 3),
)
@pytest.mark.req("5055-88", "5055-90", "5055-91", "5055-132")
def test_nobody_leaves_early_everybody_leaves_and_no_rate_is_exceeded(
    pods: list[dict[int, float]], rates: tuple[int, int, int]
) -> None:
    evictions: Evictions[str] = Evictions()
    for number, dues in enumerate(pods):
        evictions.set(f"p{number}", {t: Cause(t, START + due, rates[t]) for t, due in dues.items()}, START)
    left: dict[str, tuple[float, int | str]] = {}
    now = START
    while (wait := evictions.wait(now, now)) is not None:
        now += wait
        for pod, cause in evictions.take(now, now):
            assert pod not in left
            left[pod] = (now - START, cause.taint)
            evictions.finish(pod)
    assert len(left) == len(pods)
    for number, dues in enumerate(pods):
        moment, taint = left[f"p{number}"]
        assert isinstance(taint, int)
        assert moment >= dues[taint] - 1e-6
    for taint, rate in enumerate(rates):
        moments = sorted(moment for moment, by in left.values() if by == taint)
        for first, begin in enumerate(moments):
            for last in range(first, len(moments)):
                assert last - first + 1 <= 10 + rate * (moments[last] - begin) + 1e-3


def test_a_pod_that_is_put_off_gives_its_place_to_the_next() -> None:
    evictions = plan(names(30), Cause(1, START, 10))
    for taken in evictions.take(START, START):
        evictions.postpone(taken, START + 100)
    assert len(evictions.take(START, START)) == 10
    assert len(evictions.postponed) == 10
    assert [taken.pod for taken in evictions.take(START + 2, START + 2)] == names(30)[20:]
    assert evictions.take(START + 99, START + 99) == []
    assert [taken.pod for taken in evictions.take(START + 100, START + 100)] == names(10)
    assert not evictions.postponed


def test_a_pod_that_is_put_off_comes_back_at_once_for_another_cause_or_when_recalled() -> None:
    first, second = Cause(1, START, 10), Cause(2, START, 10)
    evictions = plan(["a", "b", "c"], first)
    for taken in evictions.take(START, START):
        evictions.postpone(taken, START + 100)
    evictions.set("a", {1: first, 2: second}, START)
    evictions.recall("b")
    assert sorted(taken.pod for taken in evictions.take(START + 1, START + 1)) == ["a", "b"]
    evictions.set("c", {}, START)
    assert evictions.wait(START + 1, START + 1) is None


def test_a_pod_under_two_taints_that_is_put_off_waits_at_both_afterwards() -> None:
    evictions = plan(names(40), Cause(1, START, 1), Cause(2, START, 10))
    for taken in evictions.take(START, START):
        evictions.postpone(taken, START + 10)
    everybody = run(evictions, 100, START + 10)
    assert len(everybody) == 40
    assert max(everybody.values()) <= 3.0


def test_who_is_put_off_waits_no_longer_when_the_wall_clock_is_set_back() -> None:
    evictions = plan(names(3), Cause(1, START - 86_400, 10))
    for taken in evictions.take(START, 5.0):
        evictions.postpone(taken, START + 30)
    assert evictions.take(START - 36_000, 34.0) == []
    assert evictions.wait(START - 36_000, 34.0) == pytest.approx(1.0)
    assert [taken.pod for taken in evictions.take(START - 36_000 + 1, 35.0)] == names(3)


@given(
    count=st.integers(1, 60),
    rate=st.integers(1, 40),
    patience=st.lists(st.floats(0.1, 5).map(lambda seconds: round(seconds, 2)), min_size=60, max_size=60),
)
def test_what_is_put_off_neither_leaves_early_nor_exceeds_the_rate_when_it_leaves(
    count: int, rate: int, patience: list[float]
) -> None:
    evictions = plan(names(count), Cause(1, START, rate))
    until = {pod: START + seconds for pod, seconds in zip(names(60), patience, strict=True)}
    asked: set[str] = set()
    left: dict[str, float] = {}
    now = START
    while (wait := evictions.wait(now, now)) is not None:
        now += wait
        for taken in evictions.take(now, now):
            if taken.pod not in asked and now < until[taken.pod]:
                asked.add(taken.pod)
                evictions.postpone(taken, until[taken.pod])
                continue
            assert now >= until[taken.pod] - 1e-6
            left[taken.pod] = now
            evictions.finish(taken.pod)
    assert len(left) == count
    moments = sorted(left.values())
    for first, begin in enumerate(moments):
        for last in range(first, len(moments)):
            assert last - first + 1 <= 10 + rate * (moments[last] - begin) + 1e-3


def test_who_has_nothing_to_do_is_not_looked_at() -> None:
    """Thousands of nodes may have a rate of their own."""

    def work(taints: int) -> Counts:
        evictions: Evictions[str] = Evictions()
        for taint in range(taints):
            for number in range(12):
                evictions.set(f"p{taint}-{number}", {taint: Cause(taint, START, 1)}, START)
        assert len(evictions.take(START, START)) == 10 * taints
        assert evictions.active_limiters == taints
        assert evictions.wait(START, START) == pytest.approx(1.0)
        evictions.set("more", {"other": Cause("other", START, 1)}, START)

        def one() -> None:
            assert [taken.pod for taken in evictions.take(START + 0.5, START + 0.5)] == ["more"]
            assert evictions.wait(START + 0.5, START + 0.5) == pytest.approx(0.5)

        return lines_run(one)

    work(10)
    once, often = work(50), work(500)
    assert max(often.values()) <= max(once.values()) + 5


def test_many_that_are_due_are_gone_through_once() -> None:
    evictions: Evictions[str] = Evictions()
    for taint in range(200):
        evictions.set(f"p{taint}", {taint: Cause(taint, START, 1)}, START)
    counts = lines_run(lambda: [evictions.take(START, START, 10) for _ in range(20)])
    assert max(counts.values()) <= 3 * 200
    assert evictions.wait(START, START) is None

"""The guard alone: what is counted, judged and let go."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dray.eviction.guard import Guard
from dray.eviction.settings import Limit


def judged(guard: Guard[str, int], *, confirmed: bool = False) -> set[str]:
    return guard.judge(100, lambda _: confirmed)


def test_nothing_is_allowed_before_it_is_judged() -> None:
    guard: Guard[str, int] = Guard(Limit(count=2))
    guard.want(1, ["t"])
    assert not guard.is_sure
    assert not guard.allows("t")
    assert judged(guard) == {"t"}
    assert guard.is_sure
    assert guard.allows("t")


def test_one_more_is_too_many_and_one_less_few_again() -> None:
    guard: Guard[str, int] = Guard(Limit(count=2))
    for pod in range(3):
        guard.want(pod, ["t", "other"] if pod == 0 else ["t"])
    judged(guard)
    assert not guard.allows("t")
    assert guard.allows("other")
    assert str(guard.held["t"]) == "3 pods of 100 would be evicted, more than 2"
    guard.want(2, [])
    assert judged(guard) == {"t"}
    assert guard.allows("t")
    assert not guard.held


def test_those_who_went_count_until_the_taint_is_another_one() -> None:
    guard: Guard[str, int] = Guard(Limit(count=2))
    for pod in (0, 1):
        guard.want(pod, ["t"])
    judged(guard)
    guard.mark_going(0, is_so=True)
    guard.mark_going(1, is_so=True)
    guard.mark_going(1, is_so=False)  # put off
    guard.want(0, [])
    guard.want(1, [])
    guard.want(2, ["t"])
    guard.want(3, ["t"])
    judged(guard)
    assert not guard.allows("t")
    guard.reset("t")
    judged(guard)
    assert guard.allows("t")


def test_a_confirmation_counts_when_it_is_reviewed() -> None:
    guard: Guard[str, int] = Guard(Limit(count=0))
    guard.want(1, ["t"])
    judged(guard)
    assert not guard.allows("t")
    guard.review("t")
    assert judged(guard, confirmed=True) == {"t"}
    assert guard.allows("t")


@settings(deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 5), st.sets(st.sampled_from("ab"))), max_size=40), limit=st.integers(0, 4)
)
def test_what_is_allowed_is_what_few_want(steps: list[tuple[int, set[str]]], limit: int) -> None:
    guard: Guard[str, int] = Guard(Limit(count=limit))
    wanted: dict[int, set[str]] = {}
    for pod, taints in steps:
        wanted[pod] = taints
        guard.want(pod, taints)
        judged(guard)
        for taint in "ab":
            count = sum(taint in one for one in wanted.values())
            assert guard.allows(taint) == (0 < count <= limit)
            assert (taint in guard.held) == (count > limit)
            assert len(guard.pods(taint)) == count

"""Pauses double with every failure in a row, up to a limit."""

from __future__ import annotations

from dray.api.backoff import Backoff


def test_pauses_grow_to_the_limit() -> None:
    rule = Backoff(first=0.5, longest=3.0)
    assert [rule.after(failures) for failures in range(5)] == [0.0, 0.5, 1.0, 2.0, 3.0]
    assert rule.after(10**6) == 3.0


def test_success_starts_again() -> None:
    pauses = Backoff(first=1.0, longest=60.0).pauses()
    assert [pauses.next(), pauses.next(), pauses.failures] == [1.0, 2.0, 2]
    pauses.reset()
    assert pauses.next() == 1.0


def test_each_counts_for_itself() -> None:
    rule = Backoff(first=1.0, longest=60.0)
    one, other = rule.pauses(), rule.pauses()
    one.next()
    assert other.next() == 1.0

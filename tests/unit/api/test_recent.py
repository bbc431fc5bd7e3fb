"""What is remembered is bounded in number and in size, and the least recently used goes first."""

from __future__ import annotations

from dray.api.recent import Bounded, Newest, Recent


def test_the_least_recently_used_goes_first() -> None:
    recent: Recent[str, int] = Recent(2, 100)
    recent.put("a", 1, 10)
    recent.put("b", 2, 10)
    assert recent.get("a") == 1
    recent.put("c", 3, 10)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]
    assert (len(recent), recent.size) == (2, 20)


def test_what_is_large_makes_others_go_and_is_kept_until_something_else_comes() -> None:
    recent: Recent[str, int] = Recent(10, 100)
    for number in range(5):
        recent.put(f"small-{number}", number, 20)
    recent.put("large", 9, 1000)
    assert (len(recent), recent.size, recent.get("large")) == (1, 1000, 9)
    recent.put("small", 1, 20)
    assert (len(recent), recent.size, recent.get("small")) == (1, 20, 1)


def test_what_is_put_again_counts_once() -> None:
    recent: Recent[str, int] = Recent(10, 100)
    recent.put("a", 1, 60)
    recent.put("a", 2, 70)
    assert (len(recent), recent.size, recent.get("a")) == (1, 70, 2)


def test_for_one_more_than_so_many_all_are_forgotten() -> None:
    bounded: Bounded[int, str] = Bounded(2)
    assert [bounded.keep(number, str(number)) for number in range(3)] == ["0", "1", "2"]
    assert dict(bounded) == {2: "2"}


def test_for_one_more_than_so_many_the_oldest_is_forgotten() -> None:
    newest: Newest[str, int] = Newest(2)
    for number, key in enumerate("abac"):
        assert newest.keep(key, number) == number
    assert list(newest.items()) == [("a", 2), ("c", 3)]

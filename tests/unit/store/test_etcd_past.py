"""Whether etcd tells again what it told: any other change, in any order, is another past."""

from __future__ import annotations

import random

import pytest

from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.past import OtherPast, Past, Replay


def event(revision: int, key: str, value: str | None) -> pb.Event:
    kind = pb.Event.EventType.DELETE if value is None else pb.Event.EventType.PUT
    return pb.Event(type=kind, kv=pb.KeyValue(key=key.encode(), value=(value or "").encode(), mod_revision=revision))


def heard(*events: pb.Event) -> Past:
    past = Past()
    for each in events:
        past.add([each])
    return past


def test_nothing_was_heard_of_so_everything_is_new() -> None:
    replay = Replay(Past(), 7)
    assert replay.is_over
    assert replay.take([event(8, "a", "x")]) == [event(8, "a", "x")]


def test_only_what_is_new_goes_on() -> None:
    told = [event(3, "a", "x"), event(5, "a", None), event(6, "pulse", "")]
    past = heard(*told)
    assert (past.first, past.last) == (3, 6)
    replay = Replay(past, 6)
    assert replay.take(told[:2]) == []
    assert not replay.is_over
    assert replay.take([told[2], event(7, "b", "y")]) == [event(7, "b", "y")]
    assert replay.is_over


def test_a_revision_counts_as_a_whole() -> None:
    past = Past()
    past.add([event(3, "a", "x"), event(4, "b", None), event(4, "c", "y"), event(4, "d", None)])
    assert (past.first, past.last) == (4, 4)
    with pytest.raises(OtherPast):
        Replay(past, 4).take([event(4, "c", "y"), event(4, "d", None)])


@pytest.mark.parametrize(
    "again",
    [
        [event(3, "a", "z")],
        [event(3, "b", "x")],
        [event(3, "a", "x"), event(5, "b", None)],
        [event(3, "a", "x"), event(4, "b", "new"), event(5, "a", None)],
        [event(3, "a", "x"), event(6, "b", "new")],
        [event(4, "b", "new")],
        [event(9, "b", "new")],
        [],
    ],
)
def test_what_differs_is_noticed(again: list[pb.Event]) -> None:
    replay = Replay(heard(event(3, "a", "x"), event(5, "a", None)), 5)

    def told() -> None:
        replay.take(again)
        replay.take([])

    with pytest.raises(OtherPast):
        told()


def test_where_nothing_was_told_there_was_nothing() -> None:
    """Up to revision 8 only others have written."""
    with pytest.raises(OtherPast):
        Replay(heard(event(3, "a", "x")), 8).take([event(3, "a", "x"), event(8, "b", "y")])


@pytest.mark.parametrize("seed", range(50))
def test_any_past_is_its_own(seed: int) -> None:
    randomness = random.Random(seed)
    events = [event(2, "a", "x")]
    for _ in range(randomness.randrange(12)):
        revision = events[-1].kv.mod_revision + randomness.randrange(2)
        events.append(event(revision, f"k{len(events)}", randomness.choice([None, "", f"v{len(events)}"])))
    past = Past()
    past.add(events)
    again = [each for each in events if each.kv.mod_revision >= past.first]
    assert Replay(past, past.last).take(again) == []
    changed = list(again)
    del changed[randomness.randrange(len(changed))]
    with pytest.raises(OtherPast):
        Replay(past, past.last).take([*changed, event(99, "z", "z")])

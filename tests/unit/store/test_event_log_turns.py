"""History that is too old goes some at a time, however much of it there is (issue 21)."""

from __future__ import annotations

from dray.store.log import AT_ONCE, EventLog, Retention
from dray.store.records import Event, EventType, Key, Record


def test_no_call_drops_much_and_the_rest_goes_with_the_next_ones() -> None:
    log = EventLog(Retention(max_age=10.0))
    count = 3 * AT_ONCE + 5
    log.prune(0.0)
    for number in range(1, count + 1):
        log.append(Event(EventType.ADDED, Record(Key("pods", "", str(number)), number, number, b"x"), None))
    log.prune(1.0)
    dropped = []
    while found := log.prune(100.0):
        assert len(found) <= AT_ONCE
        dropped += [event.record.revision for event in found]
        assert log.horizon == dropped[-1]
        assert log.position_after(log.horizon) == log.first
    assert dropped == list(range(1, count + 1))

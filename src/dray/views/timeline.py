"""What happened to devices, newest first: allocations, releases, evictions, taints, nodes.

What is there tells when it came about (an allocation its time, a taint since when, a node when it became ready); what
is gone is told by events, and by who looks on and notes what he sees (`Log`). Times are what others wrote: one that is
still to come is taken for that of the object's creation, which the server wrote. Namespaces share the room that there
is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from dray.api.conditions import find_condition
from dray.api.generated.core import Event, Node
from dray.api.references import full_name
from dray.api.resource import DeviceTaintRule, ResourceClaim
from dray.api.taints import taint_text
from dray.views.device import Document
from dray.views.fleet import FleetTotals
from dray.views.shares import namespace_of, share_out

ALLOCATION: Final = "allocation"
RELEASE: Final = "release"
EVICTION: Final = "eviction"
TAINT: Final = "taint"
UNTAINT: Final = "untaint"
NODE: Final = "node"

MOST_ENTRIES: Final = 2000
MOST_LETTERS: Final = 1024
"""Of what somebody else wrote: as many as a new event may have, for old ones may have a million."""
MOST_SAMPLES: Final = 720
_EVICTING: Final = ("DeviceTaintManagerEviction", "TaintManagerEviction", "Evicted", "Preempted")
_OF_NODES: Final = ("NodeNotReady", "NodeNotSchedulable", "NodeSchedulable", "RemovingNode")


Now: TypeAlias = Callable[[], str]
"""Most changes are nothing to note, and the time of those is not asked for."""


class TimelineEntry(Document, frozen=True, kw_only=True):
    """One thing that happened."""

    time: str
    kind: str
    subject: str
    text: str
    devices: tuple[str, ...] = ()


class Sample(Document, frozen=True, kw_only=True):
    """The fleet in numbers at a time."""

    time: str
    totals: FleetTotals


class Log:
    """What was seen happening since somebody looks on; bounded."""

    def __init__(self) -> None:
        self.entries: list[TimelineEntry] = []
        self.samples: deque[Sample] = deque(maxlen=MOST_SAMPLES)

    def claim(self, old: ResourceClaim | None, new: ResourceClaim | None, now: Now) -> None:
        """A claim changed: its devices may be free now."""
        if old is None or old.status.allocation is None:
            return
        if new is None or new.status.allocation is None:
            devices = _devices(old)
            text = f"released {_some(devices)}"
            self._note(TimelineEntry(time=now(), kind=RELEASE, subject=full_name(old), text=text, devices=devices))

    def rule(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None, now: Now) -> None:
        """A rule changed: its taint may be gone, or another."""
        if old is None:
            return
        before = taint_text(old.spec.taint)
        after = taint_text(new.spec.taint) if new is not None else ""
        if before != after:
            text = f"{before} is gone" if new is None else f"{before} became {after}"
            self._note(TimelineEntry(time=now(), kind=UNTAINT, subject=f"rule {old.metadata.name}", text=text))

    def node(self, old: Node | None, new: Node | None, now: Now) -> None:
        """A node changed."""
        if old is None:
            return
        name = old.metadata.name
        if new is None:
            self._note(TimelineEntry(time=now(), kind=NODE, subject=name, text="is gone"))
        elif bool(old.spec.unschedulable) != bool(new.spec.unschedulable):
            text = "was cordoned" if new.spec.unschedulable else "was uncordoned"
            self._note(TimelineEntry(time=now(), kind=NODE, subject=name, text=text))

    def _note(self, entry: TimelineEntry) -> None:
        self.entries.append(entry)
        if len(self.entries) >= 2 * MOST_ENTRIES:
            self.entries = _newest(self.entries)[::-1]

    def sample(self, totals: FleetTotals, now: str) -> None:
        """The fleet in numbers, for the curve."""
        self.samples.append(Sample(time=now, totals=totals))


class Evidence(NamedTuple):
    """What is there now, and tells of what has happened."""

    claims: Sequence[ResourceClaim] = ()
    rules: Sequence[DeviceTaintRule] = ()
    nodes: Sequence[Node] = ()
    events: Sequence[Event] = ()


def timeline(log: Log, seen: Evidence, since: str, now: str) -> list[TimelineEntry]:
    """Everything after a time (RFC 3339, UTC) until now, newest first."""
    told = (
        _allocations(seen.claims, now),
        _taints(seen.rules, now),
        _nodes(seen.nodes, now),
        _events(seen.events, now),
    )
    found = [*log.entries, *chain.from_iterable(told)]
    return _newest([entry for entry in found if entry.time >= since])


def _newest(entries: Iterable[TimelineEntry]) -> list[TimelineEntry]:
    """As many as one looks at, newest first."""
    ordered = sorted(entries, key=lambda entry: entry.time, reverse=True)
    return share_out(ordered, MOST_ENTRIES, lambda entry: namespace_of(entry.subject))


def _moment(now: str, *said: str | None) -> str | None:
    """The first time that was said and is not still to come."""
    return next((time for one in said if one is not None and (time := f"{one[:19]}Z") <= now), None)


def about_device(
    entries: Iterable[TimelineEntry], device: str, rules: Iterable[str], claims: Iterable[str], node: str
) -> list[TimelineEntry]:
    """Those that concern a device (`driver/pool/device`), the rules on it, the claims that hold it, its node."""
    subjects = {*(f"rule {name}" for name in rules), *claims, *((node,) if node else ())}
    return [entry for entry in entries if device in entry.devices or entry.subject in subjects]


def _allocations(claims: Iterable[ResourceClaim], now: str) -> Iterator[TimelineEntry]:
    for claim in claims:
        allocation = claim.status.allocation
        if allocation is None:
            continue
        time = _moment(now, allocation.allocation_timestamp, claim.metadata.creation_timestamp)
        devices = _devices(claim)
        if time is not None and devices:
            text = f"got {_some(devices)}"
            yield TimelineEntry(time=time, kind=ALLOCATION, subject=full_name(claim), text=text, devices=devices)


def _taints(rules: Iterable[DeviceTaintRule], now: str) -> Iterator[TimelineEntry]:
    for rule in rules:
        time = _moment(now, rule.spec.taint.time_added, rule.metadata.creation_timestamp)
        if time is not None:
            text = taint_text(rule.spec.taint)
            yield TimelineEntry(time=time, kind=TAINT, subject=f"rule {rule.metadata.name}", text=text)


def _nodes(nodes: Iterable[Node], now: str) -> Iterator[TimelineEntry]:
    for node in nodes:
        ready = find_condition(node.status.conditions, "Ready")
        if ready is None or ready.last_transition_time is None:
            continue
        time = _moment(now, ready.last_transition_time, node.metadata.creation_timestamp)
        if time is not None:
            text = "became ready" if ready.status == "True" else f"is not ready: {ready.message or ready.reason}"
            yield TimelineEntry(time=time, kind=NODE, subject=node.metadata.name, text=text[:MOST_LETTERS])


def _events(events: Iterable[Event], now: str) -> Iterator[TimelineEntry]:
    for event in events:
        kind = EVICTION if event.reason in _EVICTING else NODE if event.reason in _OF_NODES else ""
        if not kind:
            continue
        said = (event.last_timestamp, event.event_time, event.first_timestamp)
        time = _moment(now, *said, event.metadata.creation_timestamp)
        if time is None:
            continue
        about = event.involved_object
        subject = f"{about.namespace}/{about.name}" if about.namespace else about.name
        yield TimelineEntry(time=time, kind=kind, subject=subject, text=(event.message or event.reason)[:MOST_LETTERS])


def _devices(claim: ResourceClaim) -> tuple[str, ...]:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return tuple(f"{one.driver}/{one.pool}/{one.device}" for one in results)


def _some(devices: tuple[str, ...]) -> str:
    shown = [one.partition("/")[2] for one in devices[:4]]
    return ", ".join(shown) + (f" and {len(devices) - 4} more" if len(devices) > 4 else "")

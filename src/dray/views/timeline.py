"""What happened to devices, newest first: allocations, releases, evictions, taints, nodes.

What is there tells when it came about (an allocation its time, a taint since when, a node when it became ready); what
is gone is told by events, and by who looks on and notes what he sees (`Log`).
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
        self.entries: deque[TimelineEntry] = deque(maxlen=MOST_ENTRIES)
        self.samples: deque[Sample] = deque(maxlen=MOST_SAMPLES)

    def claim(self, old: ResourceClaim | None, new: ResourceClaim | None, now: Now) -> None:
        """A claim changed: its devices may be free now."""
        if old is None or old.status.allocation is None:
            return
        if new is None or new.status.allocation is None:
            devices = _devices(old)
            text = f"released {_some(devices)}"
            self.entries.append(
                TimelineEntry(time=now(), kind=RELEASE, subject=full_name(old), text=text, devices=devices)
            )

    def rule(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None, now: Now) -> None:
        """A rule changed: its taint may be gone, or another."""
        if old is None:
            return
        before = taint_text(old.spec.taint)
        after = taint_text(new.spec.taint) if new is not None else ""
        if before != after:
            text = f"{before} is gone" if new is None else f"{before} became {after}"
            self.entries.append(TimelineEntry(time=now(), kind=UNTAINT, subject=f"rule {old.metadata.name}", text=text))

    def node(self, old: Node | None, new: Node | None, now: Now) -> None:
        """A node changed."""
        if old is None:
            return
        name = old.metadata.name
        if new is None:
            self.entries.append(TimelineEntry(time=now(), kind=NODE, subject=name, text="is gone"))
        elif bool(old.spec.unschedulable) != bool(new.spec.unschedulable):
            text = "was cordoned" if new.spec.unschedulable else "was uncordoned"
            self.entries.append(TimelineEntry(time=now(), kind=NODE, subject=name, text=text))

    def sample(self, totals: FleetTotals, now: str) -> None:
        """The fleet in numbers, for the curve."""
        self.samples.append(Sample(time=now, totals=totals))


class Evidence(NamedTuple):
    """What is there now, and tells of what has happened."""

    claims: Sequence[ResourceClaim] = ()
    rules: Sequence[DeviceTaintRule] = ()
    nodes: Sequence[Node] = ()
    events: Sequence[Event] = ()


def timeline(log: Log, seen: Evidence, since: str) -> list[TimelineEntry]:
    """Everything after a time (RFC 3339, UTC), newest first."""
    told = (_allocations(seen.claims), _taints(seen.rules), _nodes(seen.nodes), _events(seen.events))
    found = [*log.entries, *chain.from_iterable(told)]
    recent = [entry for entry in found if entry.time >= since]
    return sorted(recent, key=lambda entry: entry.time, reverse=True)[:MOST_ENTRIES]


def about_device(
    entries: Iterable[TimelineEntry], device: str, rules: Iterable[str], claims: Iterable[str], node: str
) -> list[TimelineEntry]:
    """Those that concern a device (`driver/pool/device`), the rules on it, the claims that hold it, its node."""
    subjects = {*(f"rule {name}" for name in rules), *claims, *((node,) if node else ())}
    return [entry for entry in entries if device in entry.devices or entry.subject in subjects]


def _allocations(claims: Iterable[ResourceClaim]) -> Iterator[TimelineEntry]:
    for claim in claims:
        allocation = claim.status.allocation
        if allocation is None:
            continue
        stamp = allocation.allocation_timestamp or claim.metadata.creation_timestamp
        devices = _devices(claim)
        if stamp is not None and devices:
            text = f"got {_some(devices)}"
            yield TimelineEntry(time=str(stamp), kind=ALLOCATION, subject=full_name(claim), text=text, devices=devices)


def _taints(rules: Iterable[DeviceTaintRule]) -> Iterator[TimelineEntry]:
    for rule in rules:
        added = rule.spec.taint.time_added or rule.metadata.creation_timestamp
        if added is not None:
            yield TimelineEntry(
                time=str(added), kind=TAINT, subject=f"rule {rule.metadata.name}", text=taint_text(rule.spec.taint)
            )


def _nodes(nodes: Iterable[Node]) -> Iterator[TimelineEntry]:
    for node in nodes:
        ready = find_condition(node.status.conditions, "Ready")
        if ready is not None and ready.last_transition_time is not None:
            text = "became ready" if ready.status == "True" else f"is not ready: {ready.message or ready.reason}"
            yield TimelineEntry(
                time=str(ready.last_transition_time), kind=NODE, subject=node.metadata.name, text=text[:MOST_LETTERS]
            )


def _events(events: Iterable[Event]) -> Iterator[TimelineEntry]:
    for event in events:
        kind = EVICTION if event.reason in _EVICTING else NODE if event.reason in _OF_NODES else ""
        moment = event.last_timestamp or event.event_time or event.first_timestamp or event.metadata.creation_timestamp
        if not kind or moment is None:
            continue
        about = event.involved_object
        subject = f"{about.namespace}/{about.name}" if about.namespace else about.name
        yield TimelineEntry(
            time=f"{str(moment)[:19]}Z", kind=kind, subject=subject, text=(event.message or event.reason)[:MOST_LETTERS]
        )


def _devices(claim: ResourceClaim) -> tuple[str, ...]:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return tuple(f"{one.driver}/{one.pool}/{one.device}" for one in results)


def _some(devices: tuple[str, ...]) -> str:
    shown = [one.partition("/")[2] for one in devices[:4]]
    return ", ".join(shown) + (f" and {len(devices) - 4} more" if len(devices) > 4 else "")

"""What a cluster did in numbers, from the changes of its objects: the same for what was recorded and what was replayed.

Waits are from when a pod could first be scheduled to when it got a node. Devices are looked at so many times, at equal
distances: in use is the mean share that is held, in fragments the mean share of free devices on nodes, or in pools,
where not all are free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Final, TypeVar

import msgspec

from dray.api.conditions import POD_SCHEDULED, find_condition
from dray.api.generated.core import Node, Pod
from dray.api.meta import Object
from dray.api.pod_claims import uses_devices
from dray.api.references import full_name
from dray.api.resource import ResourceClaim
from dray.replay.work import disruption
from dray.scheduling.cluster import Cluster
from dray.tracker import Remove, TrackedObject, Upsert
from dray.views import fleet

T = TypeVar("T", bound=Object)

SAMPLES: Final = 200
MOST_NAMED: Final = 1000


class Waits(msgspec.Struct, frozen=True, rename="camel"):
    """How long pods waited for a node, in seconds; None if none got one."""

    pods: int
    p50: float | None
    p95: float | None
    max: float | None


class NeverRan(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that got no node, and why, if somebody said so."""

    pod: str
    why: str = ""


class Sample(msgspec.Struct, frozen=True, rename="camel"):
    """Devices at a moment, in seconds from the start."""

    at: float
    devices: int
    held: int
    free: int
    whole: int
    tainted: int
    pending: int
    """Pods that wait."""


class Measures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What came of a history."""

    pods: int
    """How many wanted a node after the start."""
    placed: int
    never_ran: tuple[NeverRan, ...]
    """At most a thousand of them."""
    never_ran_count: int
    waits: Waits
    device_waits: Waits
    """The same of pods with devices."""
    utilisation: float | None
    fragmentation: float | None
    evictions: int
    evictions_by_reason: dict[str, int]
    nodes: int
    """At the end."""
    samples: tuple[Sample, ...]


class _Life(msgspec.Struct):
    name: str
    wants_devices: bool
    since: float | None = None
    placed: float | None = None
    is_first: bool = False
    evicted: str = ""
    why: str = ""


class ReplayObserver:
    """Is told of every change, and looks now and then."""

    def __init__(self) -> None:
        self._cluster = Cluster()
        self._rows = fleet.FleetRows()
        self._lives: dict[str, _Life] = {}
        self._pending: set[str] = set()
        self._samples: list[Sample] = []
        self._start: float | None = None

    def begin(self, now: float) -> None:
        """What was told so far was there; from now on things count."""
        self._start = now

    def change(self, old: Object | None, new: Object | None, now: float) -> None:
        """An object came, changed or went."""
        known = new if new is not None else old
        if isinstance(known, Pod):
            self._on_pod(known, new is None, now)
        elif isinstance(known, ResourceClaim):
            self._cluster.set_claim(_as(old, ResourceClaim), _as(new, ResourceClaim))
        elif isinstance(known, Node):
            self._cluster.set_node(_as(old, Node), _as(new, Node))
        elif isinstance(known, TrackedObject):
            self._cluster.track(Upsert(new) if isinstance(new, TrackedObject) else Remove.of(known))

    def _on_pod(self, pod: Pod, is_gone: bool, now: float) -> None:
        uid = pod.metadata.uid
        life = self._lives.get(uid)
        if life is None:
            wants = uses_devices(pod)
            life = self._lives[uid] = _Life(full_name(pod), wants)
        told = find_condition(pod.status.conditions, POD_SCHEDULED)
        if pod.spec.node_name and life.placed is None:
            life.placed = now
            if self._start is not None and life.since is None and told is not None and told.status == "True":
                life.since = now  # a scheduler gave it its node as it came
            life.is_first = self._start is None or life.since is None
        elif not pod.spec.node_name and not pod.spec.scheduling_gates and life.since is None:
            life.since = now
        reason = disruption(pod)
        if reason and self._start is not None and pod.spec.node_name:
            life.evicted = life.evicted or reason
        if told is not None and told.status == "False":
            life.why = told.message
        if life.placed is None and life.since is not None and not is_gone:
            self._pending.add(uid)
        else:
            self._pending.discard(uid)

    def sample(self, now: float) -> None:
        """Looks at all devices."""
        for _ in self._rows.refresh(self._cluster):
            pass
        totals = fleet.totals(self._rows.rows.values())
        self._samples.append(
            Sample(
                round(now - (self._start or now), 3),
                totals.devices,
                totals.held,
                totals.free,
                totals.whole,
                totals.tainted,
                len(self._pending),
            )
        )

    def measures(self) -> Measures:
        """Everything so far."""
        lives = [life for life in self._lives.values() if life.since is not None and not life.is_first]
        never = sorted((life for life in lives if life.placed is None), key=lambda life: life.name)
        evictions = Counter(life.evicted for life in self._lives.values() if life.evicted)
        return Measures(
            pods=len(lives),
            placed=len(lives) - len(never),
            never_ran=tuple(NeverRan(life.name, life.why) for life in never[:MOST_NAMED]),
            never_ran_count=len(never),
            waits=_waits(lives),
            device_waits=_waits([life for life in lives if life.wants_devices]),
            utilisation=_mean([one.held / one.devices for one in self._samples if one.devices]),
            fragmentation=_mean([(one.free - one.whole) / one.free for one in self._samples if one.free]),
            evictions=evictions.total(),
            evictions_by_reason=dict(sorted(evictions.items())),
            nodes=len(self._cluster.nodes),
            samples=tuple(self._samples),
        )


def _as(obj: Object | None, type_: type[T]) -> T | None:
    return obj if isinstance(obj, type_) else None


def _mean(shares: Sequence[float]) -> float | None:
    return round(sum(shares) / len(shares), 6) if shares else None


def _waits(lives: Iterable[_Life]) -> Waits:
    found = sorted(life.placed - life.since for life in lives if life.placed is not None and life.since is not None)
    if not found:
        return Waits(0, None, None, None)

    def at(share: float) -> float:
        return round(found[max(ceil(share * len(found)) - 1, 0)], 3)

    return Waits(len(found), at(0.5), at(0.95), at(1.0))


def moments(start: float, end: float) -> list[float]:
    """When to look: at equal distances, no more often than once a second."""
    count = max(min(SAMPLES, int(end - start)), 1)
    return [start + (end - start) * number / count for number in range(1, count + 1)]

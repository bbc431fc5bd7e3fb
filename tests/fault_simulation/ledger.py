"""What is stored, as told by the storage itself, independently of everything that is being tested."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from dray.api.generated.core import Node, Pod
from dray.api.meta import Object
from dray.api.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from dray.reconcile import Clock
from dray.store import Event, EventType

PODS: Final = "pods"
NODES: Final = "nodes"
CLAIMS: Final = "resourceclaims.resource.k8s.io"
SLICES: Final = "resourceslices.resource.k8s.io"
RULES: Final = "devicetaintrules.resource.k8s.io"
REPLICA_SETS: Final = "replicasets.apps"
GROUPS: Final = "podgroups.scheduling.k8s.io"

MOST_WRITES: Final = 10_000
"""A busy day has some thousand. Whoever writes more never rests: each write makes somebody write again."""

Place = tuple[str, str]
"""Namespace and name."""


class Change(NamedTuple):
    """One write: what was there before (None: nothing), and what is there now (None: nothing any more)."""

    resource: str
    place: Place
    old: Any
    new: Any


class Ledger:
    """All stored objects. `problems` collects what must not be; `trace` is the same for the same history."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.problems: list[str] = []
        self.on_change: list[Callable[[Change], None]] = []
        self.end_day: Callable[[], object] = lambda: None
        """Called when the day does not end by itself."""
        self.writes = 0
        self._objects: dict[str, dict[Place, Any]] = {}
        self._hash = hashlib.sha256()

    def witness(self, event: Event) -> None:
        """A change became durable."""
        key = event.record.key
        place = (key.namespace, key.name)
        table = self._objects.setdefault(key.resource, {})
        old = table.get(place)
        new = None if event.type is EventType.DELETED else event.record.obj
        if new is None:
            table.pop(place, None)
        else:
            table[place] = new
        self.writes += 1
        if self.writes == MOST_WRITES:
            self.blame(f"{MOST_WRITES} writes, the last of {key}: somebody never rests")
            self.end_day()
        self._hash.update(f"{self.clock.monotonic():.6f} {event.type.name} {key}\n".encode())
        self._hash.update(event.record.data)
        for listener in self.on_change:
            listener(Change(key.resource, place, old, new))

    @property
    def trace(self) -> str:
        """A digest of everything that was ever written, and when."""
        return self._hash.hexdigest()

    def blame(self, problem: str) -> None:
        """Something happened that must not."""
        self.problems.append(f"at {self.clock.monotonic():.3f}s: {problem}")

    def find(self, resource: str, namespace: str, name: str) -> Any:
        """An object, None if there is none."""
        return self._objects.get(resource, {}).get((namespace, name))

    def all(self, resource: str) -> list[Any]:
        """All objects of a resource."""
        return list(self._objects.get(resource, {}).values())

    @property
    def pods(self) -> list[Pod]:
        """All pods."""
        return self.all(PODS)

    @property
    def claims(self) -> list[ResourceClaim]:
        """All claims."""
        return self.all(CLAIMS)

    @property
    def slices(self) -> list[ResourceSlice]:
        """All slices."""
        return self.all(SLICES)

    @property
    def rules(self) -> list[DeviceTaintRule]:
        """All rules."""
        return self.all(RULES)

    @property
    def marks(self) -> list[ResourceSlice | DeviceTaintRule]:
        """Everything that can taint a device."""
        return [*self.slices, *self.rules]

    @property
    def nodes(self) -> list[Node]:
        """All nodes."""
        return self.all(NODES)


def claim_names(pod: Pod) -> list[str]:
    """The names of the claims that a pod uses; those of templates as far as they are known."""
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    names = [entry.resource_claim_name or made.get(entry.name) for entry in pod.spec.resource_claims]
    if pod.status.extended_resource_claim_status is not None:
        names.append(pod.status.extended_resource_claim_status.resource_claim_name)
    return [name for name in names if name]


def is_finished(pod: Pod) -> bool:
    """Whether a pod has ended."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_owned(obj: Object, uid: str) -> bool:
    """Whether an object belongs to another."""
    return any(owner.uid == uid for owner in obj.metadata.owner_references)

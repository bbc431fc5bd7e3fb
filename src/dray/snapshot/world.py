"""The cluster behind a family of snapshots, moved from one to the other by what differs between them.

root objects ──┬── snapshot {}              the world stands at one of them;
               ├── snapshot {a: changed}    asking another first applies the difference,
               └── snapshot {a: …, b: gone} which is small, so that changed copies are cheap
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar, get_args

from dray.api.generated.core import Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.generated.scheduling import PodGroup
from dray.api.generated.storage import StorageClass
from dray.api.kinds import NODES
from dray.api.meta import Object
from dray.api.pods import is_active
from dray.api.references import ObjectKey
from dray.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from dray.scheduling.cluster import Cluster
from dray.scheduling.pod_info import identified, read_pod
from dray.tracker import Event, Remove, TrackedObject, Upsert

Changes = Mapping[ObjectKey, Object | None]
T = TypeVar("T", bound=Object)

READ = (
    *(*get_args(TrackedObject), Namespace, PersistentVolumeClaim, PersistentVolume, StorageClass, Node, ResourceClaim),
    *(PodGroup, PodDisruptionBudget, Pod),
)
"""The kinds that a decision depends on. Whoever makes a snapshot of a running cluster reads all of them."""

VOLUME_KINDS = {PersistentVolumeClaim, PersistentVolume, StorageClass}


class World:
    """The machinery behind snapshots that share a root: the cluster as the scheduler sees it."""

    def __init__(
        self,
        root: dict[ObjectKey, Object],
        *,
        has_all_nodes: bool | None = None,
        has_all_volumes: bool | None = None,
    ) -> None:
        """Unless the root `has_all_nodes`, a node that slices mention is there, too, until somebody takes it away.

        Unless it `has_all_volumes`, pods whose volumes it lacks cannot be judged. If nobody says so, it has all of
        them if it has any: a dump of a cluster has them all or leaves them out.
        """
        self.root = root
        self.cluster = Cluster()
        self._at: Changes = {}
        self._mentions: dict[str, int] = {}
        self._told_of: set[str] = set()
        """Nodes that are there, or were and are gone, as somebody said: slices that mention them add nothing."""
        if has_all_nodes is None:
            has_all_nodes = any(isinstance(obj, Node) for obj in root.values())
        self._has_all_nodes = has_all_nodes
        if has_all_volumes is None:
            has_all_volumes = {type(obj) for obj in root.values()} >= VOLUME_KINDS
        self.cluster.volumes.are_known = has_all_volumes
        self._built = False
        self._is_lent = False

    @contextmanager
    def lend(self) -> Iterator[Cluster]:
        """The cluster, for somebody who changes it and takes everything back. Nobody moves it meanwhile."""
        if self._is_lent:
            raise RuntimeError("two rehearsals at once in snapshots of one family")
        self._is_lent = True
        try:
            yield self.cluster
        finally:
            self._is_lent = False

    def move_to(self, changes: Changes, base: Changes | None = None, touched: Iterable[ObjectKey] = ()) -> None:
        """Makes the cluster that of the snapshot with these changes.

        If they differ from those of another snapshot, `base`, only in what is `touched`, a step from there costs no
        more than that: a chain of a thousand small changes is not a thousand comparisons of everything.
        """
        if not self._built:
            self._built = True
            self._apply((None, obj) for obj in self.root.values())
        if changes is self._at:
            return
        if self._is_lent:
            raise RuntimeError("another snapshot of the family was asked during a rehearsal")
        refs = touched if base is self._at else {**self._at, **changes}
        differing = [ref for ref in refs if self._now(ref) is not self._then(ref, changes)]
        steps = [(self._now(ref), self._then(ref, changes)) for ref in differing]
        self._at = changes
        self._apply(iter(steps))

    def _now(self, ref: ObjectKey) -> Object | None:
        return self._at[ref] if ref in self._at else self.root.get(ref)

    def _then(self, ref: ObjectKey, changes: Changes) -> Object | None:
        return changes[ref] if ref in changes else self.root.get(ref)

    def _apply(self, steps: Iterator[tuple[Object | None, Object | None]]) -> None:
        events: list[Event] = []
        claims: list[tuple[ResourceClaim | None, ResourceClaim | None]] = []
        for old, new in steps:
            obj = new if new is not None else old
            if not isinstance(obj, READ):
                continue
            if isinstance(obj, TrackedObject):
                events.append(Upsert(obj) if new is not None else Remove.of(obj))
                self._note(old, new)
            elif isinstance(obj, Namespace):
                self.cluster.set_namespace(obj.metadata.name, obj.metadata.labels if new is not None else None)
            elif isinstance(obj, PersistentVolumeClaim):
                self.cluster.volumes.set_claim(_as(old, PersistentVolumeClaim), _as(new, PersistentVolumeClaim))
            elif isinstance(obj, PersistentVolume):
                self.cluster.volumes.set_volume(_as(old, PersistentVolume), _as(new, PersistentVolume))
            elif isinstance(obj, StorageClass):
                self.cluster.volumes.set_class(_as(old, StorageClass), _as(new, StorageClass))
            elif isinstance(obj, Node):
                self._set_node(_as(old, Node), _as(new, Node))
            elif isinstance(obj, ResourceClaim):
                claims.append((_as(old, ResourceClaim), _as(new, ResourceClaim)))
            elif isinstance(obj, PodGroup):
                self.cluster.groups.set(_as(old, PodGroup), _as(new, PodGroup))
            elif isinstance(obj, PodDisruptionBudget):
                self.cluster.budgets.change(_as(old, PodDisruptionBudget), _as(new, PodDisruptionBudget))
            elif isinstance(obj, Pod):
                self._set_pod(_as(old, Pod), _as(new, Pod))
        self.cluster.track(*events)
        for old_claim, new_claim in claims:
            self.cluster.set_claim(old_claim, new_claim)

    def _note(self, old: Object | None, new: Object | None) -> None:
        """Classes, and the nodes that slices mention: a dump without Node objects still has nodes."""
        for obj, step in ((old, -1), (new, 1)):
            if isinstance(obj, DeviceClass):
                self.cluster.set_class(obj.metadata.name, None)
            elif isinstance(obj, ResourceSlice):
                for name in _mentioned(obj):
                    self._mention(name, step)
        if isinstance(new, DeviceClass):
            self.cluster.set_class(new.metadata.name, new)

    def _mention(self, name: str, step: int) -> None:
        before = self._mentions.get(name, 0)
        self._mentions[name] = before + step
        if self._has_all_nodes or name in self._told_of:
            return
        if before <= 0 < before + step:
            self.cluster.mention_node(name)
        elif before + step <= 0:
            self.cluster.forget_node(name)

    def _set_node(self, old: Node | None, new: Node | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        name = obj.metadata.name
        is_told_of = new is not None or ObjectKey(NODES.resource, "", name) in self.root  # and then taken away
        (self._told_of.add if is_told_of else self._told_of.discard)(name)
        if not is_told_of and not self._has_all_nodes and self._mentions.get(name, 0) > 0:
            self.cluster.mention_node(name)
        else:
            self.cluster.set_node(old, new)

    def _set_pod(self, old: Pod | None, new: Pod | None) -> None:
        """Pods on nodes take room there, and so do those for which others have to go from a node."""
        if old is not None:
            self.cluster.set_pod(None, identified(old).metadata.uid)
        if new is not None and new.spec.node_name:
            placed = identified(new)
            self.cluster.set_pod(placed, placed.metadata.uid)
        elif new is not None and new.status.nominated_node_name and is_active(new):
            self.cluster.nominations.set(read_pod(identified(new)), new.status.nominated_node_name)


def _mentioned(published: ResourceSlice) -> list[str]:
    """The nodes that a slice names, for all of its devices or for each."""
    spec = published.spec
    devices = spec.devices if spec.per_device_node_selection else ()
    return [name for name in dict.fromkeys((spec.node_name, *(device.node_name for device in devices))) if name]


def _as(obj: Object | None, kind: type[T]) -> T | None:
    return obj if isinstance(obj, kind) else None

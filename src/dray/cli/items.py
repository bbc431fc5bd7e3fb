"""What `dray get` shows, as values for programs: numbers are numbers, lists are lists, what is not there is null."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dray.api.resource.claim import ClaimState, claim_state
from dray.api.taints import taint_text
from dray.api.times import Time

if TYPE_CHECKING:
    from dray.api.cluster import ManagedCluster
    from dray.api.resource import ResourceClaim
    from dray.cli.file_view import FileView
    from dray.live.cluster_view import LiveView
    from dray.live.fleet_view import FleetView
    from dray.scheduling.device_states import Block, DeviceState

State = Literal["free", "held", "tainted", "blocked", "shareable"]
BlockWord = Literal[
    "countersUsedUp",
    "capacityUsedUp",
    "poolIncomplete",
    "poolInvalid",
    "nodeGone",
    "nodeNotReady",
    "nodeCordoned",
    "nodeDrained",
    "nodeTainted",
]
"""What keeps a device from being had; of several nodes in reach, what is so of all of them."""


class Item(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One thing; `key` tells it from all others of its kind."""

    @property
    def key(self) -> str:
        """`kind/name`, as `-o name` prints it."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """What tells it from all others in a table."""
        return self.key.partition("/")[2]

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells it from all others."""
        return (self.key,)


class TaintItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A taint of a device; `rule` is null if its driver publishes it."""

    taint: str
    rule: str | None


class DeviceItem(Item, frozen=True, kw_only=True):
    """A device."""

    driver: str
    pool: str
    name: str
    node: str | None
    """Null if it is not on one node."""
    state: tuple[State, ...]
    blocked_by: str | None
    held_by: tuple[str, ...]
    taints: tuple[TaintItem, ...]
    patched_by: tuple[str, ...]
    attributes: dict[str, bool | int | str | list[Any]]
    capacity: dict[str, str]
    """In all, as quantities."""

    @property
    def key(self) -> str:
        """By driver, pool and name."""
        return f"device/{self.driver}/{self.pool}/{self.name}"

    @property
    def label(self) -> str:
        """Pools of several drivers may be called the same."""
        return "  ".join(filter(None, (f"{self.pool}/{self.name}", self.node, self.driver)))

    @property
    def identity(self) -> tuple[str, ...]:
        """A pool may publish one name on several nodes."""
        return self.key, self.node or ""


class ClaimItem(Item, frozen=True, kw_only=True):
    """A ResourceClaim."""

    namespace: str
    name: str
    state: ClaimState
    devices: tuple[str, ...] | None
    """`driver/pool/device`; null if it is not allocated."""
    used_by: tuple[str, ...]

    @property
    def key(self) -> str:
        """By namespace and name."""
        return f"resourceclaim/{self.namespace}/{self.name}"


class NodeItem(Item, frozen=True, kw_only=True):
    """A node, with its devices and pods in numbers."""

    name: str
    state: tuple[str, ...]
    """`ready`, `not ready`, `gone` or, in files, `not known`; besides `unschedulable`, `draining`, `drained` or
    `tainted`."""
    taints: tuple[str, ...]
    """Those that people or programs chose, and that keep pods away."""
    ready: bool | None
    """Null if nobody says."""
    unschedulable: bool
    devices: int
    free: int
    held: int
    blocked: int
    blocked_by: dict[BlockWord, int]
    """How many of the blocked devices are so for which reason; each has one."""
    tainted: int
    unusable_pools: dict[str, str]
    """Pools of the node whose devices do not count, as `driver/pool`, and why."""
    pods: int
    leaving: int
    """Pods that must leave, and are there still."""
    stopping: int
    """How many of them are being deleted already."""
    standstill: str | None
    """`stopped`, `held` or `paused` if no other of them leaves now; else null."""
    waiting_for_budgets: dict[str, int]
    """How many of them wait for each disruption budget that allows none now."""
    last_leaves_not_before: str | None
    """A time before which the last of them does not leave, by its tolerations; null if that is not known."""

    @property
    def key(self) -> str:
        """By name."""
        return f"node/{self.name}"


class ClusterItem(Item, frozen=True, kw_only=True):
    """A cluster of a hub."""

    name: str
    state: str
    cluster_set: str | None
    free_devices: dict[str, int]
    """By class."""
    total_devices: dict[str, int]
    taints: tuple[str, ...]
    placements: int

    @property
    def key(self) -> str:
        """By name."""
        return f"managedcluster/{self.name}"


def devices(view: LiveView | FileView, node: str = "") -> Iterator[DeviceItem]:
    """All devices, or those in reach of a node."""
    return (_device(row) for row in view.devices(node))


def _device(row: DeviceState) -> DeviceItem:
    from dray.scheduling.device_state_text import tell_block

    device = row.device
    return DeviceItem(
        driver=device.id.driver,
        pool=device.id.pool,
        name=device.id.device,
        node=device.access.node_name,
        state=row.words,
        blocked_by=tell_block(row.block) if row.block is not None else None,
        held_by=row.holders,
        taints=tuple(TaintItem(taint=taint_text(one.taint), rule=one.rule or None) for one in device.taints),
        patched_by=tuple(device.patches),
        attributes=dict(_attributes(row)),
        capacity={name: str(one.value) for name, one in device.device.capacity.items()},
    )


def _attributes(row: DeviceState) -> Iterator[tuple[str, Any]]:
    """With their types; a version is a text."""
    from dray.api import codec

    for name, value in row.device.device.attributes.items():
        plain = codec.to_builtins(value)
        yield name, next((one for one in plain.values() if one is not None), None)


def claims(view: LiveView | FileView, namespace: str = "") -> Iterator[ClaimItem]:
    """All claims, or those of a namespace."""
    return (_claim(one) for one in view.claims() if namespace in ("", one.metadata.namespace))


def _claim(claim: ResourceClaim) -> ClaimItem:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else None
    return ClaimItem(
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        state=claim_state(claim),
        devices=None if results is None else tuple(f"{one.driver}/{one.pool}/{one.device}" for one in results),
        used_by=tuple(one.name for one in claim.status.reserved_for),
    )


def nodes(view: LiveView | FileView, wanted: str = "") -> Iterator[NodeItem]:
    """All nodes, or one."""
    from dray.cli.node_rows import node_rows

    for row in node_rows(view, wanted):
        devices, free, held, blocked, tainted = row.counts
        yield NodeItem(
            name=row.name,
            state=row.words,
            taints=row.taints,
            ready=row.is_ready,
            unschedulable=row.node is not None and bool(row.node.spec.unschedulable),
            devices=devices,
            free=free,
            held=held,
            blocked=blocked,
            blocked_by=_blocked_by(row.devices),
            tainted=tainted,
            unusable_pools={f"{one.driver}/{one.name}": one.problem or "" for one in row.unusable},
            pods=row.pods,
            leaving=len(row.leaving) + row.stopping,
            stopping=row.stopping,
            standstill=row.standstill,
            waiting_for_budgets=row.waiting,
            last_leaves_not_before=None if row.last_leaves is None else str(Time.of(row.last_leaves)),
        )


def _blocked_by(devices: Iterable[DeviceState]) -> dict[BlockWord, int]:
    counted: dict[BlockWord, int] = {}
    for device in devices:
        if device.block is not None:
            word = _word_of(device.block)
            counted[word] = counted.get(word, 0) + 1
    return counted


def _word_of(block: Block) -> BlockWord:
    from dray.allocator.reasons import CapacityShort
    from dray.scheduling.device_states import NodeBlock, NodeProblem, PoolBlock

    words: dict[NodeProblem, BlockWord] = {
        NodeProblem.GONE: "nodeGone",
        NodeProblem.NOT_READY: "nodeNotReady",
        NodeProblem.CORDONED: "nodeCordoned",
        NodeProblem.DRAINED: "nodeDrained",
        NodeProblem.TAINTED: "nodeTainted",
    }
    match block:
        case NodeBlock():
            return words[block.problem]
        case PoolBlock():
            return "poolIncomplete" if block.incomplete else "poolInvalid"
    return "capacityUsedUp" if isinstance(block, CapacityShort) else "countersUsedUp"


def clusters(view: FleetView) -> Iterator[ClusterItem]:
    """All clusters of a hub."""
    selections = view.selections()
    return (_cluster(one, selections[one.metadata.name]) for one in view.clusters())


def _cluster(cluster: ManagedCluster, placements: int) -> ClusterItem:
    from dray.api.cluster.cluster_set import CLUSTER_SET_LABEL
    from dray.api.cluster.managed_cluster import claimed_counts
    from dray.api.well_known import FREE_DEVICES, TOTAL_DEVICES
    from dray.views.hub import cluster_state

    return ClusterItem(
        name=cluster.metadata.name,
        state=cluster_state(cluster),
        cluster_set=cluster.metadata.labels.get(CLUSTER_SET_LABEL),
        free_devices=claimed_counts(cluster, FREE_DEVICES),
        total_devices=claimed_counts(cluster, TOTAL_DEVICES),
        taints=tuple(taint_text(one) for one in cluster.spec.taints),
        placements=placements,
    )

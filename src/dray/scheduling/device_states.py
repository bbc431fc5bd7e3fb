"""What every device is good for now: free, held, tainted or blocked. The one place that decides it.

    inventory (who holds what, counters, capacities) ┐
    nodes (there, ready, not cordoned or emptied)    ├─▶ DeviceStates ─▶ sets of devices for who counts
    taints                                           ┘              └─▶ DeviceState for who shows or asks why

    free      a claim without tolerations can have it now, all of it or a share
    held      claims have it, or shares of it
    tainted   a taint keeps claims without toleration away
    blocked   not held whole, and no claim can have it: `Block` says why

A device can be held and tainted, held and free (there is room for another share) or held and blocked (there is not).
Neither held, tainted nor free is blocked. Asking costs what changed since the last time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from dray.allocator.holdings import Occupancy
from dray.allocator.obstacles import capacity_obstacle, counter_obstacle
from dray.allocator.pools import reaches
from dray.allocator.reasons import CapacityShort, CounterShort, GroupsIncompatible
from dray.api.generated.core import Node
from dray.api.nodes import is_known_unready
from dray.api.resource.pool import PoolKey
from dray.api.resource.taint import EFFECT_NO_EXECUTE, EFFECT_NONE
from dray.eviction.drain import is_drained
from dray.scheduling.cluster import Cluster
from dray.tracker.columns import positions
from dray.tracker.view import EffectiveDevice, NodeAccess, PoolView


class NodeProblem(StrEnum):
    """Why no pod can come to a node."""

    GONE = "gone"
    NOT_READY = "not ready"
    CORDONED = "cordoned"
    DRAINED = "set aside by a drain"
    """Its pods are leaving, or have left: the devices are out of service until somebody puts the node back."""
    TAINTED = "tainted NoExecute"


class NodeBlock(msgspec.Struct, frozen=True):
    """The device is local to a node that takes no pods; without a name: no node in reach does."""

    node: str | None
    problem: NodeProblem


class PoolBlock(msgspec.Struct, frozen=True):
    """The device's pool cannot be allocated from: it is incomplete or invalid (SVS-50)."""

    message: str
    incomplete: bool


Block: TypeAlias = NodeBlock | PoolBlock | CounterShort | GroupsIncompatible | CapacityShort


StateWord: TypeAlias = Literal["held", "tainted", "blocked", "shareable", "free"]


class DeviceState(msgspec.Struct, frozen=True):
    """One device. `block` says why it cannot be had if that is not for its holders or taints alone."""

    device: EffectiveDevice
    holders: tuple[str, ...]
    """The claims that have it or a share of it."""
    is_free: bool
    is_tainted: bool
    is_blocked: bool
    block: Block | None = None
    node_block: NodeBlock | None = None
    """Why no new pod can use it where it is, whoever holds it."""

    @property
    def words(self) -> tuple[StateWord, ...]:
        """`free`, `tainted`, `blocked` or `held`; held ones may be tainted, blocked or shared besides."""
        told: list[StateWord] = []
        if self.holders:
            told.append("held")
        if self.is_tainted:
            told.append("tainted")
        if self.is_blocked:
            told.append("blocked")
        if self.is_free:
            told.append("shareable" if self.holders else "free")
        return tuple(told)


class PoolState(NamedTuple):
    """Sets of positions in a pool, or in a part of one."""

    occupancy: Occupancy
    held: int
    tainted: int
    blocked: int
    free: int

    @property
    def view(self) -> PoolView:
        """The devices."""
        return self.occupancy.pool.view


class _Fixed(NamedTuple):
    """What stays while a pool is as it is published."""

    view: PoolView
    tainted: int
    limited: int
    """Devices that draw from counters, or whose capacity is given away by a policy."""
    by_access: dict[NodeAccess, int]


class _Known(NamedTuple):
    fixed: _Fixed
    occupancy: Occupancy
    revision: int
    away: int
    state: PoolState


class Difference(NamedTuple):
    """A pool in its parts, as it was when it was looked at last, and as it is; empty if it is not there."""

    before: list[PoolState]
    after: list[PoolState]


class DeviceStates:
    """The devices of a cluster. Remembers what it found out, and looks again at what has changed since.

    nodes that changed ─▶ is something else the matter with them? ─▶ their pools ─┐
    pools that changed, or of which something was given or taken back ────────────┴─▶ judged anew
    """

    def __init__(self) -> None:
        self._known: dict[PoolKey, list[_Known]] = {}
        self._nodes = _Nodes()
        self._cluster: Cluster | None = None
        self._seen = (0, 0)
        """How much of what happened to its nodes and pools is noted."""
        self._nodes_to_look_at: dict[str, None] = {}
        self._pools_to_look_at: dict[PoolKey, None] = {}

    def pools(self, cluster: Cluster) -> Iterator[PoolState]:
        """Every pool, or part of one, by driver and name."""
        for _ in self._steps(cluster):
            pass
        for key in sorted(self._known):
            yield from [one.state for one in self._known[key]]

    def differences(self, cluster: Cluster, at_once: int) -> Iterator[list[Difference]]:
        """The pools that may be different from what they were the last time, some at a time.

        No step looks at more nodes or pools than that, and the cluster may change between two: what comes later is for
        the next time. So is what is left if somebody stops; what was yielded is not told again.
        """
        some: list[Difference] = []
        for number, difference in enumerate(self._steps(cluster), 1):
            if difference is not None:
                some.append(difference)
            if number % at_once == 0:
                yield some
                some = []
        yield some

    def _steps(self, cluster: Cluster) -> Iterator[Difference | None]:
        """Looks at what has changed, a node or a pool for each step."""
        self._catch_up(cluster)
        nodes, pools = self._nodes_to_look_at, self._pools_to_look_at
        for name in list(nodes):
            del nodes[name]
            if self._nodes.look(cluster, name):
                for key in cluster.inventory.pools_local_to(name):
                    pools[key] = None
                if self._nodes.forget_shared():
                    pools.update(dict.fromkeys(cluster.inventory.shared_pools()))
            yield None
        for key in list(pools):
            del pools[key]
            before = self._known.get(key, ())
            yield Difference([one.state for one in before], self._look(cluster, key))

    def _catch_up(self, cluster: Cluster) -> None:
        """Notes what happened since the last time; everything, where that is not known."""
        nodes, pools = cluster.nodes.changes, cluster.inventory.pool_changes
        seen_of_nodes, seen_of_pools = self._seen
        if self._cluster is cluster and nodes.reaches(seen_of_nodes) and pools.reaches(seen_of_pools):
            self._nodes_to_look_at.update(dict.fromkeys(nodes.read(seen_of_nodes)))
            self._pools_to_look_at.update(dict.fromkeys(pools.read(seen_of_pools)))
        else:
            self._cluster = cluster
            self._nodes_to_look_at.update(dict.fromkeys((*self._nodes.names(), *cluster.nodes.names())))
            self._pools_to_look_at.update(dict.fromkeys((*self._known, *cluster.inventory.pool_keys())))
        self._seen = (nodes.end, pools.end)

    def pools_of(self, cluster: Cluster, keys: Collection[PoolKey]) -> Iterator[tuple[PoolKey, list[PoolState]]]:
        """Some pools, each in its parts, none if it is gone. Nodes count as `pools` saw them."""
        for key in keys:
            yield key, self._look(cluster, key)

    def _look(self, cluster: Cluster, key: PoolKey) -> list[PoolState]:
        """The parts of a pool. What was found out of a part counts while nothing about it changes."""
        before = {id(one.fixed.view): one for one in self._known.pop(key, ())}
        known: list[_Known] = []
        for occupancy in cluster.inventory.occupancies_of(key):
            view = occupancy.pool.view
            found = before.get(id(view))
            fixed = found.fixed if found is not None else _read(view)
            away = 0
            for access, mask in fixed.by_access.items():
                if self._nodes.problem(access, view.hidden_from) is not None:
                    away |= mask
            if found is None or (found.occupancy, found.revision, found.away) != (occupancy, occupancy.revision, away):
                found = _Known(fixed, occupancy, occupancy.revision, away, _judge(occupancy, fixed, away))
            known.append(found)
        if known:
            self._known[key] = known
        return [one.state for one in known]

    def devices(self, cluster: Cluster) -> Iterator[DeviceState]:
        """Every device, by driver, pool and position."""
        for pool in list(self.pools(cluster)):
            yield from self.of_pool(pool)

    def of_pool(self, pool: PoolState) -> Iterator[DeviceState]:
        """The devices of a pool as `pools` found it last, by position."""
        for position, device in enumerate(pool.view.devices):
            bit = 1 << position
            is_blocked = bool(pool.blocked & bit)
            away = self._node_block(pool.view, device)
            yield DeviceState(
                device=device,
                holders=pool.occupancy.holders(position) if pool.held & bit else (),
                is_free=bool(pool.free & bit),
                is_tainted=bool(pool.tainted & bit),
                is_blocked=is_blocked,
                block=(away or _block(pool, position)) if is_blocked else None,
                node_block=away,
            )

    def _node_block(self, view: PoolView, device: EffectiveDevice) -> NodeBlock | None:
        problem = self._nodes.problem(device.access, view.hidden_from)
        return NodeBlock(device.access.node_name, problem) if problem is not None else None


def in_reach(devices: Iterable[DeviceState], node: str, cluster: Cluster) -> Iterator[DeviceState]:
    """Those that can be used from a node; of one that is not there, those that are local to it."""
    info = cluster.nodes.get(node)
    for one in devices:
        access = one.device.access
        if access.node_name == node or (info is not None and reaches(access, node, info.node.metadata.labels)):
            yield one


def _block(pool: PoolState, position: int) -> Block | None:
    problem = pool.occupancy.pool.problem
    return PoolBlock(problem, pool.view.incomplete) if problem is not None else _used_up(pool.occupancy, position)


def _read(view: PoolView) -> _Fixed:
    tainted = limited = 0
    by_access: dict[NodeAccess, int] = {}
    last, mask, bit = None, 0, 1
    for device in view.devices:
        if device.access is not last:
            if last is not None:
                by_access[last] = by_access.get(last, 0) | mask
            last, mask = device.access, 0
        mask |= bit
        if device.taints and any(taint.effect != EFFECT_NONE for taint in device.taints):
            tainted |= bit
        entry = device.device
        if entry.consumes_counters or any(one.request_policy is not None for one in entry.capacity.values()):
            limited |= bit
        bit <<= 1
    if last is not None:
        by_access[last] = by_access.get(last, 0) | mask
    return _Fixed(view, tainted, limited, by_access)


def _judge(occupancy: Occupancy, fixed: _Fixed, away: int) -> PoolState:
    """`away` are the devices that no node can use."""
    everything = (1 << len(fixed.view.devices)) - 1
    held = occupancy.taken | occupancy.shared
    lost = everything if occupancy.pool.problem is not None else away
    for position in positions((fixed.limited | occupancy.shared) & ~occupancy.taken & ~lost):
        if _used_up(occupancy, position) is not None:
            lost |= 1 << position
    blocked = lost & ~occupancy.taken & ~(fixed.tainted & ~held)
    free = everything & ~occupancy.taken & ~fixed.tainted & ~lost
    return PoolState(occupancy, held, fixed.tainted, blocked, free)


def _used_up(occupancy: Occupancy, position: int) -> CounterShort | GroupsIncompatible | CapacityShort | None:
    """What a device that nobody holds alone draws from, if others leave too little of it."""
    is_shared = occupancy.shared >> position & 1
    draws = not (is_shared and occupancy.pool.view.devices[position].device.allow_multiple_allocations)
    short = counter_obstacle(occupancy, position) if draws else None
    return short or capacity_obstacle(occupancy, position)


class _Nodes:
    """What is the matter with nodes, and so with the devices that can be used from there."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Node, NodeProblem | None]] = {}
        self._shared: dict[tuple[NodeAccess, frozenset[str]], NodeProblem | None] = {}

    def names(self) -> Iterable[str]:
        """All that were there when they were looked at."""
        return self._seen.keys()

    def look(self, cluster: Cluster, name: str) -> bool:
        """Takes a node as it is now; whether devices may be good for something else since."""
        info, before = cluster.nodes.get(name), self._seen.get(name)
        if info is None:
            return self._seen.pop(name, None) is not None
        if before is not None and before[0] is info.node:
            return False
        self._seen[name] = (info.node, problem_of(info.node))
        return before is None or differs_for_devices(before[0], info.node)

    def forget_shared(self) -> bool:
        """What was found out for several nodes together may be otherwise; whether there was anything."""
        was_known = bool(self._shared)
        self._shared.clear()
        return was_known

    def problem(self, access: NodeAccess, hidden_from: frozenset[str]) -> NodeProblem | None:
        """Why devices cannot be used from anywhere in reach; None if they can."""
        if access.node_name is not None:
            found = self._seen.get(access.node_name)
            return NodeProblem.GONE if found is None else found[1]
        key = (access, hidden_from)
        if key not in self._shared:
            self._shared[key] = self._problem_of_all(access, hidden_from)
        return self._shared[key]

    def _problem_of_all(self, access: NodeAccess, hidden_from: frozenset[str]) -> NodeProblem | None:
        problems: set[NodeProblem] = set()
        for name, (node, problem) in self._seen.items():
            if name not in hidden_from and reaches(access, name, node.metadata.labels):
                if problem is None:
                    return None
                problems.add(problem)
        return problems.pop() if len(problems) == 1 else NodeProblem.NOT_READY if problems else NodeProblem.GONE


def problem_of(node: Node) -> NodeProblem | None:
    """Why no new pod comes to a node, None if some can.

    Taints that make pods leave keep new ones away, those of a drain do, too. Others are how nodes are set aside for who
    tolerates them: what such nodes have is there to be had.
    """
    if is_known_unready(node):
        return NodeProblem.NOT_READY
    if node.spec.unschedulable:
        return NodeProblem.CORDONED
    if is_drained(node):
        return NodeProblem.DRAINED
    evicts = any(taint.effect == EFFECT_NO_EXECUTE for taint in node.spec.taints)
    return NodeProblem.TAINTED if evicts else None


def differs_for_devices(before: Node, now: Node) -> bool:
    """Whether devices may be good for something else since a node changed."""
    return problem_of(before) != problem_of(now) or before.metadata.labels != now.metadata.labels

"""The cluster as the allocator knows it: pools, nodes and who holds what, kept up to date by events.

    pools ──┐
    nodes ──┼─→ Inventory ──→ Layout (what is in sight from a node, made when asked for)
    claims ─┘        └──→ candidate nodes of a problem: all but those that are known not to fit

An event costs what it changes. Pools, layouts and results are immutable; only holdings and the marks for nodes change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final, TypeVar

from dray import cel
from dray.allocator.change_log import ChangeLog
from dray.allocator.faults import FaultLog
from dray.allocator.holdings import Holding, Holdings, Occupancy
from dray.allocator.layout import Layout, in_order
from dray.allocator.nodes import Node, Nodes, NodeSet
from dray.allocator.pools import Pool, reaches
from dray.allocator.requests import ClaimReader, CriteriaTable
from dray.allocator.shapes import Inserted, NodeChange, PoolTouched, Removed, Shape, Touched, shape_key
from dray.api.node_selector import NodeSelector
from dray.api.recent import Recent
from dray.api.resource import AllocationResult, DeviceClass, ResourceClaim
from dray.api.resource.pool import PoolKey
from dray.tracker.view import DeviceId, NodeAccess, PoolView

_CACHED_SHAPES: Final = 512
_CACHED_SHAPE_BYTES: Final = 8 << 20
"""Of what the claims say: each of them may say megabytes."""

Entry = TypeVar("Entry", str, NodeSelector)


class Inventory:
    """Pools, nodes and allocations. Every order of events that leads to the same cluster gives the same answers."""

    def __init__(self, backlog: cel.Backlog | None = None) -> None:
        """With a backlog, evaluations that take long are left to it; without, they are made when they are needed."""
        self._pools: dict[PoolKey, tuple[Pool, ...]] = {}
        """One pool, or its parts, each a pool for some nodes."""
        self._holdings: dict[PoolKey, Holdings] = {}
        self._claims: dict[str, AllocationResult] = {}
        self._nodes = Nodes()
        self._local: dict[str, set[PoolKey]] = {}
        """Pools with devices that are local to a node, by node name."""
        self._everywhere: set[PoolKey] = set()
        self._by_selector: dict[NodeSelector, set[PoolKey]] = {}
        self._selector_faults: dict[PoolKey, str] = {}
        self._faults = FaultLog(self._pools)
        self._criteria = CriteriaTable(backlog)
        self._shapes: Recent[bytes, Shape] = Recent(_CACHED_SHAPES, _CACHED_SHAPE_BYTES)
        self._changes: ChangeLog[NodeChange] = ChangeLog()
        self.pool_changes: ChangeLog[PoolKey] = ChangeLog()
        """Pools that came, changed or went, or of which something was given away or taken back."""

    # Pools

    def apply_pools(self, changed: Iterable[PoolView | PoolKey]) -> None:
        """Pools that are new or different, as views, and those that are gone, by (driver, name)."""
        for change in changed:
            if isinstance(change, PoolView):
                pools = tuple([self._known_or_new(each) for each in change.each()])
                self._put_pool((change.driver, change.name), pools)
            else:
                self._drop_pool(change)

    def _known_or_new(self, view: PoolView) -> Pool:
        """A part that is as it was keeps what was found out about it."""
        for known in self._pools.get((view.driver, view.name), ()):
            if known.view is view:
                return known
        return Pool(view)

    def _put_pool(self, key: PoolKey, pools: tuple[Pool, ...]) -> None:
        self._unlink(key)
        self.pool_changes.append(key)
        self._pools[key] = pools
        holdings = self._holdings.get(key)
        if holdings is None:
            holdings = self._holdings[key] = Holdings()
        holdings.publish(pools)
        self._faults.changed(key)
        for pool in pools:
            self._link(pool)
            self._forget_layouts(pool)

    def _link(self, pool: Pool) -> None:
        for node in pool.local_nodes:
            self._local.setdefault(node, set()).add(pool.key)
        for selector in pool.selectors:
            self._by_selector.setdefault(selector, set()).add(pool.key)
        if pool.everywhere:
            self._everywhere.add(pool.key)
        if pool.selector_fault is not None:
            self._selector_faults[pool.key] = pool.selector_fault

    def _drop_pool(self, key: PoolKey) -> None:
        self._unlink(key)
        self.pool_changes.append(key)
        holdings = self._holdings.get(key)
        if holdings is not None:
            holdings.publish(())
            if not holdings.by_device:
                del self._holdings[key]

    def _unlink(self, key: PoolKey) -> None:
        for pool in self._pools.pop(key, ()):
            for node in pool.local_nodes:
                _discard(self._local, node, key)
            for selector in pool.selectors:
                _discard(self._by_selector, selector, key)
            self._forget_layouts(pool)
        self._everywhere.discard(key)
        self._selector_faults.pop(key, None)

    def _forget_layouts(self, pool: Pool) -> None:
        """What is in sight from the nodes that see a pool has changed."""
        nodes: Iterable[Node | None] = map(self._nodes.get, pool.local_nodes)
        if pool.everywhere or pool.selectors:
            nodes = self._nodes
        for node in nodes:
            if node is not None:
                node.layout = None
        self._touch_pool(pool)

    # Nodes

    def set_node(self, name: str, labels: Mapping[str, str]) -> None:
        """A node is new, or its labels changed."""
        node = self._nodes.get(name)
        if node is None:
            self._changes.append(Inserted(self._nodes.add(Node(name, dict(labels)))))
        elif node.labels != labels:
            node.labels = dict(labels)
            node.layout = None
            self._changes.append(Touched(self._nodes.rank(name)))

    def remove_node(self, name: str) -> None:
        """A node is gone. Its devices go with their slices."""
        if self._nodes.get(name) is not None:
            self._changes.append(Removed(self._nodes.remove(name)))

    @property
    def nodes(self) -> Nodes:
        return self._nodes

    def layout(self, node: Node) -> Layout:
        """The devices in sight from a node."""
        if node.layout is None:
            node.layout = self._make_layout(node)
        return node.layout

    def _make_layout(self, node: Node) -> Layout:
        keys = set(self._local.get(node.name, ())) | self._everywhere
        for selector, pools in self._by_selector.items():
            if not pools <= keys and reaches(NodeAccess(node_selector=selector), node.name, node.labels):
                keys |= pools
        segments = []
        problems = []
        for occupancy in (each for key in keys for each in self._holdings[key].published):
            pool = occupancy.pool
            if node.name in pool.view.hidden_from:
                continue
            if pool.problem is not None:
                if pool.is_in_sight(node.name, node.labels):
                    problems.append(pool)
                continue
            segment = pool.segment(node.name, node.labels)
            if segment is not None:
                segments.append((segment, occupancy))
        return Layout(node.name, in_order(segments), problems)

    def selector_fault(self) -> str | None:
        """Why no node can be judged now: a pool has a node selector that cannot be read."""
        return self._selector_faults[min(self._selector_faults)] if self._selector_faults else None

    def suspects(self, shape: Shape, most: int | None = None) -> Iterator[str]:
        """Nodes with a device in sight that the problem cannot be judged on, by name; judges `most` devices for it."""
        faulty = self._faults.faulty_pools(shape, most)
        if not faulty:
            return
        pools = [pool for key in faulty for pool in self._pools[key]]
        shared = [pool for pool in pools if pool.everywhere or pool.selectors]
        names = {name for pool in pools for name in pool.local_nodes if self._nodes.get(name) is not None}
        if not shared:
            yield from sorted(names)
            return
        for node in self._nodes:
            if node.name in names or any(pool.is_in_sight(node.name, node.labels) for pool in shared):
                yield node.name

    # Claims

    def hold(self, claim: str, allocation: AllocationResult) -> None:
        """A claim has been given devices, stored or still in flight."""
        held = self._claims.get(claim)
        if held is not None and (held.devices is allocation.devices or held.devices == allocation.devices):
            return  # as stored it may have a timestamp besides
        if held is not None:
            self.release(claim)
        self._claims[claim] = allocation
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            key = (result.driver, result.pool)
            holdings = self._holdings.get(key)
            if holdings is None:
                holdings = self._holdings[key] = Holdings()
            holdings.hold(claim, result)
            self.pool_changes.append(key)
            if result.share_id is not None:
                self._touch_device(holdings, result.device)

    def release(self, claim: str) -> None:
        """A claim holds nothing any more."""
        allocation = self._claims.pop(claim, None)
        if allocation is None:
            return
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            key = (result.driver, result.pool)
            holdings = self._holdings[key]
            holdings.release(claim, result)
            self.pool_changes.append(key)
            self._touch_device(holdings, result.device)
            if not holdings.published and not holdings.by_device:
                del self._holdings[key]

    def _touch_device(self, holdings: Holdings, name: str) -> None:
        """Nodes that see a device may fit now although they did not before.

        A new share can open a device too: its counters are paid for already.
        """
        for occupancy in holdings.published:
            pool = occupancy.pool
            nodes = {pool.view.devices[position].access.node_name for position in pool.named.get(name, ())}
            if pool.counters is not None or None in nodes:
                self._touch_pool(pool)
            else:
                self._touch_nodes(nodes)

    def _touch_pool(self, pool: Pool) -> None:
        if pool.everywhere or pool.selectors:
            self._changes.append(PoolTouched(pool))
        else:
            self._touch_nodes(pool.local_nodes)

    def _touch_nodes(self, names: Iterable[str | None]) -> None:
        for name in names:
            if name is not None and self._nodes.get(name) is not None:
                self._changes.append(Touched(self._nodes.rank(name)))

    def pool_keys(self) -> Set[PoolKey]:
        """All pools."""
        return self._pools.keys()

    def pools_local_to(self, node: str) -> Set[PoolKey]:
        """Pools with devices that are local to a node."""
        return self._local.get(node, frozenset())

    def shared_pools(self) -> Set[PoolKey]:
        """Pools with devices that several nodes may see."""
        return self._everywhere.union(*self._by_selector.values())

    def occupancies_of(self, key: PoolKey) -> Sequence[Occupancy]:
        """What is held of a pool, or of each part of it; empty if there is no such pool."""
        return self._holdings[key].published if key in self._pools else ()

    def holding(self, device: DeviceId) -> Holding | None:
        """Who holds a device, alone or in shares."""
        holdings = self._holdings.get((device.driver, device.pool))
        return holdings.by_device.get(device.device) if holdings is not None else None

    # Problems

    def shape(self, claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass]) -> Shape:
        """The problem that claims pose; equal claims with equal classes pose the same one. Raises Refusal."""
        key = shape_key(claims)
        shape = self._shapes.get(key)
        if shape is None or not shape.is_current(classes):
            wanted = tuple(ClaimReader(claim, classes, self._criteria.intern).read() for claim in claims)
            shape = Shape(wanted)
            self._shapes.put(key, shape, len(key))
        return shape

    def candidate_nodes(self, shape: Shape) -> NodeSet:
        """The nodes on which the problem may fit: all but those known not to fit now. Kept by the shape: look, don't
        touch; it is up to date until the next event."""
        return shape.candidates(self._changes, len(self._nodes))


def _discard(index: dict[Entry, set[PoolKey]], entry: Entry, key: PoolKey) -> None:
    keys = index.get(entry)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del index[entry]

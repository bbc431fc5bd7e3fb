"""The inventory: events, candidates for equal claims, and what stays the same."""

from __future__ import annotations

import pytest

from allocation_cluster import Cluster, typed
from allocation_manifests import DRIVER, claim, cluster_of, device, device_class, node, request, resource_slice
from dray.allocator import Allocated, Unsatisfiable, allocate
from dray.allocator.holdings import Occupancy
from dray.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from dray.tracker import Remove, Upsert

ONE = typed(claim("c", request()), ResourceClaim)


def candidates(cluster: Cluster) -> list[str]:
    inventory = cluster.inventory
    shape = inventory.shape([ONE], cluster.classes)
    return [inventory.nodes.at(rank).name for rank in inventory.candidate_nodes(shape)]


@pytest.mark.req("4381-93")
def test_nodes_are_ruled_out_and_come_back() -> None:
    names = ("node-1", "node-2", "node-3")
    cluster = cluster_of(*map(node, names), *(resource_slice(device("a"), pool=name, nodeName=name) for name in names))
    inventory = cluster.inventory
    for name in names:
        outcome = allocate(inventory, cluster.classes, [ONE])
        assert isinstance(outcome, Allocated)
        assert outcome.node == name
        inventory.hold(f"ns/on-{name}", outcome.allocations["ns/c"])
    assert isinstance(allocate(inventory, cluster.classes, [ONE]), Unsatisfiable)
    assert candidates(cluster) == []
    inventory.release("ns/on-node-2")
    assert candidates(cluster) == ["node-2"]
    inventory.set_node("node-0", {})
    assert candidates(cluster) == ["node-0", "node-2"]
    inventory.remove_node("node-2")
    assert candidates(cluster) == ["node-0"]


def test_a_new_pool_brings_its_nodes_back() -> None:
    cluster = cluster_of(node("node-2"))
    assert isinstance(allocate(cluster.inventory, cluster.classes, [ONE]), Unsatisfiable)
    slice_ = typed(resource_slice(device("a"), nodeName="node-2"), ResourceSlice)
    change = cluster.tracker.apply(Upsert(slice_))
    cluster.inventory.apply_pools(cluster.tracker.pools[key] for key in change.pools)
    assert candidates(cluster) == ["node-2"]
    gone = cluster.tracker.apply(Remove.of(slice_))
    cluster.inventory.apply_pools(gone.pools)
    assert isinstance(allocate(cluster.inventory, cluster.classes, [ONE]), Unsatisfiable)


@pytest.mark.parametrize(("generation", "count"), [(1, 1), (9, 1), (9, 2), (1, 2)])
def test_a_slice_of_another_node_takes_no_devices_away(generation: int, count: int) -> None:
    """Neither does it come in between when it arrives later, or goes."""
    mine = resource_slice(device("a"), pool="p", nodeName="node-1", name="mine")
    cluster = cluster_of(node("node-1"), node("node-2"), mine)
    foreign = resource_slice(device("a"), pool="p", nodeName="node-2", name="foreign")
    foreign["spec"]["pool"] |= {"generation": generation, "resourceSliceCount": count}
    events = Upsert(typed(foreign, ResourceSlice)), Remove("ResourceSlice", "foreign")
    for event in events:
        change = cluster.tracker.apply(event)
        cluster.inventory.apply_pools(cluster.tracker.pools[key] for key in change.pools)
        outcome = allocate(cluster.inventory, cluster.classes, [ONE], "node-1")
        assert isinstance(outcome, Allocated)
        assert isinstance(allocate(cluster.inventory, cluster.classes, [ONE], "node-2"), Allocated) is (
            event is events[0] and count == 1
        )


def test_a_device_that_is_held_is_held_in_every_part() -> None:
    """An allocation says only the name of a device, also when the pool comes into parts later."""
    mine = resource_slice(device("a"), pool="p", nodeName="node-1", name="mine")
    cluster = cluster_of(node("node-1"), node("node-2"), mine)
    outcome = allocate(cluster.inventory, cluster.classes, [ONE], "node-1")
    assert isinstance(outcome, Allocated)
    cluster.inventory.hold("ns/x", outcome.allocations["ns/c"])
    foreign = resource_slice(device("a"), device("b"), pool="p", nodeName="node-2", name="foreign")
    change = cluster.tracker.apply(Upsert(typed(foreign, ResourceSlice)))
    cluster.inventory.apply_pools(cluster.tracker.pools[key] for key in change.pools)
    assert isinstance(allocate(cluster.inventory, cluster.classes, [ONE], "node-1"), Unsatisfiable)
    there = allocate(cluster.inventory, cluster.classes, [ONE], "node-2")
    assert isinstance(there, Allocated)
    assert there.allocations["ns/c"].devices.results[0].device == "b"
    cluster.inventory.release("ns/x")
    assert isinstance(allocate(cluster.inventory, cluster.classes, [ONE], "node-1"), Allocated)
    assert candidates(cluster) == ["node-1", "node-2"]


@pytest.mark.req("4381-02")
def test_a_device_that_moves_to_another_slice_stays_held() -> None:
    before = [resource_slice(device("a"), name="s1", count=2), resource_slice(device("b"), name="s2", count=2)]
    cluster = cluster_of(*before)
    first = allocate(cluster.inventory, cluster.classes, [ONE], "node-1")
    assert isinstance(first, Allocated)
    assert [result.device for result in first.allocations["ns/c"].devices.results] == ["a"]
    cluster.inventory.hold("ns/x", first.allocations["ns/c"])
    for moved in (resource_slice(name="s1", count=2), resource_slice(device("a"), device("b"), name="s2", count=2)):
        change = cluster.tracker.apply(Upsert(typed(moved, ResourceSlice)))
        cluster.inventory.apply_pools(cluster.tracker.pools[key] for key in change.pools)
    second = allocate(cluster.inventory, cluster.classes, [ONE], "node-1")
    assert isinstance(second, Allocated)
    assert [result.device for result in second.allocations["ns/c"].devices.results] == ["b"]


@pytest.mark.req("4381-62", "4381-100", "5027-35")
def test_a_changed_class_counts_for_later_claims_only() -> None:
    cluster = cluster_of(resource_slice(device("a"), device("b", attributes={"x": 1})))
    first = allocate(cluster.inventory, cluster.classes, [ONE], "node-1")
    changed = typed(device_class("gpu", f'has(device.attributes["{DRIVER}"].x)'), DeviceClass)
    second = allocate(cluster.inventory, {"gpu": changed}, [ONE], "node-1")
    assert isinstance(first, Allocated)
    assert isinstance(second, Allocated)
    assert [a.allocations["ns/c"].devices.results[0].device for a in (first, second)] == ["a", "b"]


@pytest.mark.req("4381-48")
def test_claims_hold_release_and_change_devices() -> None:
    cluster = cluster_of(resource_slice(device("a"), device("b")))
    inventory = cluster.inventory
    outcome = allocate(inventory, cluster.classes, [ONE], "node-1")
    assert isinstance(outcome, Allocated)
    allocation = outcome.allocations["ns/c"]
    device_id = cluster.devices()[0].id
    inventory.hold("ns/c", allocation)
    inventory.hold("ns/c", allocation)
    holding = inventory.holding(device_id)
    assert holding is not None
    assert holding.holders == ["ns/c"]
    inventory.release("ns/c")
    assert inventory.holding(device_id) is None
    inventory.release("ns/c")
    assert inventory.holding(device_id) is None


def test_equal_claims_share_one_shape_whatever_their_names() -> None:
    cluster = cluster_of(resource_slice(device("a")))
    other = typed(claim("d", request()), ResourceClaim)
    inventory = cluster.inventory
    assert inventory.shape([ONE], cluster.classes) is inventory.shape([other], cluster.classes)
    bigger = typed(claim("d", request(count=2)), ResourceClaim)
    assert inventory.shape([ONE], cluster.classes) is not inventory.shape([bigger], cluster.classes)


@pytest.mark.req("4381-02")
def test_an_allocation_says_only_a_name_so_all_devices_of_that_name_are_held() -> None:
    slices = [resource_slice(device("a"), name=f"on-{name}", nodeName=name, count=2) for name in ("node-1", "node-2")]
    cluster = cluster_of(node("node-2"), *slices)
    outcome = allocate(cluster.inventory, cluster.classes, [ONE], "node-2")
    assert isinstance(outcome, Allocated)
    cluster.inventory.hold("ns/x", outcome.allocations["ns/c"])
    assert isinstance(allocate(cluster.inventory, cluster.classes, [ONE]), Unsatisfiable)


def test_a_network_pool_brings_back_only_the_problems_that_want_its_devices() -> None:
    fabric = resource_slice(device("f"), pool="fabric", driver="nic.example.com", allNodes=True)
    cluster = cluster_of(device_class("gpu", f'device.driver == "{DRIVER}"'), device_class("any"), fabric)
    anything = typed(claim("any", request(deviceClassName="any")), ResourceClaim)
    first = allocate(cluster.inventory, cluster.classes, [anything])
    assert isinstance(first, Allocated)
    cluster.inventory.hold("ns/any", first.allocations["ns/any"])
    for wanted in (ONE, anything):
        assert isinstance(allocate(cluster.inventory, cluster.classes, [wanted]), Unsatisfiable)
    cluster.inventory.release("ns/any")
    assert candidates(cluster) == []
    assert allocate(cluster.inventory, cluster.classes, [anything]) == first


def test_a_pool_that_changes_finds_no_device_anew_that_stands_where_it_stood(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice of a pool of thousands comes as an event of its own, and each rule concerns all of it."""
    marked: list[str] = []
    mark = Occupancy.mark

    def noted(occupancy: Occupancy, name: str) -> None:
        marked.append(name)
        mark(occupancy, name)

    names = [f"d{number}" for number in range(9)]
    cluster = cluster_of(node("node-1"), resource_slice(*map(device, names), name="s", nodeName="node-1"))
    for name in names[1:]:
        outcome = allocate(cluster.inventory, cluster.classes, [ONE])
        assert isinstance(outcome, Allocated)
        cluster.inventory.hold(f"ns/{name}", outcome.allocations["ns/c"])
    monkeypatch.setattr(Occupancy, "mark", noted)

    def left(*devices: str) -> str | None:
        made = [device(name, attributes={"x": {"string": "new"}}) for name in devices]
        slice_ = typed(resource_slice(*made, name="s", nodeName="node-1"), ResourceSlice)
        change = cluster.tracker.apply(Upsert(slice_))
        cluster.inventory.apply_pools(cluster.tracker.pools[key] for key in change.pools)
        outcome = allocate(cluster.inventory, cluster.classes, [ONE])
        return outcome.allocations["ns/c"].devices.results[0].device if isinstance(outcome, Allocated) else None

    assert left(*names) == "d8"
    assert left(*reversed(names)) == "d8"
    assert left(*names[:8]) is None
    assert left(*names[:8], "new") == "new"
    assert marked == []

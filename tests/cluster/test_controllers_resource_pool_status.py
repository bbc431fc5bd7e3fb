"""Requests about the state of pools are answered: devices, partitions and shared capacity; old ones go away."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from controller_world import Manifest, World, controller_world, manifest

NAME = "resourcepoolstatusrequest-controller"
DRIVER = "gpu.example.com"


@contextlib.asynccontextmanager
async def pool_world() -> AsyncIterator[World]:
    async with controller_world(NAME) as world:
        yield world


def cluster_scoped(api_version: str, kind: str, name: str, **parts: Any) -> Manifest:
    made = manifest(api_version, kind, name, **parts)
    made["metadata"].pop("namespace", None)
    return made


def published(name: str, pool: str, *devices: dict[str, Any], count: int = 1, **spec: Any) -> Manifest:
    about = {"name": pool, "generation": 1, "resourceSliceCount": count}
    where = {} if "nodeName" in spec else {"allNodes": True}
    spec = {"driver": DRIVER, "pool": about, **where, **spec}
    if devices:
        spec["devices"] = list(devices)
    return cluster_scoped("resource.k8s.io/v1", "ResourceSlice", name, spec=spec)


def asked(name: str, **spec: Any) -> Manifest:
    spec = {"driver": DRIVER, **spec}
    return cluster_scoped("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", name, spec=spec)


async def held(world: World, name: str, pool: str, device: str, **more: Any) -> None:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    await world.create(manifest("resource.k8s.io/v1", "ResourceClaim", name, spec=spec))
    result = {"request": "r", "driver": DRIVER, "pool": pool, "device": device, **more}
    status = {"status": {"allocation": {"devices": {"results": [result]}}}}
    await world.patch("resourceclaims", name, status, "status")


async def told(world: World, name: str) -> Any:
    return (await world.get("resourcepoolstatusrequests", name, "")).status


async def test_devices_are_counted_and_old_answers_go() -> None:
    async with pool_world() as world:
        tainted = {"name": "c", "taints": [{"key": "broken", "effect": "NoExecute"}]}
        await world.create(published("a", "p1", {"name": "a"}, {"name": "b"}, tainted, nodeName="n"))
        await world.create(published("b", "p2", {"name": "x"}))
        rule = {"deviceSelector": {"pool": "p2"}, "taint": {"key": "k", "effect": "NoSchedule"}}
        await world.create(cluster_scoped("resource.k8s.io/v1", "DeviceTaintRule", "rule", spec=rule))
        await held(world, "one", "p1", "a")
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await world.patch("namespaces", "default", label, namespace="")
        await held(world, "watcher", "p1", "b", adminAccess=True)
        await world.create(asked("all"), asked("some", limit=1), asked("other", driver="none.example.com"))
        await world.settle()
        status = await told(world, "all")
        assert [condition.type for condition in status.conditions] == ["Complete"]
        first, second = status.pools
        assert (first.pool_name, first.node_name, first.generation, first.resource_slice_count) == ("p1", "n", 1, 1)
        counts = (first.total_devices, first.allocated_devices, first.available_devices, first.unavailable_devices)
        assert counts == (3, 1, 1, 1)
        assert (second.node_name, second.available_devices, second.unavailable_devices) == (None, 0, 1)
        some = await told(world, "some")
        assert (some.pool_count, len(some.pools)) == (2, 1)
        assert (await told(world, "other")).pool_count == 0
        await world.settle(3500)
        assert len(await world.objects("resourcepoolstatusrequests", "")) == 3
        await world.settle(200)
        assert await world.objects("resourcepoolstatusrequests", "") == []


async def test_an_incomplete_pool_is_waited_for() -> None:
    async with pool_world() as world:
        await world.create(published("a", "p", {"name": "a"}, count=2), asked("r"))
        await world.settle(30)
        assert await told(world, "r") is None
        await world.create(published("b", "p", {"name": "b"}, count=2))
        await world.settle()
        assert (await told(world, "r")).pools[0].total_devices == 2


def partition(name: str, kind: str, amount: int) -> dict[str, Any]:
    taken = [{"counterSet": "s", "counters": {"memory": {"value": str(amount)}}}]
    return {"name": name, "attributes": {"profile": {"string": kind}}, "consumesCounters": taken}


async def test_partitions_and_shared_devices() -> None:
    async with pool_world() as world:
        counters = [{"name": "s", "counters": {"memory": {"value": "4"}}}]
        await world.create(published("counters", "p", count=2, sharedCounters=counters))
        halves = [partition(f"half-{number}", "half", 2) for number in range(3)]
        attribute = f"{DRIVER}/profile"
        await world.create(published("devices", "p", *halves, partition("whole", "whole", 4), count=2))
        await held(world, "h", "p", "half-0")
        shared = {"name": "s", "allowMultipleAllocations": True, "capacity": {"bandwidth": {"value": "10"}}}
        await world.create(published("shared", "q", shared))
        share = {"shareID": "5ba4b59a-9ac9-4d0c-9d3c-1b0cbb9c4c11", "consumedCapacity": {"bandwidth": "4"}}
        await held(world, "c", "q", "s", **share)
        await world.create(asked("r", poolName="p", defaultPartitionTypeAttribute=attribute), asked("q", poolName="q"))
        await world.settle()
        (pool,) = (await told(world, "r")).pools
        summary = [(entry.type, entry.total, entry.allocatable) for entry in pool.partition_summary]
        assert (pool.validation_error, summary) == (None, [("half", 3, 1), ("whole", 1, 0)])
        (pool,) = (await told(world, "q")).pools
        summary = pool.shareable_summary
        assert (summary.fully_available_devices, summary.partially_available_devices) == (0, 1)
        (capacity,) = summary.capacity
        assert [str(part) for part in (capacity.total, capacity.consumed, capacity.available)] == ["10", "4", "6"]


async def test_partitions_that_do_not_say_what_they_are() -> None:
    async with pool_world() as world:
        await world.create(published("a", "p", {"name": "a"}), asked("r", defaultPartitionTypeAttribute="x.com/y"))
        await world.settle()
        (pool,) = (await told(world, "r")).pools
        assert pool.validation_error.startswith("PartitionTypeMissing: ")
        assert pool.total_devices == 1

"""The cluster in one line."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controller_world import manifest, pod, typed
from dray.api.generated.core import Node
from dray.api.kinds import CLAIMS, NODES
from dray.api.resource import ResourceClaim, ResourceSlice
from dray.live.counted_devices import CountedDevices
from dray.live.overview import Overview, Totals
from dray.reconcile.informers import Informers
from dray.scheduling.cluster import Cluster
from dray.store.sweep import CallSoon, Sweep
from dray.testing.clusters import async_cluster
from dray.tracker import Upsert
from local_server import local_server

RESOURCE = "resource.k8s.io/v1"
FINALIZER = "resource.kubernetes.io/delete-protection"


def slice_with(*names: str) -> ResourceSlice:
    """A slice with two devices, the second of them tainted."""
    devices: list[dict[str, Any]] = [{"name": name} for name in names]
    devices[-1]["taints"] = [{"key": "bad", "effect": "NoSchedule"}]
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "node-1", "pool": pool, "devices": devices}
    made = typed(manifest(RESOURCE, "ResourceSlice", "s", spec=spec))
    assert isinstance(made, ResourceSlice)
    return made


class Evictor:
    """A controller with work left."""

    pending_evictions = 7


async def test_totals_follow_nodes_pods_and_claims() -> None:
    async with local_server(with_roles=False) as server:
        client, clock = server.client(), server.clock
        informers = Informers(client, clock)
        overview = Overview(informers, CountedDevices())
        running = asyncio.create_task(informers.run())
        cluster = Cluster()
        cluster.track(Upsert(slice_with("a", "b", "c")))
        informers.of(NODES, Node).on_change(cluster.set_node)
        informers.of(CLAIMS, ResourceClaim).on_change(cluster.set_claim)
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        await client.create(typed(manifest("v1", "Node", "node-1", status=ready)))
        await client.patch(NODES, "", "node-1", {"spec": {"taints": None}})  # "not ready", as every new node is
        await client.create(typed(manifest("v1", "Node", "node-2")))
        await client.create(typed(pod("waits")))
        await client.create(typed(pod("runs", nodeName="node-1")))
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
        claim: Any = await client.create(
            typed(
                manifest(
                    RESOURCE,
                    "ResourceClaim",
                    "c",
                    meta={"finalizers": [FINALIZER]},
                    spec={"devices": {"requests": requests}},
                )
            )
        )
        result = {"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "a"}
        status = {"status": {"allocation": {"devices": {"results": [result]}}}}
        kind = informers_kind(claim)
        await client.patch(kind, "default", "c", status, subresource="status")
        await clock.settle()
        await overview.look(cluster)
        assert overview.totals([Evictor(), object()]) == Totals(
            nodes=2, ready=1, devices=3, free=1, held=1, tainted=1, pods=2, pending=1, evictions=7
        )
        await client.patch(kind, "default", "c", {"status": {"allocation": None}}, subresource="status")
        await clock.settle()
        await overview.look(cluster)
        found = overview.totals()
        assert (found.free, found.held) == (2, 0)
        assert str(found) == (
            "nodes 1/2 ready · devices 2 free, 0 held, 1 tainted · pods 2, 1 pending · evictions 0 pending"
        )
        await client.patch(NODES, "", "node-1", {"spec": {"unschedulable": True}})
        await clock.settle()
        await overview.look(cluster)
        found = overview.totals()
        assert (found.devices, found.free, found.blocked, found.tainted) == (3, 0, 2, 1)
        assert "devices 0 free, 0 held, 1 tainted, 2 blocked ·" in str(found)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def informers_kind(obj: Any) -> Any:
    """The kind of an object."""
    from dray.api.registry import by_kind

    return by_kind(obj.api_version, obj.kind)


async def test_devices_are_counted_before_memory_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts a large cluster waits for the first line about it, and not for what can be done afterwards."""
    done: list[str] = []
    look, release = CountedDevices.look, Sweep.release

    async def counted(devices: CountedDevices, cluster: Cluster) -> None:
        await look(devices, cluster)
        done.append(f"{devices.total('all')} devices")

    def released(sweep: Sweep, call_soon: CallSoon) -> None:
        done.append("released")
        release(sweep, call_soon)

    monkeypatch.setattr(CountedDevices, "look", counted)
    monkeypatch.setattr(Sweep, "release", released)
    async with async_cluster(1, "gpu-8"):
        assert done == ["8 devices", "released"]

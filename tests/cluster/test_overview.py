"""The cluster in one line."""

from __future__ import annotations

import asyncio
from typing import Any

from controller_world import manifest, pod, typed
from dray.api.resource import ResourceSlice
from dray.cluster import Overview, Totals
from dray.reconcile.informers import Informers
from dray.tracker import Tracker, Upsert
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


def test_totals_follow_nodes_pods_and_claims() -> None:
    async def main() -> None:
        async with local_server(with_roles=False) as server:
            client, clock = server.client(), server.clock
            informers = Informers(client, clock)
            overview = Overview(informers)
            running = asyncio.create_task(informers.run())
            tracker = Tracker()
            tracker.apply(Upsert(slice_with("a", "b", "c")))
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            await client.create(typed(manifest("v1", "Node", "node-1", status=ready)))
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
            assert overview.totals(tracker.pools, [Evictor(), object()]) == Totals(
                nodes=2, ready=1, devices=3, free=1, held=1, tainted=1, pods=2, pending=1, evictions=7
            )
            await client.patch(kind, "default", "c", {"status": {"allocation": None}}, subresource="status")
            await clock.settle()
            found = overview.totals(tracker.pools)
            assert (found.free, found.held) == (2, 0)
            assert str(found) == (
                "nodes 1/2 ready · devices 2 free, 0 held, 1 tainted · pods 2, 1 pending · evictions 0 pending"
            )
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())


def informers_kind(obj: Any) -> Any:
    """The kind of an object."""
    from dray.api.registry import by_kind

    return by_kind(obj.api_version, obj.kind)

"""What is free, really: partitions of GPUs that are held whole are blocked, in every place that counts devices."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from controller_world import manifest, typed
from dray.api.kinds import NODES
from dray.api.registry import by_kind
from dray.api.resource import DeviceClass
from dray.cli.get import Wanted, What, items_of, table_of
from dray.hub_agent.device_counts import Count, DeviceCounts
from dray.live.cluster_view import LiveView
from dray.live.counted_devices import CountedDevices
from dray.live.device_metrics import DeviceMetrics
from local_server import LocalServer, local_server

RESOURCE = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"


def partition(name: str, memory: str) -> dict[str, Any]:
    draw = {"counterSet": "card", "counters": {"memory": {"value": memory}}}
    return {"name": name, "consumesCounters": [draw]}


def rows_of(view: LiveView, what: What) -> list[dict[str, str]]:
    """The rows of a table by the names of its columns."""
    table = table_of(view, Wanted(what))
    names = [title.lower().replace(" ", "_") for title in table.header]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def objects() -> list[dict[str, Any]]:
    """A GPU whole and in two halves on node-1, where the whole is held; a plain one on node-2."""
    card = [{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": DRIVER, "nodeName": "node-1", "pool": pool}
    whole = [partition("whole", "80Gi"), partition("half-0", "40Gi"), partition("half-1", "40Gi")]
    other = {"name": "node-2", "generation": 1, "resourceSliceCount": 1}
    result = {"request": "r", "driver": DRIVER, "pool": "node-1", "device": "whole"}
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    return [
        manifest("v1", "Node", "node-1"),
        manifest("v1", "Node", "node-2"),
        manifest(RESOURCE, "DeviceClass", "gpu", spec={}),
        manifest(RESOURCE, "ResourceSlice", "counters", spec={**spec, "sharedCounters": card}),
        manifest(RESOURCE, "ResourceSlice", "devices", spec={**spec, "devices": whole}),
        manifest(
            RESOURCE,
            "ResourceSlice",
            "plain",
            spec={"driver": DRIVER, "nodeName": "node-2", "pool": other, "devices": [{"name": "gpu-0"}]},
        ),
        manifest(
            RESOURCE,
            "ResourceClaim",
            "train",
            meta={"finalizers": ["resource.kubernetes.io/delete-protection"]},
            spec={"devices": {"requests": requests}},
            status={"allocation": {"devices": {"results": [result]}}},
        ),
    ]


@asynccontextmanager
async def looking(server: LocalServer) -> AsyncIterator[LiveView]:
    client = server.client()
    for one in objects():
        made = await client.create(typed(one))
        if "status" in one:
            patch = {"status": one["status"]}
            kind = by_kind(made.api_version, made.kind)
            await client.patch(kind, made.metadata.namespace, made.metadata.name, patch, subresource="status")
    for name in ("node-1", "node-2"):  # new nodes are tainted until they are ready
        await client.patch(NODES, "", name, {"spec": {"taints": None}})
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await client.patch(NODES, "", name, ready, subresource="status")
    view = LiveView(client, server.clock)
    await view.start()
    try:
        yield view
    finally:
        await view.stop()


async def test_partitions_of_a_gpu_that_is_held_whole_are_not_free_anywhere() -> None:
    async with local_server(with_roles=False) as server, looking(server) as view:
        nodes = rows_of(view, What.NODES)
        keys = ("node", "devices", "free", "held", "blocked", "tainted", "blocked_by")
        assert [tuple(row[key] for key in keys) for row in nodes] == [
            ("node-1", "3", "0", "1", "2", "0", "2 counters used up (default/train)"),
            ("node-2", "1", "1", "0", "0", "0", "–"),
        ]
        devices = {row["device"]: row for row in rows_of(view, What.DEVICES)}
        assert devices["node-1/half-0"]["state"] == "blocked"
        assert devices["node-1/half-0"]["blocked_by"] == (
            "short of counter card/memory: needs 40Gi, left 0 (used by default/train)"
        )
        assert [devices[name]["state"] for name in ("node-1/whole", "node-2/gpu-0")] == ["held", "free"]
        counted = DeviceCounts().count(view.cluster, [DeviceClass(metadata=typed(objects()[2]).metadata)])
        assert counted == {"gpu": Count(total=4, free=1, tainted=0, blocked=2)}
        registry = CollectorRegistry()
        known = CountedDevices()
        registry.register(DeviceMetrics(known))
        await known.look(view.cluster)
        numbers = {
            state: registry.get_sample_value("dray_devices", {"driver": DRIVER, "state": state})
            for state in ("all", "free", "held", "tainted", "blocked")
        }
        assert numbers == {"all": 4, "free": 1, "held": 1, "tainted": 0, "blocked": 2}


async def test_devices_of_a_node_that_is_cordoned_or_gone_are_blocked() -> None:
    async with local_server(with_roles=False) as server, looking(server) as view:
        client = server.client()
        await client.patch(NODES, "", "node-2", {"spec": {"unschedulable": True}})
        await server.clock.settle()
        assert state_of(view, "node-2/gpu-0") == ("blocked", "node node-2 is cordoned")
        await client.delete(NODES, "", "node-2")
        await server.clock.settle()
        assert state_of(view, "node-2/gpu-0") == ("blocked", "node node-2 is gone")


def state_of(view: LiveView, device: str) -> tuple[str, str]:
    row = next(row for row in rows_of(view, What.DEVICES) if row["device"] == device)
    return row["state"], row["blocked_by"]


async def test_devices_of_a_node_are_those_that_it_can_use_whoever_is_asked() -> None:
    async with local_server(with_roles=False) as server, looking(server) as view:
        client = server.client()
        pool = {"name": "rack", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "allNodes": True, "pool": pool, "devices": [{"name": "fpga-0"}]}
        await client.create(typed(manifest(RESOURCE, "ResourceSlice", "rack", spec=spec)))
        await server.clock.settle()
        table = table_of(view, Wanted(What.DEVICES, node="node-2"))
        assert [row[0] for row in table.rows] == ["node-2/gpu-0", "rack/fpga-0"]
        assert [one.key for one in items_of(view, Wanted(What.DEVICES, node="node-2"))] == [
            f"device/{DRIVER}/node-2/gpu-0",
            f"device/{DRIVER}/rack/fpga-0",
        ]
        assert not table_of(view, Wanted(What.DEVICES, node="node-3")).rows

"""Who taints devices or nodes does not wave the evictions through that come of it: to confirm is a right of its own."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dray.api.registry import by_kind
from dray.server.security.identity import NODES, authenticated, service_account_groups, service_account_user
from local_server import local_server, refused, typed
from server_objects import binding, node, node_slice, role, rule

RULES = by_kind("resource.k8s.io/v1", "DeviceTaintRule")
SLICES = by_kind("resource.k8s.io/v1", "ResourceSlice")
NODE_KIND = by_kind("v1", "Node")
MONITOR = service_account_user("default", "monitor")
WHY = "needs the right to confirm"


def confirming(value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {"dray.dev/confirm-evictions": value}}}


def taint_rule(name: str, **metadata: Any) -> Any:
    taint = {"key": "example.com/broken", "effect": "NoExecute"}
    spec = {"deviceSelector": {"driver": "gpu.example.com"}, "taint": taint}
    document = {"apiVersion": RULES.api_version, "kind": "DeviceTaintRule", "metadata": {"name": name} | metadata}
    return typed(document | {"spec": spec})


async def test_a_monitor_does_not_confirm_its_own_rules() -> None:
    async with local_server() as server:
        admin = server.client()
        await admin.create(binding("monitor", "system:device-health-monitor", MONITOR))
        monitor = server.client(authenticated(MONITOR, service_account_groups("default")))
        await monitor.create(taint_rule("sick"))
        await refused(monitor.create(taint_rule("all", **confirming("1")["metadata"])), WHY)
        await refused(monitor.patch(RULES, "", "sick", confirming("1")), WHY)
        await admin.patch(RULES, "", "sick", confirming("1"))
        await monitor.patch(RULES, "", "sick", {"spec": {"taint": {"value": "very"}}})
        await refused(monitor.patch(RULES, "", "sick", confirming("2")), WHY)
        await monitor.patch(RULES, "", "sick", confirming(None))
        await admin.create(role("confirms", rule("confirm", "devicetaintrules", "resource.k8s.io")))
        await admin.create(binding("confirms", "confirms", MONITOR))
        await monitor.patch(RULES, "", "sick", confirming("2"))


async def test_a_node_confirms_neither_its_taints_nor_those_of_its_devices() -> None:
    async with local_server() as server:
        admin = server.client()
        n1 = server.client(authenticated("system:node:n1", (NODES,)))
        await admin.create(node("n1"))
        await admin.create(node_slice("a", "n1"))
        await refused(n1.patch(NODE_KIND, "", "n1", confirming("some/taint")), WHY)
        await refused(n1.patch(NODE_KIND, "", "n1", confirming("some/taint"), subresource="status"), WHY)
        await refused(n1.patch(SLICES, "", "a", confirming("1")), WHY)
        slice_ = node_slice("b", "n1")
        annotations = {"dray.dev/confirm-evictions": "1"}
        await refused(n1.create(replace(slice_, metadata=replace(slice_.metadata, annotations=annotations))), WHY)
        await admin.patch(NODE_KIND, "", "n1", confirming("some/taint,another/taint"))
        await n1.patch(NODE_KIND, "", "n1", {"metadata": {"labels": {"a": "b"}}})
        await n1.patch(NODE_KIND, "", "n1", confirming("another/taint"))

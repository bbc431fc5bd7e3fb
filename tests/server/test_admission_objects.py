"""What a running server adds to new objects, and which writes it refuses whoever makes them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import builders
from dray.api.generated.core import Namespace, Node, Pod
from dray.api.meta import Object
from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.client.http import HttpClient
from dray.client.kubeconfig import load_kubeconfig
from dray.server.instance import Instance, ServerSettings
from dray.server.local import LocalClient
from dray.server.security.identity import authenticated
from local_server import LocalServer, local_server, refused, typed
from server_objects import binding, claim, node, pod

CLUSTER = "cluster.open-cluster-management.io"
NAMESPACES = by_kind("v1", "Namespace")
CLUSTERS = by_kind(f"{CLUSTER}/v1", "ManagedCluster")
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@contextlib.asynccontextmanager
async def server_and_admin() -> AsyncIterator[tuple[LocalServer, LocalClient]]:
    async with local_server() as server:
        yield server, server.client()


def namespace(name: str) -> Object:
    return typed(builders.manifest("v1", "Namespace", name))


async def test_nothing_is_created_in_namespaces_that_are_missing_or_going() -> None:
    async with server_and_admin() as (_, admin):
        with pytest.raises(ApiError, match="nowhere") as missing:
            await admin.create(pod("p", namespace="nowhere"))
        assert missing.value.code == 404
        await admin.create(namespace("going"))
        await admin.create(pod("p", namespace="going"))
        await admin.delete(NAMESPACES, "", "going")
        going = await admin.get(NAMESPACES, "", "going")
        assert isinstance(going, Namespace)
        assert going.status.phase == "Terminating"
        await refused(admin.create(pod("late", namespace="going")), "being terminated")
        await admin.patch(by_kind("v1", "Pod"), "going", "p", {"metadata": {"labels": {"a": "b"}}})


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_the_namespaces_of_the_system_are_kept(name: str) -> None:
    async with server_and_admin() as (_, admin):
        await refused(admin.delete(NAMESPACES, "", name), "may not be deleted")


def seconds(found: Pod) -> dict[str, int | None]:
    return {toleration.key: toleration.toleration_seconds for toleration in found.spec.tolerations}


async def test_pods_stay_five_minutes_on_failing_nodes_unless_they_say_otherwise() -> None:
    async with server_and_admin() as (_, admin):
        assert seconds(await admin.create(pod("plain"))) == {NOT_READY: 300, UNREACHABLE: 300}
        own = {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
        assert seconds(await admin.create(pod("own", tolerations=[own]))) == {NOT_READY: 5, UNREACHABLE: 300}
        every = await admin.create(pod("every", tolerations=[{"operator": "Exists"}]))
        assert seconds(every) == {"": None}


async def test_pods_get_the_priority_of_their_class() -> None:
    async with server_and_admin() as (_, admin):
        assert (await admin.create(pod("none"))).spec.priority == 0
        system = await admin.create(pod("system", priorityClassName="system-node-critical"))
        assert system.spec.priority == 2_000_001_000
        await refused(admin.create(pod("wrong", priorityClassName="nope")), "no PriorityClass with name nope")
        classes = {"high": (1000, False, "Never"), "usual": (10, True, "PreemptLowerPriority")}
        for name, (value, default, policy) in classes.items():
            document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            more = {"value": value, "globalDefault": default, "preemptionPolicy": policy}
            await admin.create(typed(document | more))
        high = (await admin.create(pod("high", priorityClassName="high"))).spec
        assert (high.priority, high.preemption_policy) == (1000, "Never")
        usual = (await admin.create(pod("usual"))).spec
        assert (usual.priority, usual.priority_class_name) == (10, "usual")


async def test_a_new_node_takes_no_pods_yet() -> None:
    async with server_and_admin() as (_, admin):
        made = await admin.create(node("n"))
        assert [(taint.key, taint.effect) for taint in made.spec.taints] == [(NOT_READY, "NoSchedule")]
        cleared = await admin.update(replace(made, spec=replace(made.spec, taints=())))
        assert isinstance(cleared, Node)
        assert cleared.spec.taints == ()


PROTECTED = [f"{CLUSTER}/unavailable", f"{CLUSTER}/unreachable"]


def taints(*keys: str) -> dict[str, Any]:
    return {
        "spec": {"taints": [{"key": key, "effect": "NoSelect", "timeAdded": "2026-06-01T12:00:00Z"} for key in keys]}
    }


@pytest.mark.req("OCM-32")
@pytest.mark.parametrize("key", PROTECTED)
async def test_an_agent_leaves_the_taints_of_the_hub_alone(key: str) -> None:
    async with server_and_admin() as (server, admin):
        document = {"apiVersion": f"{CLUSTER}/v1", "kind": "ManagedCluster", "metadata": {"name": "c1"}}
        await admin.create(typed(document))
        await admin.create(binding("agent", "cluster-admin", "agent"))
        agent = server.client(authenticated("agent", ("system:open-cluster-management:c1",)))
        why = f"agents may not add, change or remove the taint {key}"
        await refused(agent.patch(CLUSTERS, "", "c1", taints(key)), why)
        await agent.patch(CLUSTERS, "", "c1", taints("example.com/own"))
        await admin.patch(CLUSTERS, "", "c1", taints(key, "example.com/own"))
        await refused(agent.patch(CLUSTERS, "", "c1", taints("example.com/own")), why)
        changed = {"spec": {"taints": [{"key": key, "effect": "PreferNoSelect"}]}}
        await refused(agent.patch(CLUSTERS, "", "c1", changed), why)
        await agent.patch(CLUSTERS, "", "c1", taints(key, "example.com/other"))
        await admin.patch(CLUSTERS, "", "c1", taints())


async def test_a_quota_of_devices_holds_under_concurrent_creates() -> None:
    async with server_and_admin() as (_, admin):
        resource = "gpu.example.com.deviceclass.resource.k8s.io/devices"
        metadata = {"name": "gpus", "namespace": "default"}
        spec = {"hard": {resource: "3"}}
        await admin.create(typed({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}))
        quotas = by_kind("v1", "ResourceQuota")
        status = {"status": {"hard": {resource: "3"}, "used": {resource: "0"}}}
        await admin.patch(quotas, "default", "gpus", status, subresource="status")
        made = await asyncio.gather(*(admin.create(claim(f"c{n}")) for n in range(10)), return_exceptions=True)
        failures = [outcome for outcome in made if isinstance(outcome, BaseException)]
        assert len(failures) == 7
        assert all(isinstance(failure, ApiError) and "exceeded quota: gpus" in str(failure) for failure in failures)
        stored: Any = await admin.get(quotas, "default", "gpus")
        assert str(stored.status.used[resource]) == "3"


ALL = "spec.deviceSelector: empty, so the rule selects every device in the cluster"


@pytest.mark.parametrize(("selector", "heard"), [({}, [ALL]), (None, []), ({"driver": "gpu.example.com"}, [])])
async def test_a_rule_for_all_devices_warns_its_author(tmp_path: Path, selector: Any, heard: list[str]) -> None:
    instance = Instance(ServerSettings(directory=tmp_path / "state", port=0))
    await instance.start()
    warnings: list[str] = []
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"deviceSelector": selector, "taint": {"key": "example.com/x", "effect": "NoSchedule"}},
    }
    async with HttpClient(load_kubeconfig([instance.kubeconfig]), warn=warnings.append) as admin:
        await admin.create(typed(rule))
    await instance.stop(0.1)
    assert [text for text in warnings if "deviceSelector" in text] == heard

"""Quotas of services, storage classes and compute resources: counted, and what must be specified."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from controller_world import controller_world, manifest
from dray.api.generated.core import ResourceQuota, Service
from dray.api.status import ApiError
from local_server import refused, typed


def quota(**hard: str) -> Any:
    spec = {"hard": {name.replace("_", "."): value for name, value in hard.items()}}
    return manifest("v1", "ResourceQuota", "q", "default", spec=spec)


def service(name: str, type_: str, *ports: int, **more: Any) -> Any:
    listed = [{"port": port, "name": f"p{port}"} for port in ports]
    return manifest("v1", "Service", name, "default", spec={"type": type_, "ports": listed, **more})


def used(found: Any) -> dict[str, str]:
    assert isinstance(found, ResourceQuota)
    return {name: str(value) for name, value in found.status.used.items()}


async def test_the_life_of_services() -> None:
    async with controller_world("resourcequota-controller") as world:
        await world.create(quota(services="9", services_nodeports="2", services_loadbalancers="1"))
        await world.settle(5)
        await world.create(service("plain", "ClusterIP", 80), service("ports", "NodePort", 80, 81))
        await world.settle(5)
        counted = {
            "services": "3",
            "services.nodeports": "2",
            "services.loadbalancers": "0",
        }  # one is the cluster's own
        assert used(await world.get("resourcequotas", "q")) == counted
        client = world.server.client()
        await refused(
            client.create(typed(service("lb", "LoadBalancer", 80))), "exceeded quota: q.*services.nodeports=1"
        )
        without = {"allocateLoadBalancerNodePorts": False}
        await world.create(service("lb", "LoadBalancer", 80, **without))
        changed = await world.get("services", "plain")
        assert isinstance(changed, Service)
        with pytest.raises(ApiError, match=r"exceeded quota: q, requested: services\.nodeports=1"):
            await client.update(replace(changed, spec=replace(changed.spec, type="NodePort")))
        await world.delete("services", "ports")
        await world.settle(5)
        assert used(await world.get("resourcequotas", "q"))["services.nodeports"] == "0"
        await client.update(replace(changed, spec=replace(changed.spec, type="NodePort")))
        assert used(await world.get("resourcequotas", "q"))["services.nodeports"] == "1"


async def test_what_a_quota_limits_must_be_specified() -> None:
    async with controller_world("resourcequota-controller") as world:
        await world.create(quota(limits_cpu="2", requests_memory="1Gi"))
        await world.settle(5)
        spec = {"containers": [{"name": "b", "image": "i"}, {"name": "a", "image": "i"}]}
        pod = typed(manifest("v1", "Pod", "p", "default", spec=spec))
        why = 'pods "p" is forbidden: failed quota: q: must specify limits.cpu for: a,b; requests.memory for: a,b'
        await refused(world.server.client().create(pod), why)


async def test_storage_counts_for_its_class_too() -> None:
    async with controller_world("resourcequota-controller") as world:
        name = "fast.storageclass.storage.k8s.io/requests.storage"
        hard = {name: "5Gi", "requests.storage": "9Gi"}
        await world.create(manifest("v1", "ResourceQuota", "q", "default", spec={"hard": hard}))
        await world.settle(5)
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "3Gi"}}}
        await world.create(
            manifest("v1", "PersistentVolumeClaim", "a", "default", spec={**asked, "storageClassName": "fast"}),
            manifest("v1", "PersistentVolumeClaim", "b", "default", spec={**asked, "storageClassName": "slow"}),
        )
        assert used(await world.get("resourcequotas", "q")) == {name: "3Gi", "requests.storage": "6Gi"}
        more = manifest("v1", "PersistentVolumeClaim", "c", "default", spec={**asked, "storageClassName": "fast"})
        await refused(world.server.client().create(typed(more)), "exceeded quota: q, requested: fast.storageclass")

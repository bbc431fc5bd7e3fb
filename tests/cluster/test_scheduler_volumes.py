"""Pods with volumes, on a real (in-memory) server, with volumes that only pretend."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dray.api.meta import DeleteOptions
from dray.api.registry import by_kind
from dray.controllers import Manager
from dray.reconcile import Informers
from dray.simulation.provisioner import Provisioner
from scheduler_world import PODS, World, scheduler_world

VOLUMES, CLAIMS = by_kind("v1", "PersistentVolume"), by_kind("v1", "PersistentVolumeClaim")
CONTROLLERS = [
    "persistentvolume-binder-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
]
MOUNTED: dict[str, Any] = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}


@contextlib.asynccontextmanager
async def with_volumes() -> AsyncIterator[World]:
    async with scheduler_world() as here:
        informers = Informers(here.admin, here.clock)
        made = Provisioner(here.admin, here.clock, informers)
        account = here.server.component
        binder = Manager(here.admin, here.clock, wanted=CONTROLLERS, informers=informers, client_for=account)
        tasks = [asyncio.ensure_future(each.run()) for each in (informers, made, binder)]
        try:
            for name in "ab":
                await here.add_node(name, labels={"name": name})
            yield here
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def add_claim(here: World, **spec: Any) -> None:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    await here.add("v1", "PersistentVolumeClaim", "data", "default", spec=asked)


@pytest.mark.parametrize("mode", ["", "Immediate", "WaitForFirstConsumer"])
async def test_a_claim_gets_a_volume_and_the_pod_its_node(mode: str) -> None:
    async with with_volumes() as here:
        if mode:
            await here.add("storage.k8s.io/v1", "StorageClass", "fast", provisioner="p", volumeBindingMode=mode)
        await add_claim(here, **({"storageClassName": "fast"} if mode else {}))
        await here.add_pod("p", **MOUNTED, nodeSelector={"name": "b"})
        await here.settle(5)
        assert (await here.pod("p")).spec.node_name == "b"
        claim: Any = await here.admin.get(CLAIMS, "default", "data")
        volume: Any = await here.admin.get(VOLUMES, "", claim.spec.volume_name)
        assert (claim.status.phase, volume.status.phase) == ("Bound", "Bound")
        late = mode == "WaitForFirstConsumer"
        assert (volume.spec.node_affinity is not None) == late, "made for the node that was chosen"
        await here.admin.delete(CLAIMS, "default", "data")
        await here.settle(5)
        assert (await here.admin.list(VOLUMES)).items, "a pod uses it"
        await here.admin.delete(PODS, "default", "p", DeleteOptions(grace_period_seconds=0))
        await here.settle(5)
        assert not (await here.admin.list(VOLUMES)).items


async def test_a_class_can_keep_its_volumes() -> None:
    async with with_volumes() as here:
        options: dict[str, Any] = {"reclaimPolicy": "Retain", "mountOptions": ["ro"]}
        await here.add("storage.k8s.io/v1", "StorageClass", "safe", provisioner="p", **options)
        await add_claim(here, storageClassName="safe")
        await here.settle(5)
        await here.admin.delete(CLAIMS, "default", "data")
        await here.settle(5)
        volume: Any
        (volume,) = (await here.admin.list(VOLUMES)).items
        assert (volume.status.phase, volume.spec.mount_options) == ("Released", ("ro",))


async def test_a_volume_that_is_there_is_promised_to_the_claim_on_the_chosen_node() -> None:
    async with with_volumes() as here:
        provisioner = "kubernetes.io/no-provisioner"
        mode = "WaitForFirstConsumer"
        await here.add("storage.k8s.io/v1", "StorageClass", "local", provisioner=provisioner, volumeBindingMode=mode)
        only = {"matchExpressions": [{"key": "name", "operator": "In", "values": ["b"]}]}
        spec = {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [only]}},
            "hostPath": {"path": "/disk"},
        }
        await here.add("v1", "PersistentVolume", "disk", spec=spec)
        await add_claim(here, storageClassName="local")
        await here.add_pod("p", **MOUNTED)
        await here.settle(5)
        assert (await here.pod("p")).spec.node_name == "b"
        claim: Any = await here.admin.get(CLAIMS, "default", "data")
        assert claim.spec.volume_name == "disk"

"""Writes in one namespace hang, as with a webhook that somebody there answers or does not: others wait for none of it
(issue 14)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller_world import Manifest, World, controller_world, manifest, node, pod
from dray.api.meta import Object
from dray.api.pods import is_ready
from dray.api.status import ApiError
from dray.reconcile import VirtualClock
from dray.scheduler import refusals, scheduler
from dray.scheduler.announcements import LONGEST_SECONDS
from dray.store import MemoryBackend
from local_server import LocalServer

HUNG = "hung"
WELL = "well"
TIMEOUT = 30.0
MANY = 30
WRITES = ("create", "update", "update_with_status", "patch", "delete", "post")


class Hanging:
    """A client whose writes in one namespace take half a minute and fail."""

    hangs = staticmethod(lambda namespace: namespace == HUNG)

    def __init__(self, client: Any, clock: VirtualClock) -> None:
        self._client = client
        self._clock = clock

    async def bind_with_claims(self, _pod: Any, _node: str, _claims: Any) -> None:
        """Nothing: one by one, as where webhooks are asked."""

    async def create_events(self, _events: Any) -> None:
        """Nothing, either."""

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name not in WRITES:
            return call

        async def hanging(*arguments: Any, **options: Any) -> Any:
            first = arguments[0]
            namespace = first.metadata.namespace if isinstance(first, Object) else arguments[1]
            if self.hangs(namespace):
                await self._clock.sleep(TIMEOUT)
                raise ApiError(500, "InternalError", "failed calling webhook: context deadline exceeded")
            return await call(*arguments, **options)

        return hanging


class HangingServer(LocalServer):
    def component(self, name: str) -> Any:
        """Admins are not asked for by webhooks here."""
        return Hanging(super().component(name), self.clock)


@contextlib.asynccontextmanager
async def hanging_world(*controllers: str) -> AsyncIterator[World]:
    server = HangingServer(VirtualClock(), MemoryBackend(), 1)
    await server.prepare()
    try:
        async with controller_world(*controllers, server=server) as world:
            for name in (HUNG, WELL):
                await world.create(manifest("v1", "Namespace", name))
            yield world
    finally:
        await server.store.close()


@contextlib.asynccontextmanager
async def hanging_scheduler(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """A scheduler that writes a few things at a time."""
    monkeypatch.setattr(scheduler, "MAX_BINDING", 16)
    monkeypatch.setattr(refusals, "TOLD_AT_ONCE", 4)
    async with hanging_world("job-controller") as world:
        running = scheduler.Scheduler(world.server.component("kube-scheduler"), world.clock)
        task = asyncio.get_running_loop().create_task(running.run())
        try:
            yield world
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


TEMPLATE: Manifest = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "x"}]},
}
SELECTOR: Manifest = {"matchLabels": {"app": "web"}}


def _workload(kind: str, name: str, namespace: str) -> Manifest:
    if kind == "Job":
        template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
        return manifest("batch/v1", kind, name, namespace, spec={"template": template})
    spec = {"selector": SELECTOR, "template": TEMPLATE, **({"serviceName": "x"} if kind == "StatefulSet" else {})}
    return manifest("apps/v1", kind, name, namespace, spec=spec)


@pytest.mark.parametrize(
    ("controller", "kind", "made"),
    [
        ("replicaset-controller", "ReplicaSet", "pods"),
        ("deployment-controller", "Deployment", "replicasets"),
        ("statefulset-controller", "StatefulSet", "pods"),
        ("daemonset-controller", "DaemonSet", "pods"),
        ("job-controller", "Job", "pods"),
    ],
)
async def test_workloads_of_others_get_their_pods(controller: str, kind: str, made: str) -> None:
    async with hanging_world(controller) as world:
        await world.create(node())
        await world.patch("nodes", "node-1", {"spec": {"taints": None}})
        await world.create(*(_workload(kind, f"w-{number}", HUNG) for number in range(MANY)))
        await world.settle()
        await world.create(_workload(kind, "w", WELL))
        await world.settle(5)
        assert len(await world.objects(made, WELL)) == 1
        assert await world.objects(made, HUNG) == []


async def test_pods_of_others_are_removed_from_nodes_that_are_gone() -> None:
    async with hanging_world("pod-garbage-collector-controller") as world:
        names = [f"node-{number}" for number in range(10)]
        for name in names:
            await world.create(node(name), *(pod(f"on-{name}", namespace=each, nodeName=name) for each in (HUNG, WELL)))
        for name in names:
            await world.delete("nodes", name)
        await world.settle(50)
        assert await world.objects("pods", WELL) == []
        assert len(await world.objects("pods", HUNG)) == len(names)


async def test_what_is_owned_by_nobody_any_more_goes_in_other_namespaces() -> None:
    async with hanging_world("garbage-collector-controller") as world:
        for namespace, count in ((HUNG, 3 * MANY), (WELL, 1)):
            owner = await world.create(manifest("v1", "ConfigMap", "owner", namespace))
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}
            owned = {"ownerReferences": [reference]}
            for number in range(count):
                await world.create(manifest("v1", "Secret", f"s-{number}", namespace, meta=owned))
            await world.settle()
            await world.delete("configmaps", "owner", namespace)
            await world.settle()
        assert await world.objects("secrets", WELL) == []


async def test_a_node_that_is_silent_is_tainted_and_pods_of_others_there_are_told() -> None:
    async with hanging_world("node-lifecycle-controller") as world:
        names = [f"node-{number}" for number in range(10)]
        ready = {"conditions": [{"type": "Ready", "status": "True", "reason": "Kubelet"}]}
        for name in names:
            await world.create(node(name))
            await world.patch("nodes", name, {"status": ready}, "status")
            for each in (HUNG, WELL):
                await world.create(pod(f"on-{name}", namespace=each, nodeName=name))
                await world.patch("pods", f"on-{name}", {"status": ready}, "status", each)
        await world.settle(120)
        told = {one.metadata.name for one in await world.objects("pods", WELL) if not is_ready(one)}
        assert told == {f"on-{name}" for name in names}
        assert all(is_ready(one) for one in await world.objects("pods", HUNG))
        tainted = [{taint.key for taint in one.spec.taints} for one in await world.objects("nodes")]
        assert all("node.kubernetes.io/unreachable" in keys for keys in tainted)


async def test_pods_of_others_get_nodes_and_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hanging_scheduler(monkeypatch) as world:
        await world.create(node())
        await world.patch("nodes", "node-1", {"spec": {"taints": None}})
        await world.patch("nodes", "node-1", {"status": {"allocatable": {"pods": "1000"}}}, "status")
        for number in range(100):
            await world.create(pod(f"p-{number}", namespace=HUNG))
        await world.settle(5)
        await world.create(pod("p", namespace=WELL))
        await world.settle(LONGEST_SECONDS + 1)
        found = await world.get("pods", "p", WELL)
        assert found.spec.node_name == "node-1"
        assert ("Scheduled", "Successfully assigned well/p to node-1") in await world.events("p")
        # Nothing is lost: when the writes are answered again, all pods get their node.
        monkeypatch.setattr(Hanging, "hangs", staticmethod(lambda _namespace: False))
        await world.settle(120)
        assert all(one.spec.node_name for one in await world.objects("pods", HUNG))


async def test_pods_of_others_are_told_why_they_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hanging_scheduler(monkeypatch) as world:
        for number in range(100):
            await world.create(pod(f"p-{number}", namespace=HUNG))
        await world.settle(5)
        await world.create(pod("p", namespace=WELL))
        await world.settle(5)
        assert [reason for reason, _ in await world.events("p")] == ["FailedScheduling"]


@pytest.mark.parametrize(
    ("controller", "made"),
    [("serviceaccount-controller", "serviceaccounts"), ("root-ca-certificate-publisher-controller", "configmaps")],
)
async def test_what_every_namespace_has_is_made_in_others(
    controller: str, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hanging, "hangs", staticmethod(lambda namespace: namespace.startswith(HUNG)))
    async with hanging_world(controller) as world:
        for number in range(7):
            await world.create(manifest("v1", "Namespace", f"{HUNG}-{number}"))
        await world.settle(5)
        await world.create(manifest("v1", "Namespace", "new"))
        await world.settle(5)
        assert len(await world.objects(made, "new")) == 1

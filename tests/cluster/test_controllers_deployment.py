"""Deployments roll out new templates without losing more pods than they may."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

import builders
from controller_world import Manifest, World, controller_world
from dray.api.generated.apps import ReplicaSet


@contextlib.asynccontextmanager
async def deployment_world() -> AsyncIterator[World]:
    async with controller_world(
        "deployment-controller", "replicaset-controller", "garbage-collector-controller"
    ) as world:
        yield world


def deployment(image: str = "v1", **spec: Any) -> Manifest:
    containers = [builders.container(image=image)]
    return builders.workload(**{"replicas": 4, "containers": containers, **spec})


def image_of(obj: Any) -> str:
    spec = obj.spec.template.spec if isinstance(obj, ReplicaSet) else obj.spec
    return str(spec.containers[0].image)


class Kubelet:
    """Makes pods ready, one a second, and watches the limits while it does."""

    def __init__(self, world: World, at_least: int, at_most: int) -> None:
        self._world = world
        self._at_least, self._at_most = at_least, at_most

    async def work(self, seconds: int) -> None:
        for _ in range(seconds):
            pods = await self._world.objects("pods")
            ready = [pod for pod in pods if pod.status.conditions]
            assert self._at_least <= len(ready) <= self._at_most
            assert len(pods) <= self._at_most
            for pod in [one for one in pods if not one.status.conditions][:1]:
                status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                await self._world.patch("pods", pod.metadata.name, {"status": status}, "status")
            await self._world.settle(1)


async def test_a_deployment_gets_a_replica_set_and_pods() -> None:
    async with deployment_world() as world:
        await world.create(deployment())
        await world.settle()
        (made,) = await world.objects("replicasets")
        assert made.metadata.name.startswith("web-")
        assert made.metadata.labels["pod-template-hash"] == made.metadata.name.removeprefix("web-")
        assert made.metadata.annotations["deployment.kubernetes.io/revision"] == "1"
        assert len(await world.objects("pods")) == 4
        await Kubelet(world, 0, 4).work(6)
        stored = await world.get("deployments", "web")
        assert (stored.status.replicas, stored.status.updated_replicas, stored.status.available_replicas) == (4, 4, 4)
        assert stored.metadata.annotations["deployment.kubernetes.io/revision"] == "1"
        assert stored.status.observed_generation == stored.metadata.generation == 1
        said = {one.type: (one.status, one.reason) for one in stored.status.conditions}
        assert said["Available"] == ("True", "MinimumReplicasAvailable")
        assert said["Progressing"] == ("True", "NewReplicaSetAvailable")


@pytest.mark.parametrize(
    ("surge", "unavailable", "at_least", "at_most"),
    [(1, 0, 4, 5), (0, 1, 3, 4), ("25%", "25%", 3, 5), ("100%", 0, 4, 8)],
)
async def test_a_rolling_update_stays_within_its_limits(
    surge: Any, unavailable: Any, at_least: int, at_most: int
) -> None:
    async with deployment_world() as world:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
        await world.create(deployment(strategy=strategy))
        await world.settle()
        await Kubelet(world, 0, at_most).work(6)
        await world.patch("deployments", "web", {"spec": deployment("v2")["spec"]})
        await world.settle(0.1)
        await Kubelet(world, at_least, at_most).work(20)
        assert {image_of(pod) for pod in await world.objects("pods")} == {"v2"}
        sizes = {image_of(one): one.spec.replicas for one in await world.objects("replicasets")}
        assert sizes == {"v1": 0, "v2": 4}
        assert (await world.get("deployments", "web")).metadata.annotations["deployment.kubernetes.io/revision"] == "2"


async def test_recreate_stops_everything_first() -> None:
    async with deployment_world() as world:
        await world.create(deployment(strategy={"type": "Recreate"}))
        await world.settle()
        await Kubelet(world, 0, 4).work(6)
        held = (await world.objects("pods"))[0].metadata.name
        await world.patch("pods", held, {"metadata": {"finalizers": ["example.com/slow"]}})
        await world.patch("deployments", "web", {"spec": deployment("v2")["spec"]})
        await world.settle(5)
        assert [pod.metadata.name for pod in await world.objects("pods")] == [held]
        await world.patch("pods", held, {"metadata": {"finalizers": None}})
        await world.settle(5)
        assert [image_of(pod) for pod in await world.objects("pods")] == ["v2"] * 4


async def test_going_back_uses_the_old_replica_set_again() -> None:
    async with deployment_world() as world:
        await world.create(deployment())
        await world.settle()
        await Kubelet(world, 0, 5).work(6)
        for image in ("v2", "v1"):
            await world.patch("deployments", "web", {"spec": deployment(image)["spec"]})
            await world.settle(0.1)
            await Kubelet(world, 3, 5).work(15)
        sets = {image_of(one): one for one in await world.objects("replicasets")}
        assert {image: one.spec.replicas for image, one in sets.items()} == {"v1": 4, "v2": 0}
        assert sets["v1"].metadata.annotations["deployment.kubernetes.io/revision"] == "3"


async def test_scaling_and_pausing() -> None:
    async with deployment_world() as world:
        await world.create(deployment())
        await world.settle()
        await world.patch("deployments", "web", {"spec": {"replicas": 6}})
        await world.settle()
        assert len(await world.objects("pods")) == 6
        await world.patch("deployments", "web", {"spec": {**deployment("v2", paused=True)["spec"], "replicas": 2}})
        await world.settle()
        assert [image_of(pod) for pod in await world.objects("pods")] == ["v1"] * 2
        await world.patch("deployments", "web", {"spec": {"paused": False}})
        await world.settle()
        await Kubelet(world, 0, 3).work(10)
        assert [image_of(pod) for pod in await world.objects("pods")] == ["v2"] * 2


async def test_old_replica_sets_beyond_the_limit_go() -> None:
    async with deployment_world() as world:
        await world.create(deployment(replicas=1, revisionHistoryLimit=1))
        for image in ("v2", "v3", "v4"):
            await world.settle()
            await Kubelet(world, 0, 2).work(5)
            spec = deployment(image, replicas=1, revisionHistoryLimit=1)["spec"]
            await world.patch("deployments", "web", {"spec": spec})
        await world.settle()
        await Kubelet(world, 0, 2).work(5)
        assert {image_of(one) for one in await world.objects("replicasets")} == {"v3", "v4"}


async def test_a_rollout_that_is_stuck_says_so() -> None:
    async with deployment_world() as world:
        await world.create(deployment(progressDeadlineSeconds=30))
        await world.settle(1)  # pods are made at once; from then on nothing moves
        await world.settle(19)
        stored = await world.get("deployments", "web")
        assert {one.type: one.status for one in stored.status.conditions}["Progressing"] == "True"
        await world.settle(30)
        stored = await world.get("deployments", "web")
        said = {one.type: (one.status, one.reason) for one in stored.status.conditions}
        assert said["Progressing"] == ("False", "ProgressDeadlineExceeded")
        assert said["Available"] == ("False", "MinimumReplicasUnavailable")


async def test_deleting_a_deployment_deletes_everything() -> None:
    async with deployment_world() as world:
        await world.create(deployment())
        await world.settle()
        await world.delete("deployments", "web", propagation_policy="Foreground")
        await world.settle(5)
        assert await world.objects("deployments") == []
        assert await world.objects("replicasets") == []
        assert await world.objects("pods") == []

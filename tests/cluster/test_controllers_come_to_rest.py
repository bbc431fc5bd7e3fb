"""Nothing wakes itself by its own writes: left alone, all controllers come to rest, whatever stands in their way.

Each case is a cluster with something of every kind that controllers look at. After some minutes nothing may be left to
do: writes end, and what is tried again because it fails is tried ever more rarely.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from builders import pod_template
from controller_world import Manifest, World, controller_world, manifest, pod
from dray.controllers.queue_controller import QueueController

LABELS = {"app": "web"}
QUIET_MINUTES = 4
TRIES_PER_MINUTE = 2
"""What fails is tried again every minute, and what a try writes may be looked at once more."""


template = partial(pod_template, LABELS)


def workloads() -> list[Manifest]:
    """One of every kind that makes pods, or makes what makes pods."""
    selector = {"matchLabels": LABELS}
    job = {"template": template(restartPolicy="Never"), "backoffLimitPerIndex": 1, "completionMode": "Indexed"}
    claims = [{"name": "dev", "resourceClaimTemplateName": "missing"}]
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return [
        manifest("apps/v1", "ReplicaSet", "rs", spec={"replicas": 2, "selector": selector, "template": template()}),
        manifest(
            "apps/v1",
            "Deployment",
            "d",
            spec={"replicas": 2, "selector": selector, "template": template(), "progressDeadlineSeconds": 60},
        ),
        manifest("apps/v1", "DaemonSet", "ds", spec={"selector": selector, "template": template()}),
        manifest(
            "apps/v1",
            "StatefulSet",
            "sts",
            spec={
                "replicas": 2,
                "serviceName": "s",
                "selector": selector,
                "template": template(resourceClaims=claims),
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": storage}],
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
            },
        ),
        manifest("v1", "ReplicationController", "rc", spec={"replicas": 2, "selector": LABELS, "template": template()}),
        manifest("batch/v1", "Job", "j", spec={"completions": 2, "parallelism": 2, **job}),
        manifest(
            "batch/v1",
            "CronJob",
            "c",
            spec={"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {**job, "completions": 1}}},
        ),
        manifest("policy/v1", "PodDisruptionBudget", "b", spec={"minAvailable": 1, "selector": selector}),
        pod("waits", resourceClaims=claims),
    ]


def forbids_pods() -> Manifest:
    return manifest("v1", "ResourceQuota", "none", spec={"hard": {"pods": "0"}})


async def add_nodes(world: World) -> None:
    for name in ("ready", "tainted"):
        await world.create(manifest("v1", "Node", name))
    await world.patch("nodes", "ready", {"spec": {"taints": None}})
    taint = {"key": "broken", "effect": "NoExecute"}
    await world.patch("nodes", "tainted", {"spec": {"taints": [taint]}})


async def nothing_special(world: World) -> None:
    await world.create(*workloads())


async def no_pods_allowed(world: World) -> None:
    await world.create(forbids_pods())
    await world.create(*workloads()[:-1])


async def pods_that_cannot_be_deleted(world: World) -> None:
    await world.create(*workloads())
    await world.settle(5)
    for one in await world.objects("pods"):
        finalizers = [*one.metadata.finalizers, "example.com/stays"]
        await world.patch("pods", one.metadata.name, {"metadata": {"finalizers": finalizers}})
        await world.delete("pods", one.metadata.name)


async def pods_that_fail(world: World) -> None:
    await world.create(*workloads())
    await world.settle(5)
    await world.create(forbids_pods())
    for one in await world.objects("pods"):
        await world.patch("pods", one.metadata.name, {"status": {"phase": "Failed"}}, "status")


async def owners_that_are_going(world: World) -> None:
    await world.create(*workloads())
    await world.settle(5)
    for plural, name in (("deployments", "d"), ("statefulsets", "sts"), ("daemonsets", "ds"), ("jobs", "j")):
        await world.patch(plural, name, {"metadata": {"finalizers": ["example.com/stays"]}})
        await world.delete(plural, name)


@asynccontextmanager
async def all_controllers() -> AsyncIterator[World]:
    async with controller_world("*") as world:
        await add_nodes(world)
        yield world


def tries(world: World) -> dict[str, int]:
    """By controller, how often something was put into its queue."""
    found = {}
    for name, one in world.manager.controllers.items():
        if isinstance(one, QueueController):
            found[name] = one.queue.adds + one.queue.retries
    return found


def versions(objects: list[Any]) -> dict[str, str]:
    return {one.metadata.uid: one.metadata.resource_version for one in objects}


@pytest.mark.parametrize(
    "happens",
    [nothing_special, no_pods_allowed, pods_that_cannot_be_deleted, pods_that_fail, owners_that_are_going],
)
async def test_controllers_that_are_left_alone_come_to_rest(happens: Callable[[World], Any]) -> None:
    async with all_controllers() as world:
        await happens(world)
        for _ in range(3):
            await world.settle(60)
        before = tries(world)
        stored = {plural: versions(await world.objects(plural)) for plural in PLURALS}
        for _ in range(QUIET_MINUTES):
            await world.settle(60)
        hurried = {
            name: number - before[name]
            for name, number in tries(world).items()
            if number - before[name] > QUIET_MINUTES * TRIES_PER_MINUTE * KEYS.get(name, 1)
        }
        assert not hurried
        assert {plural: versions(await world.objects(plural)) for plural in PLURALS} == stored


PLURALS = (
    *("pods", "replicasets", "deployments", "daemonsets", "statefulsets", "replicationcontrollers", "jobs"),
    *("cronjobs", "poddisruptionbudgets", "controllerrevisions", "persistentvolumeclaims", "resourcequotas"),
)
KEYS = {"replicaset-controller": 2, "resourceclaim-controller": 3, "node-lifecycle-controller": 30}
"""How many objects a controller may be trying again; silent nodes are looked at every few seconds."""

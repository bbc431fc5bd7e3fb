"""What somebody can make in a namespace of their own, in numbers, keeps no controller from giving others a turn."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from controller_world import Manifest, World, controller_world, manifest, node, pod, typed
from dray.controllers.stateful_set import controller as stateful_sets
from local_server import local_server
from loop_turns import LoopTurns
from patience import PATIENCE

LONGEST_TURN = 0.02
"""Seconds of processor time; the server is on the same loop."""
CONTROLLERS = (
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "daemonset-controller",
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "resourcequota-controller",
    "job-controller",
)
PODS = 250
LABELLED: Manifest = {"labels": {"a": "b"}}


@pytest.fixture(autouse=True)
def _no_collection_of_garbage() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def selector() -> Manifest:
    """One that takes a while to read."""
    values = ["b", *(f"v{number}" for number in range(500))]
    return {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": values}]}


def service(number: int) -> Manifest:
    ports = [{"name": f"p{port}", "port": port + 1, "targetPort": "main"} for port in range(100)]
    spec = {"clusterIP": "None", "selector": {"a": "b"}, "ports": ports}
    return manifest("v1", "Service", f"service-{number}", "default", spec=spec)


def budget(number: int) -> Manifest:
    spec = {"maxUnavailable": 0, "selector": selector()}
    return manifest("policy/v1", "PodDisruptionBudget", f"budget-{number}", "default", spec=spec)


def replicas(number: int) -> Manifest:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    spec = {"replicas": 0, "selector": selector(), "template": template}
    return manifest("apps/v1", "ReplicaSet", f"replicas-{number}", "default", spec=spec)


def quota(number: int) -> Manifest:
    spec = {"hard": {"pods": "10000", "services": "1000", "secrets": "1000", "count/configmaps": "100000"}}
    return manifest("v1", "ResourceQuota", f"quota-{number}", "default", spec=spec)


def owned(number: int) -> Manifest:
    owners = [
        {"apiVersion": f"x{number}.io/v1", "kind": f"Kind{each}", "name": "n", "uid": f"u-{number}-{each}"}
        for each in range(100)
    ]
    return manifest("v1", "ConfigMap", f"owned-{number}", "default", meta={"ownerReferences": owners})


def large(number: int) -> Manifest:
    """Workloads with a template that is as large as it may be."""
    kind = ("StatefulSet", "DaemonSet", "Deployment")[number % 3]
    command = [f"word-{word}" for word in range(40_000)]
    container = {"name": "main", "image": "x", "command": command}
    template = {"metadata": {"labels": {"large": str(number)}}, "spec": {"containers": [container]}}
    spec: Manifest = {"selector": {"matchLabels": {"large": str(number)}}, "template": template}
    if kind != "DaemonSet":
        spec["replicas"] = 0
    return manifest("apps/v1", kind, f"large-{number}", "default", spec=spec)


async def longest(world: World, turns: LoopTurns, made: list[Manifest]) -> float:
    """The longest turn while objects are made one by one, and pods come and go together."""
    await world.create(*made[:2])
    await world.settle(5)
    turns.reset()
    for one in made[2:]:
        await world.create(one)
    await world.settle(10)
    gone = [one.metadata.name for one in await world.objects("pods")]
    for start in range(0, 60, 20):
        new = (pod(f"new-{number}", meta=LABELLED) for number in range(start, start + 20))
        await asyncio.gather(*map(world.create, new))
        old = gone[start : start + 20]  # some may have gone already: workloads adopt pods, and delete those too many
        await asyncio.gather(
            *(world.delete("pods", name, grace_period_seconds=0) for name in old), return_exceptions=True
        )
        await world.settle(5)
    return turns.longest


@pytest.mark.parametrize("kind", [service, budget, replicas, quota, owned])
async def test_no_turn_is_long(kind: object) -> None:
    assert callable(kind)
    async with controller_world(*CONTROLLERS) as world:
        for number in range(PODS):
            ready = [{"type": "Ready", "status": "True"}]
            status = {"phase": "Running", "podIP": f"10.0.{number // 250}.{number % 250}", "conditions": ready}
            ports = [{"name": "main", "containerPort": 8000 + number}]
            made = pod(f"pod-{number}", meta=LABELLED)
            made["spec"]["containers"][0]["ports"] = ports
            await world.create(made)
            await world.patch("pods", f"pod-{number}", {"status": status}, "status")
        await world.settle(5)
        turns = LoopTurns(asyncio.get_running_loop())
        assert await longest(world, turns, [kind(number) for number in range(80)]) < LONGEST_TURN


async def test_large_templates_are_compared_beside_the_loop() -> None:
    async with local_server() as server:
        admin = server.client()
        await admin.create(typed(node()))
        for number in range(3):
            await admin.create(typed(large(number)))
        turns = LoopTurns(asyncio.get_running_loop())
        async with controller_world(*CONTROLLERS, server=server) as world:
            async with asyncio.timeout(PATIENCE):
                while len([*await world.objects("controllerrevisions"), *await world.objects("replicasets")]) < 3:
                    await world.settle()
                    await asyncio.sleep(0.01)  # threads take their own time
            assert turns.longest < LONGEST_TURN


async def test_a_stateful_set_of_many_pods_is_planned_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes through all of its pods is done in a thread; what looks at volume claims, for some pods in a turn."""
    pods, turn, on_loop, looked = 300, 0, set[str](), Counter[int]()

    def watch(name: str, note: Callable[[], None]) -> None:
        work = getattr(stateful_sets, name)

        def watched(*arguments: object) -> object:
            if threading.current_thread() is threading.main_thread():
                note()
            return work(*arguments)

        monkeypatch.setattr(stateful_sets, name, watched)

    for name in ("observe", "next_available", "plan", "plan_status", "plan_rollout", "surplus"):
        watch(name, partial(on_loop.add, name))
    watch("claims_for", lambda: looked.update((turn,)))

    async def count_turns() -> None:
        nonlocal turn
        while True:
            await asyncio.sleep(0)
            turn += 1

    volume = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {
        "replicas": pods,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": LABELLED, "spec": {"containers": [{"name": "main", "image": "x"}]}},
        "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": volume}],
    }
    async with controller_world("statefulset-controller") as world:
        counting = asyncio.get_running_loop().create_task(count_turns())
        await world.create(manifest("apps/v1", "StatefulSet", "many", "default", spec=spec))
        async with asyncio.timeout(PATIENCE):
            while (await world.get("statefulsets", "many")).status.replicas < pods:
                await world.settle()
                await asyncio.sleep(0.01)  # threads take their own time
            on_loop.clear()  # from here on it is about all of them
            looked.clear()
            await world.patch("statefulsets", "many", {"metadata": {"annotations": {"look": "again"}}})
            while looked.total() < 2 * pods:
                await world.settle()
                await asyncio.sleep(0.01)
        counting.cancel()
    assert on_loop == set()
    assert max(looked.values()) <= 2 * stateful_sets.AT_ONCE


async def test_whoever_selects_thousands_of_pods_looks_at_some_at_a_time() -> None:
    async with local_server() as server:
        admin = server.client()
        for start in range(0, 4_000, 500):
            some = range(start, start + 500)
            await asyncio.gather(*(admin.create(typed(pod(f"p-{number}", meta=LABELLED))) for number in some))
        async with controller_world(*CONTROLLERS, server=server) as world:
            await world.settle(5)
            turns = LoopTurns(asyncio.get_running_loop())
            for number in range(3):
                await world.create(budget(number), service(number))
            async with asyncio.timeout(PATIENCE):
                while not (
                    all(one.status.observed_generation for one in await world.objects("poddisruptionbudgets"))
                    and len(await world.objects("endpoints")) == 3
                ):
                    await world.settle()
                    await asyncio.sleep(0.01)
            assert turns.longest < LONGEST_TURN

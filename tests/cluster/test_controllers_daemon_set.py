"""A DaemonSet has a pod on every node that it is for, and renews them without losing more than it may."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller_world import Manifest, World, controller_world, manifest


@contextlib.asynccontextmanager
async def daemon_world(nodes: int = 3) -> AsyncIterator[World]:
    async with controller_world("daemonset-controller", "garbage-collector-controller") as world:
        for number in range(nodes):
            await add_node(world, f"node-{number}")
        yield world


async def add_node(world: World, name: str, **labels: str) -> None:
    """A node that is ready: the taint that new ones get is gone."""
    await world.create(manifest("v1", "Node", name, meta={"labels": labels}))
    await world.patch("nodes", name, {"spec": {"taints": None}})


def daemon_set(image: str = "v1", *, pod: Manifest | None = None, **spec: Any) -> Manifest:
    containers = [{"name": "main", "image": image}]
    template = {"metadata": {"labels": {"app": "driver"}}, "spec": {"containers": containers, **(pod or {})}}
    full = {"selector": {"matchLabels": {"app": "driver"}}, "template": template, **spec}
    return manifest("apps/v1", "DaemonSet", "driver", spec=full)


def target(pod: Any) -> str:
    required = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    (name,) = required.node_selector_terms[0].match_fields[0].values
    return str(name)


async def images(world: World) -> dict[str, list[str]]:
    """By node, the images of its pods."""
    found: dict[str, list[str]] = {}
    for pod in await world.objects("pods"):
        found.setdefault(target(pod), []).append(pod.spec.containers[0].image)
    return {name: sorted(found[name]) for name in sorted(found)}


async def all_images(world: World) -> list[str]:
    return [image for found in (await images(world)).values() for image in found]


async def make_ready(world: World) -> None:
    """Binds pods and makes them ready, as a scheduler and nodes would."""
    for pod in await world.objects("pods"):
        if not pod.status.conditions:
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": str(world.server.engine.clock())}
            status = {"status": {"phase": "Running", "conditions": [ready]}}
            await world.patch("pods", pod.metadata.name, status, "status")
    await world.settle()


async def test_every_node_has_a_pod_that_can_only_go_there() -> None:
    async with daemon_world() as world:
        await world.create(daemon_set())
        await world.settle()
        pods = await world.objects("pods")
        assert sorted(map(target, pods)) == ["node-0", "node-1", "node-2"]
        (revision,) = await world.objects("controllerrevisions")
        digest = revision.metadata.labels["controller-revision-hash"]
        assert revision.metadata.name == f"driver-{digest}"
        for pod in pods:
            expected = {"app": "driver", "controller-revision-hash": digest, "pod-template-generation": "1"}
            assert pod.metadata.labels == expected
            assert pod.metadata.name.startswith("driver-")
            keys = {(one.key.removeprefix("node.kubernetes.io/"), one.effect) for one in pod.spec.tolerations}
            assert {("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("unschedulable", "NoSchedule")} <= keys
        await make_ready(world)
        status = (await world.get("daemonsets", "driver")).status
        assert (status.desired_number_scheduled, status.current_number_scheduled, status.number_ready) == (3, 3, 3)
        assert (status.number_available, status.updated_number_scheduled, status.number_unavailable) == (3, 3, 0)
        assert ("SuccessfulCreate", f"Created pod: {pods[0].metadata.name}") in await world.events("driver")


async def test_nodes_come_go_and_change() -> None:
    async with daemon_world(1) as world:
        await world.create(daemon_set(pod={"nodeSelector": {"gpu": "yes"}}))
        await world.settle()
        assert await images(world) == {}
        await world.patch("nodes", "node-0", {"metadata": {"labels": {"gpu": "yes"}}})
        await add_node(world, "new", gpu="yes")
        await world.settle()
        assert list(await images(world)) == ["new", "node-0"]
        await world.patch("nodes", "new", {"metadata": {"labels": {"gpu": None}}})
        await world.settle()
        assert list(await images(world)) == ["node-0"]
        taint = {"key": "broken", "effect": "NoSchedule"}
        await world.patch("nodes", "node-0", {"spec": {"taints": [taint]}})
        await world.settle()
        assert list(await images(world)) == ["node-0"]  # who is there may stay
        assert (await world.get("daemonsets", "driver")).status.number_misscheduled == 1
        await world.patch("nodes", "node-0", {"spec": {"taints": [{**taint, "effect": "NoExecute"}]}})
        await world.settle()
        assert await images(world) == {}


@pytest.mark.parametrize(
    ("rolling", "steps"),
    [
        ({"maxUnavailable": 1}, [["v1", "v1", "v2"], ["v1", "v2", "v2"], ["v2", "v2", "v2"]]),
        ({"maxUnavailable": "67%"}, [["v2", "v2", "v2"]]),
        ({"maxSurge": 1, "maxUnavailable": 0}, [["v1", "v1", "v1", "v2"], ["v1", "v1", "v2", "v2"]]),
    ],
)
async def test_a_new_template_spreads_no_faster_than_allowed(rolling: Manifest, steps: list[list[str]]) -> None:
    async with daemon_world() as world:
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        await world.create(daemon_set(updateStrategy=strategy))
        await world.settle()
        await make_ready(world)
        containers = [{"name": "main", "image": "v2"}]
        await world.patch("daemonsets", "driver", {"spec": {"template": {"spec": {"containers": containers}}}})
        await world.settle(2)
        for expected in steps:
            assert sorted(await all_images(world)) == expected
            await make_ready(world)
            await world.settle(2)
        for _ in range(3):
            await make_ready(world)
        assert set(await all_images(world)) == {"v2"}
        status = (await world.get("daemonsets", "driver")).status
        assert (status.updated_number_scheduled, status.number_available) == (3, 3)
        revisions = await world.objects("controllerrevisions")
        assert sorted(one.revision for one in revisions) == [1, 2]


async def test_on_delete_waits_for_somebody() -> None:
    async with daemon_world(2) as world:
        await world.create(daemon_set(updateStrategy={"type": "OnDelete"}))
        await world.settle()
        await make_ready(world)
        containers = [{"name": "main", "image": "v2"}]
        await world.patch("daemonsets", "driver", {"spec": {"template": {"spec": {"containers": containers}}}})
        await world.settle(2)
        assert await images(world) == {"node-0": ["v1"], "node-1": ["v1"]}
        gone = next(pod for pod in await world.objects("pods") if target(pod) == "node-1")
        await world.delete("pods", gone.metadata.name)
        await world.settle(2)
        assert await images(world) == {"node-0": ["v1"], "node-1": ["v2"]}


async def test_a_template_that_comes_back_is_the_newest_again() -> None:
    async with daemon_world(1) as world:
        await world.create(daemon_set(revisionHistoryLimit=1))
        await world.settle()
        for image in ("v2", "v1", "v3"):
            await make_ready(world)
            containers = [{"name": "main", "image": image}]
            await world.patch("daemonsets", "driver", {"spec": {"template": {"spec": {"containers": containers}}}})
            await world.settle(2)
            await make_ready(world)
        found = {
            one.data["spec"]["template"]["spec"]["containers"][0]["image"]: one.revision
            for one in await world.objects("controllerrevisions")
        }
        assert found == {"v1": 3, "v3": 4}  # v2 is beyond the limit


async def test_a_pod_that_fails_again_and_again_is_replaced_later_and_later() -> None:
    async with daemon_world(1) as world:
        await world.create(daemon_set())
        await world.settle()
        seen = set()
        for _ in range(64):
            for pod in await world.objects("pods"):
                seen.add(pod.metadata.name)
                if pod.status.phase != "Failed":
                    await world.patch("pods", pod.metadata.name, {"status": {"phase": "Failed"}}, "status")
            await world.settle(1)
        assert 4 <= len(seen) <= 9
        assert "FailedDaemonPod" in {reason for reason, _ in await world.events("driver")}

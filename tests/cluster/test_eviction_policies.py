"""The built-in eviction policies on a real server, for device and for node taints: what becomes of pods."""

from typing import Any

import pytest

from controller_world import World, manifest
from dray.controllers.settings import ControllerSettings
from dray.eviction.settings import FailurePolicy
from eviction_objects import leaving, rule, run_pod, taint, use_devices
from eviction_policy_world import DEVICE, NODE, eviction_policy_world, policy, taint_node, waiting


@pytest.mark.parametrize("kind", ["device", "node"])
@pytest.mark.req("3902-21")
async def test_checkpoint_waits_for_an_annotation(kind: str) -> None:
    async with eviction_policy_world(policy("checkpoint")) as world:
        await use_devices(world, "claim", "gpu-0", pods=("db",))
        await (world.create(rule()) if kind == "device" else taint_node(world))
        await world.settle(60)
        assert await leaving(world) == set()
        status, message = await waiting(world, "db") or ("", "")
        assert status == "True"
        assert "dray.dev/checkpointed" in message
        told = [text for reason, text in await world.events("db") if reason == "EvictionPolicy"]
        assert len(told) == 1
        assert told[0].startswith("checkpoint: pod waits: annotation dray.dev/checkpointed is not set")
        await world.patch("pods", "db", {"metadata": {"annotations": {"dray.dev/checkpointed": "true"}}})
        await world.settle()
        assert await leaving(world) == {"db"}
        assert ("EvictionPolicy", "checkpoint: pod leaves: its data is safe") in await world.events("db")


@pytest.mark.parametrize("kind", ["device", "node"])
async def test_checkpoint_does_not_wait_for_ever(kind: str) -> None:
    async with eviction_policy_world(policy("checkpoint", deadline="2m")) as world:
        await use_devices(world, "claim", "gpu-0", pods=("db",))
        await (world.create(rule()) if kind == "device" else taint_node(world))
        await world.settle(118)
        assert await leaving(world) == set()
        await world.settle(4)
        assert await leaving(world) == {"db"}


@pytest.mark.parametrize("kind", ["device", "node"])
async def test_a_pod_that_waits_and_may_stay_after_all_says_so(kind: str) -> None:
    async with eviction_policy_world(policy("checkpoint")) as world:
        await use_devices(world, "claim", "gpu-0", pods=("db",))
        await (world.create(rule()) if kind == "device" else taint_node(world))
        await world.settle(10)
        assert (await waiting(world, "db") or ("",))[0] == "True"
        if kind == "device":
            await world.delete("devicetaintrules", "rule")
        else:
            await world.patch("nodes", "node-1", {"spec": {"taints": []}})
        await world.settle(10)
        assert await waiting(world, "db") == ("False", "The pod may stay.")
        await world.settle(3600)
        assert await leaving(world) == set()


async def run_replicas(world: World, *names: str, owner: str = "set-uid") -> None:
    """Ready pods of one controller that share a claim."""
    await use_devices(world, "claim", "gpu-0", pods=names)
    for name in names:
        await own(world, name, owner)


async def own(world: World, name: str, owner: str = "set-uid") -> None:
    """A pod becomes ready, and a replica of something."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": owner, "controller": True}
    await world.patch("pods", name, {"metadata": {"ownerReferences": [reference], "labels": {"app": "a"}}})
    await world.patch("pods", name, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "status")


@pytest.mark.parametrize("kind", ["device", "node"])
async def test_pdb_lets_one_go_after_the_other_when_the_one_before_is_replaced(kind: str) -> None:
    async with eviction_policy_world(policy("pdb")) as world:
        await run_replicas(world, "a", "b")
        await (world.create(rule()) if kind == "device" else taint_node(world))
        await world.settle(20)
        first = await leaving(world)
        assert len(first) == 1
        await world.delete("pods", *first, grace_period_seconds=0)
        await world.settle(20)
        assert await leaving(world) == set()
        await run_pod(world, "replacement", nodeName="node-2")
        await world.settle(20)
        assert await leaving(world) == set()
        await own(world, "replacement")
        await world.settle(5)
        assert await leaving(world) == {"a", "b"} - first


async def test_pdb_gives_up_waiting_for_replacements() -> None:
    async with eviction_policy_world(policy("pdb", replacement_timeout="30s")) as world:
        await run_replicas(world, "a", "b")
        await world.create(rule())
        await world.settle(25)
        assert len(await leaving(world)) == 1
        await world.settle(10)
        assert await leaving(world) == {"a", "b"}


@pytest.mark.parametrize("kind", ["device", "node"])
async def test_pdb_waits_until_the_budget_allows_it(kind: str) -> None:
    async with eviction_policy_world(policy("pdb"), DEVICE, NODE, "disruption-controller") as world:
        await run_replicas(world, "a")
        budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
        await world.create(manifest("policy/v1", "PodDisruptionBudget", "all", spec=budget))
        await world.settle()
        await (world.create(rule()) if kind == "device" else taint_node(world))
        await world.settle(300)
        assert await leaving(world) == set()
        status, message = await waiting(world, "a") or ("", "")
        assert status == "True"
        assert "needs 1 healthy pods and has 1 currently" in message
        prefix = "device_taint_eviction_controller" if kind == "device" else "taint_eviction_controller"
        refused = world.metric(f"{prefix}_evictions_refused_total")
        # Later and later: at 0, 1, 3, 7, 15, 31 and then every 30 s.
        assert refused is not None
        assert 10 <= refused <= 16
        await world.delete("poddisruptionbudgets", "all")
        await world.settle(31)
        assert await leaving(world) == {"a"}


async def test_pdb_with_a_deadline_deletes_in_the_end() -> None:
    async with eviction_policy_world(policy("pdb", deadline="2m"), DEVICE, "disruption-controller") as world:
        await run_replicas(world, "a")
        budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
        await world.create(manifest("policy/v1", "PodDisruptionBudget", "all", spec=budget))
        await world.create(rule())
        await world.settle(110)
        assert await leaving(world) == set()
        await world.settle(45)
        assert await leaving(world) == {"a"}


async def test_evictions_that_are_put_off_keep_the_rate_when_they_happen() -> None:
    async with eviction_policy_world(policy("checkpoint")) as world:
        pods = tuple(f"p{number:02}" for number in range(40))
        await use_devices(world, "claim", "gpu-0", pods=pods)
        await world.create(rule())
        await world.settle(30)
        assert await leaving(world) == set()
        for name in pods:
            await world.patch("pods", name, {"metadata": {"annotations": {"dray.dev/checkpointed": "yes"}}})
        await world.settle(0.05)
        assert len(await leaving(world)) == 10
        await world.settle(1)
        assert len(await leaving(world)) in (20, 21)
        await world.settle(5)
        assert len(await leaving(world)) == 40


async def test_progress_tells_of_pods_that_were_put_off() -> None:
    async with eviction_policy_world(policy("checkpoint")) as world:
        await use_devices(world, "claim", "gpu-0", pods=("a", "b"))
        await world.create(rule())
        await world.settle(15)
        found = (await world.get("devicetaintrules", "rule")).status.conditions[0]
        assert (found.status, found.reason) == ("True", "PodsPendingEviction")
        assert "2 pods put off by the eviction policy" in found.message


async def test_pods_choose_among_what_is_offered() -> None:
    async with eviction_policy_world(policy("delete", FailurePolicy.HOLD, "checkpoint")) as world:
        await use_devices(world, "claim", "gpu-0", pods=("plain", "careful", "sly"))
        for name, wanted in (("careful", "checkpoint"), ("sly", "never-mind-me")):
            await world.patch("pods", name, {"metadata": {"annotations": {"dray.dev/eviction-policy": wanted}}})
        await world.create(rule())
        await world.settle(60)
        assert await leaving(world) == {"plain", "sly"}
        warned = [text for reason, text in await world.events("sly") if reason == "EvictionPolicyFailed"]
        assert warned == [
            "annotation dray.dev/eviction-policy: policy 'never-mind-me' is not offered here, only checkpoint, delete"
        ]


@pytest.mark.req("3902-32", "3902-24", "5055-98")
async def test_by_default_nobody_is_asked_and_nothing_more_is_written() -> None:
    async with eviction_policy_world(ControllerSettings()) as world:
        calls: list[str] = []
        for name in (DEVICE, NODE):
            _count(world.manager.controllers[name]._client, calls)  # type: ignore[attr-defined]
        await use_devices(world, "claim", "gpu-0", pods=("a",))
        await run_pod(world, "b", nodeName="node-2")
        await world.create(rule())
        await world.settle(20)
        assert await leaving(world) == {"a"}
        per_pod = ["create Event", "delete pods", "patch pods/status"]
        assert sorted(calls) == [*per_pod, "update status", "update status"]  # twice: the condition of the rule
        calls.clear()
        await world.create(manifest("v1", "Node", "node-2", spec={"taints": [taint()]}))
        await world.settle(20)
        assert await leaving(world) == {"a", "b"}
        assert sorted(calls) == per_pod


def _count(client: Any, calls: list[str]) -> None:
    """Notes every write."""
    create, update, patch, delete = client.create, client.update, client.patch, client.delete

    async def counted_create(obj: Any) -> Any:
        calls.append(f"create {obj.kind}")
        return await create(obj)

    async def counted_update(obj: Any, subresource: str = "") -> Any:
        calls.append(f"update {subresource}")
        return await update(obj, subresource)

    async def counted_patch(kind: Any, *rest: Any, subresource: str = "", **more: Any) -> Any:
        calls.append(f"patch {kind.plural}/{subresource}")
        return await patch(kind, *rest, subresource=subresource, **more)

    async def counted_delete(kind: Any, *rest: Any) -> None:
        calls.append(f"delete {kind.plural}")
        await delete(kind, *rest)

    client.create, client.update, client.patch, client.delete = (
        counted_create, counted_update, counted_patch, counted_delete
    )  # fmt: skip

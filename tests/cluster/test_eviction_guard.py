"""Evictions that are so many that they may be a mistake wait for a confirmation, on a real server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from controller_world import World, controller_world, manifest
from dray.api.kinds import NAMESPACES
from dray.api.status import ApiError
from dray.cli.controller_options import GUARD
from dray.controllers.eviction.past import ToldPast
from dray.controllers.settings import ControllerSettings
from dray.eviction.recent import Departed
from dray.eviction.settings import EvictionSettings, Limit
from dray.eviction.stop import PLACE
from dray.eviction.told_limit import LIMIT_ANNOTATION
from dray.reconcile import EventRecorder
from dray.server.local import LocalClient
from eviction_objects import DRIVER, KEY, ago, device_slice, leaving, rule, run_pod, taint, use_devices
from local_server import LocalServer, local_server

DEVICE = "device-taint-eviction-controller"
NODE = "taint-eviction-controller"
CONFIRM = "dray.dev/confirm-evictions"


def settings_with(limit: str) -> ControllerSettings:
    return ControllerSettings(eviction=EvictionSettings(max_evictions=Limit.parse(limit)))


@contextlib.asynccontextmanager
async def guarded_world(limit: str, server: LocalServer | None = None) -> AsyncIterator[World]:
    """Runs a story with both eviction controllers, two nodes and one pool."""
    async with controller_world(DEVICE, NODE, server=server, settings=settings_with(limit)) as world:
        for name in ("node-1", "node-2", "node-3"):
            await world.create(manifest("v1", "Node", name))
        await world.create(device_slice("pool", "gpu-0", "gpu-1"))
        yield world


async def conditions(world: World, plural: str, name: str) -> dict[str, Any]:
    """The conditions of an object by type."""
    found = await world.get(plural, name)
    return {one.type: one for one in found.status.conditions}


async def confirm(world: World, plural: str, name: str, value: str) -> None:
    await world.patch(plural, name, {"metadata": {"annotations": {CONFIRM: value}}})


async def test_a_rule_that_hits_too_many_is_held_until_its_generation_is_confirmed() -> None:
    async with guarded_world("2") as world:
        await use_devices(world, "claim", "gpu-0", pods=("a", "b", "c"))
        await world.create(rule())
        await world.settle(60)
        assert await leaving(world) == set()
        found = await conditions(world, "devicetaintrules", "rule")
        held = found["EvictionHeld"]
        assert (held.status, held.reason, held.observed_generation) == ("True", "TooManyPods", 1)
        assert held.message == (
            "3 pods of 3 would be evicted, more than 2. "
            "To confirm: kubectl annotate --overwrite devicetaintrule rule dray.dev/confirm-evictions=1"
        )
        assert found["EvictionInProgress"].status == "True"
        assert "3 pods need to be evicted in 1 namespace. They are held" in found["EvictionInProgress"].message
        assert ("EvictionHeld", held.message) in await world.events("rule")
        await confirm(world, "devicetaintrules", "rule", "7")
        await world.settle(20)
        assert await leaving(world) == set()
        await confirm(world, "devicetaintrules", "rule", "1")
        await world.settle(20)
        assert await leaving(world) == {"a", "b", "c"}
        found = await conditions(world, "devicetaintrules", "rule")
        assert (found["EvictionHeld"].status, found["EvictionHeld"].reason) in (
            ("False", "NotHeld"),
            ("False", "Confirmed"),
        )
        assert found["EvictionInProgress"].reason == "Completed"


async def test_where_rules_have_no_status_events_tell_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubernetes 1.34 has DeviceTaintRule without the subresource status."""
    update, asked = LocalClient.update, []

    async def without_status(self: LocalClient, obj: Any, subresource: str = "") -> Any:
        if subresource == "status" and obj.kind == "DeviceTaintRule":
            asked.append(obj.metadata.name)
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        return await update(self, obj, subresource)

    monkeypatch.setattr(LocalClient, "update", without_status)
    async with guarded_world("2") as world:
        await use_devices(world, "claim", "gpu-0", pods=("a", "b", "c"))
        await world.create(rule())
        await world.settle(600)
        assert await leaving(world) == set()
        assert [reason for reason, _ in await world.events("rule")] == ["EvictionHeld"]
        assert len(asked) == 1  # what was said once need not be said again
        await confirm(world, "devicetaintrules", "rule", "1")
        await world.settle(20)
        assert await leaving(world) == {"a", "b", "c"}


async def test_an_empty_selector_is_held_however_few_it_hits() -> None:
    async with guarded_world(GUARD) as world:
        await use_devices(world, "claim", "gpu-0", pods=("a",))
        await world.create(rule(selector={}))
        await world.settle(60)
        assert await leaving(world) == set()
        held = (await conditions(world, "devicetaintrules", "rule"))["EvictionHeld"]
        assert (held.status, held.reason) == ("True", "EmptySelector")
        assert held.message == (
            "1 pod of 1 would be evicted, for an empty selector, which selects every device. "
            "To confirm: kubectl annotate --overwrite devicetaintrule rule dray.dev/confirm-evictions=1"
        )
        await confirm(world, "devicetaintrules", "rule", "1")
        await world.settle(20)
        assert await leaving(world) == {"a"}


async def test_a_rule_whose_selector_becomes_empty_is_held_and_goes_on_when_it_says_whom_it_means() -> None:
    async with guarded_world(GUARD) as world:
        await use_devices(world, "claim", "gpu-0", pods=("a",))
        await use_devices(world, "other", "gpu-1", pods=("b", "c"))
        await world.create(rule(selector={"device": "gpu-0"}))
        await world.settle(20)
        assert await leaving(world) == {"a"}
        await world.patch("devicetaintrules", "rule", {"spec": {"deviceSelector": {"device": None}}})
        await world.settle(20)
        assert await leaving(world) == {"a"}
        assert (await conditions(world, "devicetaintrules", "rule"))["EvictionHeld"].reason == "EmptySelector"
        await world.patch("devicetaintrules", "rule", {"spec": {"deviceSelector": {"pool": "pool"}}})
        await world.settle(20)
        assert await leaving(world) == {"a", "b", "c"}


async def test_a_changed_rule_needs_another_confirmation() -> None:
    async with guarded_world("1") as world:
        await use_devices(world, "claim", "gpu-0", pods=("a",))
        await use_devices(world, "other", "gpu-1", pods=("b", "c"))
        small = rule(selector={"device": "gpu-0"})
        small["metadata"]["annotations"] = {CONFIRM: "1"}
        await world.create(small)
        await world.settle(5)
        assert await leaving(world) == {"a"}
        await world.patch("devicetaintrules", "rule", {"spec": {"deviceSelector": {"device": None}}})
        await world.settle(20)
        assert await leaving(world) == {"a"}
        held = (await conditions(world, "devicetaintrules", "rule"))["EvictionHeld"]
        assert (held.status, held.observed_generation) == ("True", 2)


@pytest.mark.parametrize(("limit", "is_held"), [("3", False), ("2", True), ("75%", False), ("74%", True), ("0", True)])
async def test_a_limit_is_a_number_or_a_share_of_the_pods_that_use_devices(limit: str, is_held: bool) -> None:
    async with guarded_world(limit) as world:
        await use_devices(world, "claim", "gpu-0", pods=("a", "b", "c"))
        await use_devices(world, "other", "gpu-1", pods=("d",))
        await run_pod(world, "without-devices")
        await world.create(rule(selector={"device": "gpu-0"}))
        await world.settle(20)
        assert await leaving(world) == (set() if is_held else {"a", "b", "c"})
        assert ("EvictionHeld" in await conditions(world, "devicetaintrules", "rule")) == is_held


async def test_what_was_evicted_counts_so_that_many_in_small_steps_are_held_too() -> None:
    async with guarded_world("3") as world:
        await use_devices(world, "claim", "gpu-0", pods=("a", "b"))
        await world.create(rule())
        await world.settle(5)
        assert await leaving(world) == {"a", "b"}
        await use_devices(world, "late", "old-1", pods=("c",))
        await world.settle(5)
        assert await leaving(world) == {"a", "b", "c"}
        await use_devices(world, "later", "old-2", pods=("d",))
        await world.settle(5)
        assert await leaving(world) == {"a", "b", "c"}


async def test_a_hold_ends_when_few_are_left() -> None:
    async with guarded_world("1") as world:
        await use_devices(world, "claim", "gpu-0", pods=("a", "b"))
        await world.create(rule())
        await world.settle(5)
        await world.delete("pods", "a", grace_period_seconds=0)
        await world.settle(15)
        assert await leaving(world) == {"b"}


async def test_taints_of_drivers_are_confirmed_on_a_slice() -> None:
    async with guarded_world("1") as world:
        await use_devices(world, "claim", "gpu-0", pods=("a", "b"))
        devices = [{"name": "gpu-0", "taints": [taint()]}, {"name": "gpu-1"}]
        await world.patch("resourceslices", "pool-slice", {"spec": {"devices": devices}})
        await world.settle(20)
        assert await leaving(world) == set()
        ((reason, message),) = await world.events("pool-slice")
        assert reason == "EvictionHeld"
        assert message.endswith("kubectl annotate --overwrite resourceslice pool-slice dray.dev/confirm-evictions=1")
        await confirm(world, "resourceslices", "pool-slice", "1")
        await world.settle(5)
        assert await leaving(world) == {"a", "b"}


async def test_nothing_waits_until_holds_and_bad_selectors_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be thousands of pools to tell of, and a server that is slow to take it."""
    unanswered: list[str] = []

    async def hang(_self: EventRecorder, _about: Any, reason: str, _message: str) -> None:
        unanswered.append(reason)
        await asyncio.Event().wait()

    async with guarded_world("1") as world:
        monkeypatch.setattr(EventRecorder, "warning", hang)
        await use_devices(world, "claim", "gpu-0", pods=("a", "b"))
        broken = {"selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].model == "x"'}}]}
        await world.create(rule(selector=broken))
        devices = [{"name": "gpu-0", "taints": [taint()]}, {"name": "gpu-1"}]
        await world.patch("resourceslices", "pool-slice", {"spec": {"devices": devices}})
        await world.settle(20)
        assert {"EvictionHeld", "CELRuntimeError"} <= set(unanswered)
        assert await leaving(world) == set()
        await confirm(world, "resourceslices", "pool-slice", "1")
        await world.settle(5)
        assert await leaving(world) == {"a", "b"}


@contextlib.asynccontextmanager
async def small_cluster(nodes: int, pods_each: int) -> AsyncIterator[World]:
    """A cluster with the guard that there is unless something else is said: each node has a pool, each pod a device."""
    async with controller_world(DEVICE, NODE, settings=settings_with(GUARD)) as world:
        for where in (f"n{number}" for number in range(nodes)):
            await world.create(manifest("v1", "Node", where))
            devices = [f"gpu-{number}" for number in range(pods_each)]
            await world.create(device_slice(where, *devices, nodeName=where))
            for device in devices:
                name = f"{where}-{device}"
                await use_devices(world, name, device, pods=(name,), pool=where, pod_spec={"nodeName": where})
        yield world


@pytest.mark.parametrize(("nodes", "pods_each"), [(6, 1), (3, 2), (4, 3)])
async def test_no_driver_empties_a_small_cluster_in_a_rule_or_in_what_it_publishes(nodes: int, pods_each: int) -> None:
    async with small_cluster(nodes, pods_each) as world:
        await world.create(rule(selector={"driver": DRIVER}))
        await world.settle(60)
        assert await leaving(world) == set()
        await world.delete("devicetaintrules", "rule")
        for number in range(nodes):
            devices = [{"name": f"gpu-{one}", "taints": [taint()]} for one in range(pods_each)]
            await world.patch("resourceslices", f"n{number}-slice", {"spec": {"devices": devices}})
        await world.settle(60)
        assert len(await leaving(world)) <= 5, "slice by slice, some may be seen first"


async def test_many_rules_with_a_pool_each_count_as_one() -> None:
    async with small_cluster(20, 1) as world:
        for number in range(20):
            await world.create(rule(f"rule-{number}", selector={"driver": DRIVER, "pool": f"n{number}"}))
        await world.settle(60)
        assert len(await leaving(world)) == 5


async def test_a_node_is_served_without_asking_at_any_pace_and_the_next_one_is_not_before_they_are_replaced() -> None:
    async with small_cluster(4, 7) as world:
        for name in (f"n{where}-gpu-{number}" for where in (1, 2, 3) for number in range(2, 7)):
            await world.delete("pods", name, grace_period_seconds=0)
        await world.create(rule("first", selector={"driver": DRIVER, "pool": "n0"}, evictionsPerSecond=1))
        await world.settle(60)
        assert await leaving(world) == {f"n0-gpu-{number}" for number in range(7)}
        await world.create(rule("second", selector={"driver": DRIVER, "pool": "n1"}))
        await world.settle(60)
        assert len(await leaving(world)) == 7
        held = (await conditions(world, "devicetaintrules", "second"))["EvictionHeld"]
        assert held.message.startswith("2 pods of ")
        assert "7 left or leave besides, more than 7 (limit 50,10%,node,spare)." in held.message


async def taint_nodes(world: World, *names: str, **more: Any) -> None:
    for name in names:
        await world.patch("nodes", name, {"spec": {"taints": [{"key": KEY, "effect": "NoExecute", **more}]}})


async def test_a_node_taint_that_hits_too_many_is_held_and_confirmed_node_by_node() -> None:
    async with guarded_world("2") as world:
        for name in ("node-1", "node-2"):
            for number in range(2):
                await run_pod(world, f"{name}-{number}", nodeName=name)
        await run_pod(world, "elsewhere", nodeName="node-3")
        added = ago(world, 0)
        tolerated = [{"key": "example.com/slow", "operator": "Exists", "effect": "NoExecute"}]
        await run_pod(world, "tolerant", nodeName="node-1", tolerations=tolerated)
        slow = [{"key": "example.com/slow", "effect": "NoExecute", "timeAdded": added}]
        for name in ("node-1", "node-2"):
            await world.patch("nodes", name, {"spec": {"taints": slow}})
            await world.settle(20)
        gone = await leaving(world)
        assert gone == {"node-1-0", "node-1-1"}  # few, until the second node
        held = (await conditions(world, "nodes", "node-2"))["EvictionHeld"]
        assert (held.status, held.reason) == ("True", "TooManyPods")
        assert held.message.startswith("taint example.com/slow: 2 pods of ")
        command = f"kubectl annotate --overwrite node node-2 {CONFIRM}=example.com/slow@{added}"
        assert held.message.endswith(command)
        assert ("EvictionHeld", held.message) in await world.events("node-2")
        assert "EvictionHeld" not in await conditions(world, "nodes", "node-1")
        await confirm(world, "nodes", "node-2", "example.com/slow")
        await world.settle(5)
        assert await leaving(world) == gone
        await confirm(world, "nodes", "node-2", f"example.com/other,example.com/slow@{added}")
        await world.settle(5)
        assert await leaving(world) == {*gone, "node-2-0", "node-2-1"}
        assert (await conditions(world, "nodes", "node-2"))["EvictionHeld"].status == "False"


async def test_what_a_held_node_says_is_told_anew_when_it_is_no_longer_so() -> None:
    """Another node gets the taint, a pod goes, a second taint comes: the command must confirm all that is held."""
    async with guarded_world("1") as world:
        for name in ("node-1", "node-2"):
            for number in range(2):
                await run_pod(world, f"{name}-{number}", nodeName=name)
        await taint_nodes(world, "node-1")
        await world.settle(20)
        first = (await conditions(world, "nodes", "node-1"))["EvictionHeld"]
        assert first.message.startswith(f"taint {KEY}: 2 pods of 4 would be evicted")
        await taint_nodes(world, "node-2")
        await world.settle(70)
        for name in ("node-1", "node-2"):
            held = (await conditions(world, "nodes", name))["EvictionHeld"]
            assert held.message.startswith(f"taint {KEY}: 4 pods of 4 would be evicted")
        assert (await conditions(world, "nodes", "node-1"))[
            "EvictionHeld"
        ].last_transition_time == first.last_transition_time
        await world.delete("pods", "node-2-0", "default")
        await world.settle(70)
        held = (await conditions(world, "nodes", "node-1"))["EvictionHeld"]
        assert held.message.startswith(f"taint {KEY}: 3 pods of 3 would be evicted")
        both = [{"key": KEY, "effect": "NoExecute"}, {"key": "example.com/more", "effect": "NoExecute"}]
        await world.patch("nodes", "node-1", {"spec": {"taints": both}})
        await world.settle(5)
        held = (await conditions(world, "nodes", "node-1"))["EvictionHeld"]
        assert held.message.endswith(f"{CONFIRM}={KEY},example.com/more"), "at once: it is what people copy"
        assert len(await world.events("node-1")) == 1, "one event, for it was held all the time"


async def test_what_a_held_rule_says_of_others_is_told_anew_when_it_is_no_longer_so() -> None:
    async with guarded_world("2") as world:
        await use_devices(world, "claim", "gpu-0", pods=("a", "b", "c"))
        await world.create(rule(selector={"driver": DRIVER, "pool": "pool", "device": "gpu-0"}))
        await world.settle(20)
        held = (await conditions(world, "devicetaintrules", "rule"))["EvictionHeld"]
        assert held.message.startswith("3 pods of 3 would be evicted, more than 2")
        await use_devices(world, "other", "gpu-1", pods=("d",))
        await world.settle(20)
        held = (await conditions(world, "devicetaintrules", "rule"))["EvictionHeld"]
        assert held.message.startswith("3 pods of 4 would be evicted, more than 2"), held.message


async def test_nodes_that_return_end_the_hold_and_who_left_counts_for_an_hour() -> None:
    async with guarded_world("2") as world:
        for name in ("node-1", "node-2", "node-3"):
            await run_pod(world, f"on-{name}", nodeName=name, tolerations=[_for(30)])
        await taint_nodes(world, "node-1", "node-2", "node-3")
        await world.settle(40)
        assert await leaving(world) == set()
        await taint_nodes_off(world, "node-1")
        await world.settle(40)
        assert await leaving(world) == {"on-node-2", "on-node-3"}
        await taint_nodes_off(world, "node-2", "node-3")
        await run_pod(world, "second", nodeName="node-2")
        await taint_nodes(world, "node-2")
        await world.settle(5)
        assert "second" not in await leaving(world)
        await taint_nodes_off(world, "node-2")
        await world.settle(3600)
        await taint_nodes(world, "node-2")
        await world.settle(5)
        assert "second" in await leaving(world)


async def taint_nodes_off(world: World, *names: str) -> None:
    for name in names:
        await world.patch("nodes", name, {"spec": {"taints": []}})


def _for(seconds: int) -> dict[str, Any]:
    return {"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


async def test_without_a_limit_nothing_is_held() -> None:
    async with controller_world(DEVICE, NODE) as world:
        await world.create(manifest("v1", "Node", "node-1"))
        await world.create(device_slice("pool", "gpu-0"))
        await use_devices(world, "claim", "gpu-0", pods=tuple(f"p{number}" for number in range(20)))
        await world.create(rule(evictionsPerSecond=100))
        await world.settle(20)
        assert len(await leaving(world)) == 20
        assert list(await conditions(world, "devicetaintrules", "rule")) == ["EvictionInProgress"]


@contextlib.asynccontextmanager
async def started_anew(server: LocalServer, limit: str) -> AsyncIterator[World]:
    """Other controllers on the same server, who know what they read."""
    async with controller_world(DEVICE, NODE, server=server, settings=settings_with(limit)) as world:
        yield world


async def test_controllers_that_start_anew_go_on_counting() -> None:
    """Else whoever can make them start anew lets one burst after the other through."""
    async with local_server() as server:
        async with guarded_world("3", server) as world:
            await use_devices(world, "claim", "gpu-0", pods=("a", "b"))
            await world.create(rule())
            await world.settle(5)
            assert await leaving(world) == {"a", "b"}
        async with started_anew(server, "3") as world:
            await use_devices(world, "late", "old-1", pods=("c", "d"))
            await world.settle(60)
            assert await leaving(world) == {"a", "b"}
            held = (await conditions(world, "devicetaintrules", "rule"))["EvictionHeld"]
            assert held.status == "True"
            await world.settle(60)
        # Who left counts for an hour for what comes up, and what is held came up within that hour.
        async with started_anew(server, "3") as world:
            await world.settle(2 * 3600)
            assert await leaving(world) == {"a", "b"}
        async with started_anew(server, "3") as world:
            await world.settle(3600)
            assert await leaving(world) == {"a", "b"}
            await world.delete("devicetaintrules", "rule")
            await world.settle(60)
        async with started_anew(server, "3") as world:
            await world.create(rule("another"))
            await world.settle(60)
            assert await leaving(world) == {"a", "b", "c", "d"}


async def test_who_cannot_be_written_down_does_not_leave() -> None:
    """A controller that is killed has not evicted anybody whom the next one does not count."""
    async with guarded_world("3") as world:
        roles = await world.objects("clusterroles")
        role = next(one for one in roles if one.metadata.name == f"system:controller:{DEVICE}")
        rules = msgspec.to_builtins(role.rules)
        others = [one for one in rules if "resourceNames" not in one]
        assert len(others) == len(rules) - 1
        await world.patch("clusterroles", role.metadata.name, {"rules": others})
        await use_devices(world, "claim", "gpu-0", pods=("a", "b"))
        await world.create(rule())
        await world.settle(20)
        assert await leaving(world) == set()
        await world.patch("clusterroles", role.metadata.name, {"rules": rules})
        await world.settle(120)
        assert await leaving(world) == {"a", "b"}
        told = (await world.get("namespaces", "kube-system")).metadata.annotations["dray.dev/recent-evictions"]
        (own,) = msgspec.json.decode(told).values()
        assert [pods for _, *pods in own["left"]] == [[2, 2]]


@contextlib.asynccontextmanager
async def two_processes(limit: str) -> AsyncIterator[tuple[World, World]]:
    """The controller of device taints and that of node taints, each in a process of its own."""
    async with (
        local_server() as server,
        controller_world(DEVICE, server=server, settings=settings_with(limit)) as devices,
        controller_world(NODE, server=server, settings=settings_with(limit)) as nodes,
    ):
        for name in ("node-1", "node-2", "node-3"):
            await devices.create(manifest("v1", "Node", name))
        await devices.create(device_slice("pool", "gpu-0", "gpu-1"))
        yield devices, nodes


async def test_controllers_in_two_processes_count_each_others_evictions() -> None:
    async with two_processes("3") as (devices, nodes):
        await use_devices(devices, "claim", "gpu-0", pods=("a", "b"))
        for name in ("c", "d"):
            await run_pod(devices, name, nodeName="node-2")
        await devices.create(rule())
        await devices.settle(5)
        assert await leaving(devices) == {"a", "b"}
        await taint_nodes(nodes, "node-2")
        await nodes.settle(60)
        assert await leaving(devices) == {"a", "b"}
        assert (await conditions(nodes, "nodes", "node-2"))["EvictionHeld"].status == "True"
        # Both have told their part, and neither has lost the other's.
        await run_pod(devices, "e", nodeName="node-3")
        await taint_nodes(nodes, "node-3", value="alone")
        await nodes.settle(60)
        assert await leaving(devices) == {"a", "b", "e"}
        told = (await nodes.get("namespaces", "kube-system")).metadata.annotations["dray.dev/recent-evictions"]
        parts = msgspec.json.decode(told).values()
        assert sorted((*one["controllers"], sum(pods for _, pods, _ in one["left"])) for one in parts) == [
            (DEVICE, 2),
            (NODE, 1),
        ]


async def test_controllers_in_two_processes_count_each_others_evictions_when_the_clock_is_set_ahead() -> None:
    """What one has told seems to be long ago then, and the other neither takes it for that nor takes it away."""
    async with two_processes("3") as (devices, nodes):
        await use_devices(devices, "claim", "gpu-0", pods=("a", "b"))
        for name in ("c", "d"):
            await run_pod(devices, name, nodeName="node-2")
        await run_pod(devices, "e", nodeName="node-3")
        await devices.create(rule())
        await devices.settle(5)
        assert await leaving(devices) == {"a", "b"}
        await nodes.settle(60)
        nodes.clock.jump(4000)
        await taint_nodes(nodes, "node-3", value="alone")
        await nodes.settle(60)
        assert await leaving(devices) == {"a", "b", "e"}
        await taint_nodes(nodes, "node-2")
        await nodes.settle(60)
        assert await leaving(devices) == {"a", "b", "e"}


async def test_of_two_processes_that_begin_at_once_one_hears_of_the_other_first() -> None:
    """Else both would let go as many as the limit says, each for itself."""
    async with two_processes("2") as (devices, nodes):
        await use_devices(devices, "claim", "gpu-0", pods=("a", "b"))
        for name in ("c", "d"):
            await run_pod(devices, name, nodeName="node-2")
        await asyncio.gather(devices.create(rule()), taint_nodes(nodes, "node-2"))
        await nodes.settle(120)
        assert len(await leaving(devices)) == 2


async def test_who_hears_of_another_process_when_its_own_pods_are_written_down_judges_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The news may come in the very turn in which a pod that was taken before is about to leave."""
    write = ToldPast.written
    heard: list[Departed] = []

    async def write_and_hear(self: ToldPast) -> None:
        await write(self)
        if not heard:
            others = Departed(nodes.clock.monotonic(), 2, 0)
            heard.append(others)
            self._recent.hear(heard)

    async with two_processes("3") as (devices, nodes):
        for name in ("c", "d"):
            await run_pod(devices, name, nodeName="node-2")
        monkeypatch.setattr(ToldPast, "written", write_and_hear)
        await taint_nodes(nodes, "node-2")
        await nodes.settle(120)
        assert heard
        assert await leaving(devices) == set()
        assert (await conditions(nodes, "nodes", "node-2"))["EvictionHeld"].status == "True"


async def test_a_server_that_goes_away_while_it_is_told_the_limit_is_told_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As over HTTP when a server is killed: no controller fails for it."""
    patch, failures = LocalClient.patch, [ConnectionError("Server disconnected")] * 2

    async def failing(self: LocalClient, *arguments: Any, **named: Any) -> Any:
        if failures and LIMIT_ANNOTATION in str(arguments):
            raise failures.pop()
        return await patch(self, *arguments, **named)

    monkeypatch.setattr(LocalClient, "patch", failing)
    async with guarded_world("2") as world:
        await world.settle(130)
        found = await world.admin.get(NAMESPACES, "", PLACE)
        assert LIMIT_ANNOTATION in found.metadata.annotations
        assert not failures
    assert not [record for record in caplog.records if record.levelname == "ERROR"]

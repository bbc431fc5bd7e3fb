"""Taints for a limited time, on a real server: the controller has its own rights, and only the test moves the clock."""

from __future__ import annotations

from typing import Any

import pytest

from controller_world import World, controller_world, find_kind, node, pod, typed
from dray.eviction.drain import DRAIN_ANNOTATION
from dray.process.clock import as_time
from dray.server.local import LocalClient
from eviction_objects import rule
from local_server import local_server, refused

NAME = "taint-expiry-controller"
RULE_END = "dray.dev/expires-at"
NODE_END = "dray.dev/taints-expire-at"


def in_(world: World, seconds: float) -> str:
    """A moment from now."""
    return str(as_time(world.clock.now() + seconds))


async def make_rule(world: World, end: str, name: str = "rule") -> None:
    made = rule(name)
    made["metadata"]["annotations"] = {RULE_END: end}
    await world.create(made)


async def taints(world: World) -> list[str]:
    found = await world.get("nodes", "node-1")
    return [f"{taint.key}:{taint.effect}" for taint in found.spec.taints]


async def test_a_rule_goes_when_its_time_has_come_and_not_before() -> None:
    async with controller_world(NAME) as world:
        await make_rule(world, in_(world, 7200))
        await world.create(rule("stays"))
        await world.settle(7195)
        assert await world.get("devicetaintrules", "rule") is not None
        await world.settle(10)
        assert await world.get("devicetaintrules", "rule") is None
        assert await world.get("devicetaintrules", "stays") is not None
        assert [reason for reason, _ in await world.events("rule")] == ["Expired"]


async def test_it_counts_while_nobody_runs() -> None:
    async with local_server() as server:
        async with controller_world(NAME, server=server) as world:
            await make_rule(world, in_(world, 100), "due")
            await make_rule(world, in_(world, 1000), "later")
            await world.settle(10)
        await server.clock.advance(200)
        async with controller_world(NAME, server=server) as again:
            await again.settle(1)
            assert await again.get("devicetaintrules", "due") is None
            assert await again.get("devicetaintrules", "later") is not None
            await again.settle(900)
            assert await again.get("devicetaintrules", "later") is None


async def test_a_time_that_is_moved_or_taken_away_counts() -> None:
    async with controller_world(NAME) as world:
        await make_rule(world, in_(world, 100), "longer")
        await make_rule(world, in_(world, 100), "for-good")
        await make_rule(world, in_(world, 100), "shorter")
        await world.settle(50)
        for name, end in {"longer": in_(world, 500), "for-good": None, "shorter": in_(world, 1)}.items():
            await world.patch("devicetaintrules", name, {"metadata": {"annotations": {RULE_END: end}}})
        await world.settle(100)
        left = {one.metadata.name for one in await world.objects("devicetaintrules")}
        assert left == {"longer", "for-good"}
        await world.settle(500)
        left = {one.metadata.name for one in await world.objects("devicetaintrules")}
        assert left == {"for-good"}


async def test_a_clock_that_is_set_forward_is_noticed() -> None:
    async with controller_world(NAME) as world:
        await make_rule(world, in_(world, 86_400))
        await world.settle(1)
        world.clock.jump(86_400)
        await world.settle(31)
        assert await world.get("devicetaintrules", "rule") is None


@pytest.mark.parametrize("end", ["tomorrow", "", "2026-13-01T00:00:00Z"])
async def test_what_is_no_time_removes_nothing_and_is_said(end: str) -> None:
    async with controller_world(NAME) as world:
        await make_rule(world, end)
        await world.settle(100_000)
        assert await world.get("devicetaintrules", "rule") is not None
        assert [reason for reason, _ in await world.events("rule")] == ["InvalidExpiry"]


async def test_node_taints_go_one_by_one_and_others_stay() -> None:
    async with controller_world(NAME) as world:
        entries: list[dict[str, Any]] = [
            {"key": "a", "effect": "NoExecute"},
            {"key": "a", "effect": "NoSchedule"},
            {"key": "b", "value": "x", "effect": "NoSchedule"},
        ]
        made = node(taints=entries)
        ends = {"a:NoExecute": in_(world, 100), "b:NoSchedule": in_(world, 200), "gone:NoSchedule": in_(world, 1)}
        told = ",".join(f"{key}={end}" for key, end in ends.items())
        made["metadata"]["annotations"] = {NODE_END: told, DRAIN_ANNOTATION: "a:NoSchedule,b:NoSchedule"}
        await world.create(made)
        await world.settle(90)
        assert len(await taints(world)) >= 3
        await world.patch("nodes", "node-1", {"status": {"nodeInfo": {"kernelVersion": "6"}}}, "status")
        await world.settle(20)
        assert "a:NoExecute" not in await taints(world)
        assert {"a:NoSchedule", "b:NoSchedule"} <= set(await taints(world))
        await world.settle(100)
        assert "b:NoSchedule" not in await taints(world)
        found = await world.get("nodes", "node-1")
        assert NODE_END not in found.metadata.annotations
        assert found.metadata.annotations[DRAIN_ANNOTATION] == "a:NoSchedule", "the other drain is over"
        assert "a:NoSchedule" in await taints(world)
        assert [reason for reason, _ in await world.events("node-1")] == ["TaintExpired"] * 2


@pytest.mark.parametrize("text", ["nonsense", "a:NoExecute", "a:NoExecute=soon", ":=2026-06-01T12:00:00Z"])
async def test_a_node_annotation_that_cannot_be_read_removes_nothing_and_is_said(text: str) -> None:
    async with controller_world(NAME) as world:
        made = node(taints=[{"key": "a", "effect": "NoExecute"}])
        made["metadata"]["annotations"] = {NODE_END: text}
        await world.create(made)
        await world.settle(100)
        assert "a:NoExecute" in await taints(world)
        assert [reason for reason, _ in await world.events("node-1")] == ["InvalidExpiry"]


async def test_a_rule_that_is_given_more_time_at_the_last_moment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    async with controller_world(NAME) as world:
        delete = LocalClient.delete

        async def too_late(own: LocalClient, kind: Any, namespace: str, name: str, options: Any = None) -> None:
            """Just before the controller's request arrives, an admin is faster."""
            monkeypatch.setattr(LocalClient, "delete", delete)
            later = {"metadata": {"annotations": {RULE_END: in_(world, 1000)}}}
            await world.patch("devicetaintrules", name, later)
            await delete(own, kind, namespace, name, options)

        monkeypatch.setattr(LocalClient, "delete", too_late)
        await make_rule(world, in_(world, 10))
        await world.settle(60)
        assert LocalClient.delete is delete
        assert await world.get("devicetaintrules", "rule") is not None
        await world.settle(1000)
        assert await world.get("devicetaintrules", "rule") is None


async def test_the_controller_may_do_nothing_else() -> None:
    async with controller_world(NAME) as world:
        await world.create(node(), pod("p"), rule())
        own = world.server.component(NAME)
        nodes, pods, rules = (find_kind(plural) for plural in ("nodes", "pods", "devicetaintrules"))
        for attempt in (
            own.delete(nodes, "", "node-1"),
            own.patch(nodes, "", "node-1", {"status": {}}, subresource="status"),
            own.delete(pods, "default", "p"),
            own.patch(rules, "", "rule", {"spec": {"taint": {"effect": "None"}}}),
            own.create(typed(rule("new"))),
        ):
            await refused(attempt, "taint-expiry-controller")

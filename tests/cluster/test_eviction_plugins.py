"""Plugins that decide about evictions, on a real server: what they may say, and if they fail, hang or come late."""

import threading
from typing import Any

import pytest

from controller_world import World, controller_world
from dray.api.generated.core import Pod
from dray.eviction.policy import Decision, EvictionCause, Force, Never, Now, PolicyState, Wait
from dray.eviction.settings import Fallback
from eviction_objects import KEY, leaving, rule, use_devices
from eviction_policy_world import DEVICE, NODE, Plugin, install, play, policy, taint_node, until, waiting


@pytest.mark.parametrize("kind", ["device", "node"])
@pytest.mark.req("3902-21")
def test_a_plugin_decides(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[EvictionCause, PolicyState, int]] = []

    def decide(pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:
        asked.append((cause, state, threading.get_ident()))
        if pod.metadata.labels.get("keep") == "yes":
            return Never("it is dear to us")
        if pod.metadata.name == "hard":
            return Force("it does not matter")
        return Wait(now + 100, "not yet") if state.asked == 0 else Now("it is time")

    async def story(world: World) -> None:
        await use_devices(world, "claim", "gpu-0", pods=("keep", "hard", "soft"))
        await world.patch("pods", "keep", {"metadata": {"labels": {"keep": "yes"}}})
        await (world.create(rule()) if kind == "device" else taint_node(world))

        async def all_are_asked() -> bool:
            return len(asked) >= 3 and await world.get("pods", "hard") is None and bool(await waiting(world, "soft"))

        await until(world, all_are_asked)
        assert await leaving(world) == set()
        await world.settle(101)

        async def soft_leaves() -> bool:
            return await leaving(world) == {"soft"}

        await until(world, soft_leaves)
        events = await world.events("keep") + await world.events("hard") + await world.events("soft")
        assert {text for reason, text in events if reason == "EvictionPolicy"} == {
            "mine: pod stays: it is dear to us",
            "mine: pod is removed by force: it does not matter",
            "mine: pod waits: not yet",
            "mine: pod leaves: it is time",
        }
        assert all(thread != threading.get_ident() for _, _, thread in asked)
        cause = asked[0][0]
        assert (cause.kind, cause.key) == (kind, KEY)
        assert cause.devices == (("gpu.example.com/pool/gpu-0",) if kind == "device" else ())
        assert cause.rule == ("rule" if kind == "device" else None)
        if kind == "device":
            await world.settle(15)
            told = (await world.get("devicetaintrules", "rule")).status.conditions[0]
            assert told.status == "False"
            assert "1 pod kept by the eviction policy" in told.message
        count = len(asked)
        await world.settle(3600)
        assert len(asked) == count
        await world.patch("pods", "keep", {"metadata": {"labels": {"keep": "no"}}})

        async def keep_is_asked_again() -> bool:
            return len(asked) > count

        await until(world, keep_is_asked_again)

    install(monkeypatch, "mine", Plugin(decide))
    play(story, policy("mine"))


@pytest.mark.parametrize("kind", ["device", "node"])
@pytest.mark.parametrize("fallback", list(Fallback))
@pytest.mark.parametrize("fault", ["raises", "hangs", "nonsense"])
def test_a_policy_that_fails_falls_back_as_configured_and_that_is_said(
    fault: str, fallback: Fallback, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def decide(_pod: Pod, _cause: EvictionCause, _state: PolicyState, _now: float) -> Decision:
        if fault == "hangs":
            release.wait(60)
        if fault == "raises":
            raise LookupError("no such thing")
        return "perhaps"  # type: ignore[return-value]

    async def story(world: World) -> None:
        await use_devices(world, "claim", "gpu-0", pods=("user",))
        await (world.create(rule()) if kind == "device" else taint_node(world))

        async def is_said() -> bool:
            await world.settle(1)
            return any(reason == "EvictionPolicyFailed" for reason, _ in await world.events("user"))

        await until(world, is_said)
        await world.settle(1)
        text = next(text for reason, text in await world.events("user") if reason == "EvictionPolicyFailed")
        expected = {"raises": "LookupError: no such thing", "hangs": "no answer in 5 s", "nonsense": "no decision"}
        assert expected[fault] in text
        assert ("the pod is deleted" in text) == (fallback is Fallback.DELETE)
        assert await leaving(world) == ({"user"} if fallback is Fallback.DELETE else set())
        prefix = "device_taint_eviction_controller" if kind == "device" else "taint_eviction_controller"
        failures = world.metric(f"{prefix}_policy_failures_total", policy="mine", fallback=fallback)
        assert failures is not None
        assert failures >= 1

    install(monkeypatch, "mine", Plugin(decide))
    try:
        play(story, policy("mine", fallback))
    finally:
        release.set()


@pytest.mark.parametrize("kind", ["device", "node"])
@pytest.mark.req("3902-15")
def test_a_policy_can_force_pods_that_do_not_go_also_after_a_restart(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decide(pod: Pod, _cause: EvictionCause, _state: PolicyState, now: float) -> Decision:
        gone = pod.metadata.deletion_timestamp
        if gone is None:
            return Now()
        deadline = gone.datetime().timestamp() + 60
        return Wait(deadline) if now < deadline else Force("its node does not answer")

    async def story(world: World) -> None:
        await use_devices(world, "claim", "gpu-0", pods=("stuck",))
        await (world.create(rule()) if kind == "device" else taint_node(world))

        async def is_leaving() -> bool:
            return await leaving(world) == {"stuck"}

        await until(world, is_leaving)
        await world.settle(40)
        async with controller_world(DEVICE, NODE, server=world.server, settings=policy("mine")) as later:
            await later.settle(30)
            assert await leaving(later) == {"stuck"}

            async def is_gone() -> bool:
                await later.settle(5)
                return await later.get("pods", "stuck") is None

            await until(later, is_gone)

    install(monkeypatch, "mine", Plugin(decide, follows_up=True))
    play(story, policy("mine"))


@pytest.mark.parametrize("kind", ["device", "node"])
def test_an_answer_that_comes_when_the_pod_may_stay_is_not_acted_on(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answer = threading.Event(), threading.Event()

    def decide(_pod: Pod, _cause: EvictionCause, _state: PolicyState, _now: float) -> Decision:
        asked.set()
        answer.wait(60)
        return Force("too late")

    async def story(world: World) -> None:
        await use_devices(world, "claim", "gpu-0", pods=("user",))
        await (world.create(rule()) if kind == "device" else taint_node(world))

        async def is_asked() -> bool:
            return asked.is_set()

        await until(world, is_asked)
        if kind == "device":
            await world.delete("devicetaintrules", "rule")
        else:
            await world.patch("nodes", "node-1", {"spec": {"taints": []}})
        await world.settle(0.5)
        answer.set()

        async def is_idle() -> bool:
            return all(one.queue.idle for one in _evicting(world))

        await until(world, is_idle)
        await world.settle(1)
        found = await world.get("pods", "user")
        assert found is not None
        assert found.metadata.deletion_timestamp is None

    install(monkeypatch, "mine", Plugin(decide))
    try:
        play(story, policy("mine"))
    finally:
        answer.set()


def _evicting(world: World) -> list[Any]:
    return [world.manager.controllers[name] for name in (DEVICE, NODE)]

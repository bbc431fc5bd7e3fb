"""Plugins that decide about evictions, on a real server: what they may say, and if they fail, hang or come late."""

import threading
from typing import Any

import pytest

from controller_world import World, controller_world
from dray.api.generated.core import Pod
from dray.eviction.policy import Decision, EvictionCause, Force, Never, Now, PolicyState, Wait
from dray.eviction.settings import FailurePolicy
from eviction_objects import KEY, leaving, rule, use_devices
from eviction_policy_world import (
    DEVICE,
    NODE,
    Plugin,
    eviction_policy_world,
    install,
    policy,
    taint_node,
    until,
    waiting,
)
from patience import PATIENCE


@pytest.mark.parametrize("kind", ["device", "node"])
@pytest.mark.req("3902-21")
async def test_a_plugin_decides(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[EvictionCause, PolicyState, int]] = []

    def decide(pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:
        asked.append((cause, state, threading.get_ident()))
        if pod.metadata.labels.get("keep") == "yes":
            return Never("it is dear to us")
        if pod.metadata.name == "hard":
            return Force("it does not matter")
        return Wait(now + 100, "not yet") if state.asked == 0 else Now("it is time")

    install(monkeypatch, "mine", Plugin(decide))
    async with eviction_policy_world(policy("mine")) as world:
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


FAULTS = {
    "raises": "LookupError: no such thing",
    "exits": "SystemExit: 3",
    "stops": "StopIteration",
    "hangs": "no answer in 5 s",
    "nonsense": "'perhaps' is no decision",
    "never ends": "is no decision",
    "bad time": "is no decision",
}


def break_down(fault: str, release: threading.Event) -> Decision:
    """What policies do that somebody else wrote."""
    match fault:
        case "hangs":
            release.wait(PATIENCE)
        case "raises":
            raise LookupError("no such\nthing")
        case "exits":
            raise SystemExit(3)
        case "stops":
            raise StopIteration
        case "never ends":
            return Wait(float("nan"))
        case "bad time":
            return Wait("tomorrow")  # type: ignore[arg-type]
    return "perhaps"  # type: ignore[return-value]


@pytest.mark.parametrize("kind", ["device", "node"])
@pytest.mark.parametrize("failure_policy", [None, FailurePolicy.DELETE])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_pod_whose_policy_fails_is_held_unless_configured_otherwise_and_that_is_loud(
    fault: str, failure_policy: FailurePolicy | None, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, is_broken = threading.Event(), True

    def decide(_pod: Pod, _cause: EvictionCause, _state: PolicyState, _now: float) -> Decision:
        return break_down(fault, release) if is_broken else Now("it is time")

    install(monkeypatch, "mine", Plugin(decide))
    settings = policy("mine") if failure_policy is None else policy("mine", failure_policy)
    try:
        async with eviction_policy_world(settings) as world:
            await use_devices(world, "claim", "gpu-0", pods=("user",))
            await (world.create(rule()) if kind == "device" else taint_node(world))

            async def is_said() -> bool:
                await world.settle(1)
                return any(reason == "EvictionPolicyFailed" for reason, _ in await world.events("user"))

            await until(world, is_said)
            await world.settle(12)
            text = next(text for reason, text in await world.events("user") if reason == "EvictionPolicyFailed")
            assert FAULTS[fault] in text
            told = failure_policy or FailurePolicy.HOLD
            prefix = "device_taint_eviction_controller" if kind == "device" else "taint_eviction_controller"
            assert (world.metric(f"{prefix}_policy_failures_total", policy="mine", fallback=told) or 0) >= 1
            if failure_policy is FailurePolicy.DELETE:
                assert "the pod is deleted" in text
                assert await leaving(world) == {"user"}
                assert await _condition(world, kind) is None
                return
            assert "the pod stays" in text
            assert await leaving(world) == set()
            assert world.metric(f"{prefix}_held_pods", by="policy") == 1
            status, message = await _condition(world, kind) or ("", "")
            assert status == "True"
            assert message.startswith("1 pod is held because the eviction policy cannot be asked: mine: ")
            assert FAULTS[fault] in message
            about = "rule" if kind == "device" else "node-1"
            assert ("EvictionPolicyFailed", message) in await world.events(about)
            is_broken = False
            release.set()

            async def leaves() -> bool:
                await world.settle(5)
                return await leaving(world) == {"user"}

            await until(world, leaves)
            await world.settle(12)
            assert (await _condition(world, kind) or ("", ""))[0] == "False"
            assert world.metric(f"{prefix}_held_pods", by="policy") == 0
    finally:
        release.set()


async def _condition(world: World, kind: str) -> tuple[str, str] | None:
    found = await (world.get("devicetaintrules", "rule") if kind == "device" else world.get("nodes", "node-1"))
    conditions = found.status.conditions
    return next(((one.status, one.message) for one in conditions if one.type == "EvictionPolicyFailed"), None)


@pytest.mark.parametrize("kind", ["device", "node"])
@pytest.mark.req("3902-15")
async def test_a_policy_can_force_pods_that_do_not_go_also_after_a_restart(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decide(pod: Pod, _cause: EvictionCause, _state: PolicyState, now: float) -> Decision:
        gone = pod.metadata.deletion_timestamp
        if gone is None:
            return Now()
        deadline = gone.datetime().timestamp() + 60
        return Wait(deadline) if now < deadline else Force("its node does not answer")

    install(monkeypatch, "mine", Plugin(decide, follows_up=True))
    async with eviction_policy_world(policy("mine")) as world:
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


@pytest.mark.parametrize("kind", ["device", "node"])
async def test_an_answer_that_comes_when_the_pod_may_stay_is_not_acted_on(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answer = threading.Event(), threading.Event()

    def decide(_pod: Pod, _cause: EvictionCause, _state: PolicyState, _now: float) -> Decision:
        asked.set()
        answer.wait(PATIENCE)
        return Force("too late")

    install(monkeypatch, "mine", Plugin(decide))
    try:
        async with eviction_policy_world(policy("mine")) as world:
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
    finally:
        answer.set()


def _evicting(world: World) -> list[Any]:
    return [world.manager.controllers[name] for name in (DEVICE, NODE)]

"""Both eviction controllers under some policy, and policies as somebody else would write them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

import pytest

from controller_world import World, controller_world, manifest
from dray.api.generated.core import Pod
from dray.controllers.settings import ControllerSettings
from dray.eviction.policy import Decision, EvictionCause, PolicyState
from dray.eviction.settings import EvictionSettings, FailurePolicy, PolicyChoice
from eviction_objects import KEY, device_slice
from patience import PATIENCE

DEVICE = "device-taint-eviction-controller"
NODE = "taint-eviction-controller"

Decide: TypeAlias = Callable[[Pod, EvictionCause, PolicyState, float], Decision]


class Plugin:
    """A policy as somebody else would write it."""

    def __init__(self, decide: Decide, *, follows_up: bool = False) -> None:
        self._decide = decide
        self.follows_up = follows_up

    def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:
        return self._decide(pod, cause, state, now)


class _EntryPoint:
    def __init__(self, name: str, policy: Plugin) -> None:
        self.name = name
        self._policy = policy

    def load(self) -> Callable[..., Plugin]:
        return lambda **_options: self._policy


def install(patch: pytest.MonkeyPatch, name: str, plugin: Plugin) -> None:
    """As if a package with one policy were installed."""
    point = _EntryPoint(name, plugin)

    def entry_points(*, group: str, name: str = "") -> list[_EntryPoint]:
        return [point] if group == "dray.eviction_policies" and name in ("", point.name) else []

    patch.setattr("importlib.metadata.entry_points", entry_points)


def policy(
    name: str, failure_policy: FailurePolicy = FailurePolicy.HOLD, *offered: str, **options: str
) -> ControllerSettings:
    """Settings with one policy for everybody."""
    choices = tuple(PolicyChoice(other) for other in offered)
    chosen = PolicyChoice(name, options)
    return ControllerSettings(
        eviction=EvictionSettings(policy=chosen, offered=choices, failure_policy=failure_policy, timeout=5.0)
    )


@contextlib.asynccontextmanager
async def eviction_policy_world(settings: ControllerSettings, *controllers: str) -> AsyncIterator[World]:
    """Runs a story with both eviction controllers, one node and one pool."""
    async with controller_world(*(controllers or (DEVICE, NODE)), settings=settings) as world:
        await world.create(manifest("v1", "Node", "node-1"))
        await world.create(device_slice("pool", "gpu-0", "gpu-1"))
        yield world


async def taint_node(world: World) -> None:
    """Puts a NoExecute taint on the node."""
    await world.patch("nodes", "node-1", {"spec": {"taints": [{"key": KEY, "effect": "NoExecute"}]}})


async def until(world: World, condition: Callable[[], Awaitable[bool]]) -> None:
    """Waits for what threads and sockets bring, which take real time."""
    async with asyncio.timeout(PATIENCE):
        while not await condition():
            await asyncio.sleep(0.005)
            await world.settle(0.001)


async def waiting(world: World, name: str) -> tuple[str, str] | None:
    """The condition that tells of waiting: status and message."""
    found = (await world.get("pods", name)).status.conditions
    return next(((one.status, one.message) for one in found if one.type == "dray.dev/EvictionWaiting"), None)

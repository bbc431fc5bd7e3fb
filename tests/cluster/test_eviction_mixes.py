"""Random mixes of everything that makes pods leave, or keeps them, against a count by hand (issue 14).

Rules, taints of drivers and of nodes come, change and go; people confirm, stop and resume; controllers are killed and
started anew, in one process or two; policies fail; the wall clock is set. Whatever the order: nobody leaves whom
nothing wants to leave, nobody leaves while all is stopped or no policy can be asked, and in no hour more leave
unconfirmed than the limit says.
"""

from __future__ import annotations

import contextlib
from random import Random
from typing import Any, Final

import pytest

from controller_world import World, controller_world, manifest
from dray.controllers.eviction.deciders import PolicyFailed, ask
from dray.controllers.settings import ControllerSettings
from dray.eviction.guard import WINDOW
from dray.eviction.settings import EvictionSettings, Limit
from dray.eviction.stop import PLACE, STOP_ANNOTATION
from eviction_objects import DRIVER, ago, device_slice, rule, run_pod, taint, use_devices
from local_server import LocalServer, local_server

DEVICE, NODE = "device-taint-eviction-controller", "taint-eviction-controller"
CONFIRM = "dray.dev/confirm-evictions"
WIDE, DEEP = 4, 12
"""Nodes, each with a pool, and devices in each."""
STEPS = 60
LIMIT = 3
PACE = 7.0
"""Seconds between two steps, at most."""
EACH_PROCESS: Final = ((DEVICE, NODE),), ((DEVICE,), (NODE,))


class Mix:
    """One history. What is wanted is read off the objects by hand, before and after each step."""

    def __init__(self, server: LocalServer, seed: int, patch: pytest.MonkeyPatch) -> None:
        self.server = server
        self.random = Random(seed)
        self.fails = False
        self.told: list[str] = []
        self._worlds = contextlib.AsyncExitStack()
        self._number = 0
        self._devices: dict[str, tuple[str, str]] = {}
        """The device of each pod that has one, with its pool."""
        self._left: dict[str, tuple[float, bool]] = {}
        """Who left without a confirmation: when, and whether with a device."""
        self._seen: set[str] = set()

        async def ask_if_it_works(*arguments: Any) -> Any:
            if self.fails:
                raise PolicyFailed("nobody answers")
            return await ask(*arguments)

        patch.setattr("dray.controllers.eviction.evictor.ask", ask_if_it_works)

    async def begin(self) -> None:
        await self.start()
        for number in range(WIDE):
            await self.world.create(manifest("v1", "Node", f"n{number}"))
            await self.world.create(device_slice(f"n{number}", *(f"gpu-{one}" for one in range(DEEP))))
        for _ in range(2 * WIDE):
            await self.pod()

    async def start(self) -> None:
        """Kills the controllers, and starts them anew."""
        await self._worlds.aclose()
        settings = ControllerSettings(eviction=EvictionSettings(max_evictions=Limit(count=LIMIT)))
        for wanted in self.random.choice(EACH_PROCESS):
            world = controller_world(*wanted, server=self.server, settings=settings)
            self.world: World = await self._worlds.enter_async_context(world)

    async def end(self) -> None:
        await self._worlds.aclose()

    async def step(self) -> None:
        """Something happens, and some time passes."""
        names = [name for name, weight in STEP.items() for _ in range(weight)]
        what = self.random.choice(names)
        before = await self.wanted()
        await getattr(self, what)()
        self.told.append(what)
        after = await self.wanted()
        self.note(await self.gone(), [before, after])
        await self.world.settle(self.random.choice([0.1, 1.0, PACE]))
        self.note(await self.gone(), [after])

    def note(self, gone: dict[str, str], wanted: list[dict[str, bool] | None]) -> None:
        """Somebody has left: may they have?"""
        now = self.world.clock.monotonic()
        for uid, name in gone.items():
            if uid in self._seen:
                continue
            self._seen.add(uid)
            possible = [one for one in wanted if one is not None and name in one]
            assert possible, f"{name} left, and nothing wanted it to: {self.told}"
            if not any(one[name] for one in possible):
                self._left[uid] = (now, name in self._devices)
        for with_device in (True, False):
            recent = [at for at, had in self._left.values() if had == with_device and at > now - WINDOW + PACE]
            assert len(recent) <= LIMIT, f"{len(recent)} left within an hour: {self.told}"

    async def gone(self) -> dict[str, str]:
        """Who was told to leave, by uid."""
        pods = await self.world.objects("pods")
        return {one.metadata.uid: one.metadata.name for one in pods if one.metadata.deletion_timestamp is not None}

    async def wanted(self) -> dict[str, bool] | None:
        """The pods that something wants to leave, and whether somebody confirmed it; None if nobody may leave."""
        place = await self.world.get("namespaces", PLACE)
        if STOP_ANNOTATION in place.metadata.annotations or self.fails:
            return None
        found: dict[str, bool] = {}

        def add(name: str, *, is_meant: bool) -> None:
            found[name] = found.get(name, False) or is_meant

        on = {one.metadata.name: one.spec.node_name for one in await self.world.objects("pods")}
        for one in await self.world.objects("devicetaintrules"):
            selector, spec = one.spec.device_selector, one.spec
            meant = one.metadata.annotations.get(CONFIRM) == str(one.metadata.generation)
            for name, (pool, device) in self._devices.items() if spec.taint.effect == "NoExecute" else ():
                if selector.pool in (None, "", pool) and selector.device in (None, "", device):
                    add(name, is_meant=meant)
        for one in await self.world.objects("resourceslices"):
            tainted = {each.name for each in one.spec.devices if each.taints}
            meant = one.metadata.annotations.get(CONFIRM) == str(one.spec.pool.generation)
            for name, (pool, device) in self._devices.items():
                if pool == one.spec.pool.name and device in tainted:
                    add(name, is_meant=meant)
        for one in await self.world.objects("nodes"):
            for each in one.spec.taints:
                meant = f"{each.key}@{each.time_added}" in one.metadata.annotations.get(CONFIRM, "").split(",")
                for name in [name for name, node in on.items() if node == one.metadata.name]:
                    add(name, is_meant=meant)
        return {name: meant for name, meant in found.items() if name in on}

    async def rule(self) -> None:
        name = f"rule-{self.random.randrange(4)}"
        await self.unrule(name)
        await self.world.create(rule(name, selector=self.selector(), evictionsPerSecond=self.random.choice([1, 50])))

    async def unrule(self, name: str = "") -> None:
        await self.delete("devicetaintrules", name or f"rule-{self.random.randrange(4)}")

    async def change_rule(self) -> None:
        for one in self.some(await self.world.objects("devicetaintrules")):
            effect = self.random.choice(["NoExecute", "NoSchedule"])
            none = dict.fromkeys(("driver", "pool", "device"))
            spec = {"deviceSelector": {**none, **self.selector()}, "taint": {"effect": effect}}
            await self.world.patch("devicetaintrules", one.metadata.name, {"spec": spec})

    def selector(self) -> dict[str, str]:
        place = {"driver": DRIVER, "pool": f"n{self.random.randrange(WIDE)}"}
        return self.random.choice([{"driver": DRIVER}, place, place, {**place, "device": "gpu-0"}, {}])

    async def confirm_rule(self) -> None:
        for one in self.some(await self.world.objects("devicetaintrules")):
            await self.confirm("devicetaintrules", one, str(one.metadata.generation - self.random.choice([0, 0, 1])))

    async def taint_pool(self) -> None:
        for one in self.some(await self.world.objects("resourceslices")):
            devices = [
                {"name": f"gpu-{number}", "taints": self.random.choice([[], [taint()]])} for number in range(DEEP)
            ]
            pool = {"generation": one.spec.pool.generation + self.random.choice([0, 1])}
            spec = {"devices": devices, "pool": pool}
            await self.world.patch("resourceslices", one.metadata.name, {"spec": spec})

    async def confirm_pool(self) -> None:
        for one in self.some(await self.world.objects("resourceslices")):
            await self.confirm("resourceslices", one, str(one.spec.pool.generation))

    async def taint_node(self) -> None:
        keys = self.random.sample(["a", "b"], self.random.choice([0, 1, 1, 2]))
        taints = [{"key": f"example.com/{key}", "effect": "NoExecute", "timeAdded": ago(self.world, 0)} for key in keys]
        await self.world.patch("nodes", f"n{self.random.randrange(WIDE)}", {"spec": {"taints": taints}})

    async def confirm_node(self) -> None:
        for one in self.some(await self.world.objects("nodes")):
            await self.confirm("nodes", one, ",".join(f"{each.key}@{each.time_added}" for each in one.spec.taints))

    async def confirm(self, plural: str, one: Any, value: str) -> None:
        await self.world.patch(plural, one.metadata.name, {"metadata": {"annotations": {CONFIRM: value or None}}})

    async def pod(self) -> None:
        """One that came in place of another, or besides: with a device or without."""
        self._number += 1
        name, node = f"p{self._number}", f"n{self.random.randrange(WIDE)}"
        free = [device for device in map("gpu-{}".format, range(DEEP)) if (node, device) not in self._devices.values()]
        if not free or self.random.random() < 0.3:
            await run_pod(self.world, name, nodeName=node)
            return
        device = self.random.choice(free)
        await use_devices(self.world, name, device, pods=(name,), pool=node, pod_spec={"nodeName": node})
        self._devices[name] = (node, device)

    async def bury(self) -> None:
        """Nodes finish what has to leave."""
        for name in (await self.gone()).values():
            await self.world.delete("pods", name, grace_period_seconds=0)

    async def stop(self) -> None:
        value = self.random.choice(["true", None])
        await self.world.patch("namespaces", PLACE, {"metadata": {"annotations": {STOP_ANNOTATION: value}}})

    async def policy(self) -> None:
        self.fails = not self.fails

    async def set_back(self) -> None:
        self.world.clock.jump(-self.random.choice([100.0, 10_000.0]))

    async def wait(self) -> None:
        await self.world.settle(self.random.choice([60.0, WINDOW / 2]))

    async def delete(self, plural: str, name: str) -> None:
        if await self.world.get(plural, name) is not None:
            await self.world.delete(plural, name)

    def some(self, objects: list[Any]) -> list[Any]:
        return self.random.sample(objects, min(len(objects), 1))


STEP = {
    "rule": 4,
    "unrule": 2,
    "change_rule": 2,
    "confirm_rule": 2,
    "taint_pool": 4,
    "confirm_pool": 1,
    "taint_node": 4,
    "confirm_node": 1,
    "pod": 8,
    "bury": 3,
    "stop": 1,
    "policy": 1,
    "set_back": 1,
    "start": 3,
    "wait": 1,
}
"""What may happen, and how often."""


@pytest.mark.parametrize("seed", range(6))
async def test_in_no_mix_more_leave_than_somebody_wants_and_may(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async with local_server() as server:
        mix = Mix(server, seed, monkeypatch)
        try:
            await mix.begin()
            for _ in range(STEPS):
                await mix.step()
        finally:
            await mix.end()

"""A view that looks at what changed alone shows what one that looks at everything shows."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

import builders
from controller_world import World, controller_world
from dray.allocator import Inventory
from dray.api import kinds
from dray.live.viewer import PAUSE_SECONDS, Viewer
from dray.snapshot.pod_explanation import explain_pod
from local_server import ADMIN

NODES = 6
DEVICES = 4
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


@contextlib.asynccontextmanager
async def viewing(world: World, *, is_calm: bool = False) -> AsyncIterator[Viewer]:
    """Calm: by a client that gathers changes, as that of a page which its own server serves."""
    if is_calm:
        client = world.server.client_of(ADMIN, calm=lambda: world.clock.sleep(PAUSE_SECONDS))
        viewer = Viewer(client, world.clock, pause=0.0)
    else:
        viewer = Viewer(world.admin, world.clock)
    await viewer.start()
    try:
        yield viewer
    finally:
        await viewer.stop()


def published(name: str, devices: int = DEVICES, generation: int = 1) -> dict[str, Any]:
    names = [f"gpu-{number}" for number in range(devices)]
    return builders.resource_slice(name, *names, pool=name, nodeName=name, generation=generation)


async def add_node(world: World, name: str) -> None:
    await world.create(builders.node(name), published(name))
    await world.patch("nodes", name, {"status": READY}, "status")


async def allocate(world: World, name: str, node: str, device: str) -> None:
    """A claim and a pod that has it."""
    await world.create(builders.claim(name, builders.request()))
    claims = [builders.pod_claim("r", claim=name)]
    await world.create(builders.pod(name, node=node, claims=claims, meta={"finalizers": ["example.com/stay"]}))
    await world.patch("resourceclaims", name, {"status": builders.allocated(device, pool=node, on=node)}, "status")


class Life:
    """Whatever may happen to devices, by chance."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.chance = random.Random(seed)
        self.nodes = [f"node-{number}" for number in range(NODES)]
        self.held: dict[str, tuple[str, str]] = {}
        self.made = 0

    async def happen(self) -> None:
        """One thing."""
        things: tuple[Callable[[], Awaitable[None]], ...] = (
            *(self.give, self.give, self.give, self.take),
            *(self.leave, self.cordon, self.replace_node, self.publish, self.taint),
        )
        await self.chance.choice(things)()

    async def give(self) -> None:
        place = (self.chance.choice(self.nodes), f"gpu-{self.chance.randrange(DEVICES)}")
        if place in self.held.values():
            return
        self.made += 1
        name = f"claim-{self.made}"
        await allocate(self.world, name, *place)
        self.held[name] = place

    async def take(self) -> None:
        if self.held:
            name = self.chance.choice(sorted(self.held))
            await self.world.patch("resourceclaims", name, {"status": {"allocation": None}}, "status")
            if self.chance.random() < 0.5:
                await self.world.delete("resourceclaims", name)
            del self.held[name]

    async def leave(self) -> None:
        if self.held:
            name = self.chance.choice(sorted(self.held))
            await self.world.delete("pods", name, grace_period_seconds=5)
            if self.chance.random() < 0.5:
                await self.world.patch("pods", name, {"metadata": {"finalizers": None}})

    async def cordon(self) -> None:
        node = self.chance.choice(self.nodes)
        await self.world.patch("nodes", node, {"spec": {"unschedulable": self.chance.random() < 0.5}})

    async def replace_node(self) -> None:
        node = self.chance.choice(self.nodes)
        await self.world.delete("nodes", node)
        await self.world.create(builders.node(node))

    async def publish(self) -> None:
        node = self.chance.choice(self.nodes)
        await self.world.delete("resourceslices", node)
        if self.chance.random() < 0.7:
            await self.world.create(published(node, self.chance.randrange(1, DEVICES + 1)))
        else:
            await self.world.settle()
            await self.world.create(published(node))

    async def taint(self) -> None:
        self.made += 1
        node = self.chance.choice(self.nodes)
        tainted = builders.taint("bad", "NoSchedule")
        await self.world.create(builders.taint_rule(f"rule-{self.made}", {"pool": node}, tainted))
        if self.chance.random() < 0.5:
            await self.world.settle()
            await self.world.delete("devicetaintrules", f"rule-{self.made}")


@pytest.mark.parametrize("is_calm", [False, True])
@pytest.mark.parametrize("seed", range(8))
async def test_what_is_kept_current_is_what_is_there(seed: int, is_calm: bool) -> None:
    async with controller_world() as world:
        life = Life(world, seed)
        for name in life.nodes:
            await add_node(world, name)
        async with viewing(world, is_calm=is_calm) as kept:
            told = {row.key: row for row in kept.rows.since(-1)[0]}
            for _ in range(12):
                before = kept.rows.revision
                for _ in range(life.chance.randrange(1, 6)):
                    await life.happen()
                await world.settle(3)
                changed, gone = kept.rows.since(before)
                told = {key: row for key, row in told.items() if key not in gone} | {row.key: row for row in changed}
                async with viewing(world) as anew:
                    assert kept.rows.rows == anew.rows.rows == told
                    assert kept.totals == anew.totals
                    assert kept.ready_nodes == anew.ready_nodes


async def test_a_change_costs_what_it_touches(monkeypatch: pytest.MonkeyPatch) -> None:
    async with controller_world() as world:
        names = [f"node-{number}" for number in range(40)]
        for name in names:
            await add_node(world, name)
        async with viewing(world) as viewer:
            looked_at: list[tuple[str, str]] = []
            look = Inventory.occupancies_of

            def counted(self: Inventory, key: tuple[str, str]) -> Any:
                looked_at.append(key)
                return look(self, key)

            monkeypatch.setattr(Inventory, "occupancies_of", counted)
            before = viewer.rows.revision
            await allocate(world, "one", "node-7", "gpu-1")
            await world.patch("nodes", "node-9", {"metadata": {"annotations": {"seen": "now"}}})
            await world.settle(3)
            assert {pool for _, pool in looked_at} == {"node-7"}
            assert [row.pool for row in viewer.rows.since(before)[0]] == ["node-7"]
            assert viewer.totals.held == 1


@pytest.mark.parametrize("is_calm", [False, True])
async def test_what_comes_and_goes_at_once_is_one_change(monkeypatch: pytest.MonkeyPatch, is_calm: bool) -> None:
    """A claim is made, allocated and reserved within milliseconds: it is worked off once."""
    async with controller_world() as world:
        await add_node(world, "node-0")
        async with viewing(world, is_calm=is_calm) as viewer:
            seen: list[tuple[bool, bool]] = []
            set_claim = viewer.cluster.set_claim

            def noted(old: Any, new: Any) -> None:
                seen.append((old is not None, new is not None))
                set_claim(old, new)

            monkeypatch.setattr(viewer.cluster, "set_claim", noted)
            await allocate(world, "one", "node-0", "gpu-0")
            await world.create(builders.claim("brief", builders.request()))
            await world.delete("resourceclaims", "brief")
            await world.settle(3)
            assert seen == [(False, True)]


async def test_what_the_viewer_sees_has_all_that_a_decision_depends_on() -> None:
    """A pod of a gang and one with a volume are judged as the scheduler judges them."""
    async with controller_world() as world:
        await add_node(world, "node-1")
        fast = {"provisioner": "example.com/p", "volumeBindingMode": "Immediate"}
        await world.create(
            builders.manifest("storage.k8s.io/v1", "StorageClass", "fast", **fast),
            builders.manifest(
                "scheduling.k8s.io/v1beta1", "PodGroup", "gang", spec={"schedulingPolicy": {"gang": {"minCount": 2}}}
            ),
            builders.pod("p", schedulingGroup={"podGroupName": "gang"}),
            builders.pod("q", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]),
        )
        async with viewing(world) as viewer:
            seen = await viewer.snapshot()
        assert "1 of the 2 that it needs" in explain_pod(seen, "default/p").message
        assert explain_pod(seen, "default/q").message == 'persistentvolumeclaim "missing" not found'


async def test_events_are_followed_from_when_somebody_asks() -> None:
    """There are several for each pod, and only histories tell of them."""
    async with controller_world() as world:
        about = {"kind": "Pod", "namespace": "default", "name": "p"}
        told: dict[str, Any] = {"involvedObject": about, "reason": "Evicted", "lastTimestamp": "2026-01-01T00:00:00Z"}
        await world.create(builders.manifest("v1", "Event", "one", **told))
        async with viewing(world) as viewer:
            assert list(viewer.of(kinds.EVENTS)) == []
            assert [event.metadata.name for event in await viewer.events()] == ["one"]
            await world.create(builders.manifest("v1", "Event", "two", **told))
            before = viewer.version
            await world.settle(3)
            assert viewer.version > before
            assert {event.metadata.name for event in await viewer.events()} == {"one", "two"}

"""What if a rule or a taint comes, or a node goes? It is told, it happens, and time goes on: who left was told to."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

import builders
from builders import Manifest
from dray.api import kinds
from dray.api.generated.core import Pod
from dray.api.pods import is_finished
from dray.api.references import full_name
from dray.client import Client
from dray.controllers import Manager
from dray.process import virtual_loop
from dray.process.supervision import Supervisor
from dray.process.virtual_loop import LoopClock
from dray.reconcile import Informers
from dray.scheduler.scheduler import Scheduler
from dray.simulation.simulator import Simulator
from dray.snapshot import Snapshot, from_objects
from dray.what_if.deletions import delete
from dray.what_if.difference import Difference, compare
from local_server import local_server, typed

READ = (
    *(kinds.NODES, kinds.PODS, kinds.CLASSES, kinds.SLICES, kinds.CLAIMS, kinds.TEMPLATES, kinds.PRIORITY_CLASSES),
    *(kinds.DEPLOYMENTS, kinds.REPLICA_SETS, kinds.STATEFUL_SETS, kinds.DAEMON_SETS),
)
SETTLE_SECONDS = 60.0
LIVED_SECONDS = 400.0
"""Longer than it takes to notice that a node is gone. Tolerations have no end: who comes again would be told to go at
once, again and again."""
NUMA = f'device.attributes["{builders.DRIVER}"].numa == 1'


class Change(NamedTuple):
    """What happens: an object comes, a node is tainted, or it goes."""

    comes: Manifest | None = None
    tainted: str = ""
    goes: str = ""


class State(NamedTuple):
    """What is there, and what happens."""

    objects: tuple[Manifest, ...]
    change: Change


def draw(number: int) -> State:
    """The state of a number."""
    chance = random.Random(number)
    nodes = [f"node-{index}" for index in range(chance.randint(2, 4))]
    return State(tuple(_objects(chance, nodes)), _change(chance, nodes))


def _objects(chance: random.Random, nodes: list[str]) -> Iterator[Manifest]:
    for name in nodes:
        labels = {"dray.dev/simulated": "true", "zone": chance.choice("ab")}
        amounts = {"cpu": chance.choice(("2", "4")), "memory": "8Gi", "pods": "20"}
        yield builders.node(name, labels=labels, resources=amounts)
        devices = [builders.device(f"d{n}", {"numa": chance.choice((0, 1))}) for n in range(chance.randint(1, 4))]
        yield builders.resource_slice(name, *devices, nodeName=name)
    yield builders.device_class("gpu")
    for name, value in (("high", 10), ("low", 0)):
        yield builders.manifest("scheduling.k8s.io/v1", "PriorityClass", name, "", value=value)
    tolerates = {"tolerations": [builders.toleration("k")]}
    for name, more in (("t0", {}), ("t1", {"count": 2}), ("t2", tolerates)):
        yield builders.claim_template(name, builders.request(**more))
    for number in range(chance.randint(2, 4)):
        kind = chance.choice(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"))
        count = None if kind == "DaemonSet" else chance.randint(1, 3)
        named: Manifest = {"serviceName": "any"} if kind == "StatefulSet" else {}
        made = builders.workload(f"w{number}", count, kind=kind, **named)
        made["spec"]["template"]["spec"] |= _pod_spec(chance)
        yield made


def _pod_spec(chance: random.Random) -> Manifest:
    spec: Manifest = {"priorityClassName": chance.choice(("high", "low", "low")), "terminationGracePeriodSeconds": 1}
    if chance.random() < 0.7:
        spec["resourceClaims"] = [builders.pod_claim("c", template=chance.choice(("t0", "t0", "t1", "t2")))]
    if chance.random() < 0.5:
        spec["containers"] = [builders.container(cpu=chance.choice(("500m", "1")))]
    if chance.random() < 0.3:
        spec["tolerations"] = [builders.toleration("team")]
    return spec


def _change(chance: random.Random, nodes: list[str]) -> Change:
    name = chance.choice(nodes)
    match chance.choice(("rule", "rule", "taint", "goes")):
        case "taint":
            return Change(tainted=name)
        case "goes":
            return Change(goes=name)
    selectors: tuple[Manifest, ...] = (
        {"pool": name},
        {"pool": name, "device": "d0"},
        {"selectors": builders.cel(NUMA)},
    )
    return Change(comes=builders.taint_rule("r", chance.choice(selectors), builders.taint("k", "NoExecute")))


@asynccontextmanager
async def control_plane() -> AsyncIterator[Client]:
    """Everything that decides, and simulated nodes, on virtual time."""
    clock = LoopClock()
    async with local_server(clock, with_roles=False) as server:
        admin = server.client()
        informers = Informers(admin, clock)
        manager = Manager(
            admin, clock, informers=informers, randomness=random.Random(1), foreign_kinds=server.foreign_kinds
        )
        supervisor = Supervisor(clock)
        supervisor.start("informers", informers.run)
        supervisor.start("scheduler", Scheduler(admin, clock, informers=informers).run)
        supervisor.start("controllers", manager.run)
        supervisor.start("nodes", Simulator(admin, clock, informers, untaint=False).run)
        try:
            yield admin
            assert not supervisor.problems
        finally:
            await supervisor.stop()


async def look(client: Client) -> Snapshot:
    objects = [one for kind in READ for one in (await client.list(kind)).items]
    return from_objects(objects, has_all_nodes=True, has_all_volumes=True)


def running(snapshot: Snapshot) -> dict[str, str]:
    """Pods that have nodes, by uid."""
    pods = (pod for pod in snapshot.objects(Pod) if pod.spec.node_name and not is_finished(pod))
    return {pod.metadata.uid: full_name(pod) for pod in pods}


async def foretell(client: Client, before: Snapshot, change: Change) -> Difference:
    """What is told of a change, which happens then."""
    now = datetime.fromtimestamp(virtual_loop.START + asyncio.get_running_loop().time(), UTC)
    taint = {"spec": {"taints": [{"key": "team", "effect": "NoExecute"}]}}
    if change.comes is not None:
        told = compare(before, before.with_applied(change.comes, now=now), now)
        await client.create(typed(change.comes))
    elif change.goes:
        told = compare(before, delete(before, [f"node/{change.goes}"], now), now)
        await client.delete(kinds.NODES, "", change.goes)
    else:
        await client.patch(kinds.NODES, "", change.tainted, taint)
        told = compare(before, before.with_typed([await client.get(kinds.NODES, "", change.tainted)]), now)
    return told


async def live(number: int) -> list[str]:
    """Who has left and was not told to, or was told to and has not."""
    state = draw(number)
    async with control_plane() as client:
        for manifest in state.objects:
            made = await client.create(typed({name: value for name, value in manifest.items() if name != "status"}))
            if "status" in manifest:
                status = {"status": manifest["status"]}
                await client.patch(kinds.NODES, "", made.metadata.name, status, subresource="status")
        await asyncio.sleep(SETTLE_SECONDS)
        before = await look(client)
        if any(not pod.spec.node_name for pod in before.objects(Pod)):
            return []  # whoever waits takes what comes free, and may make others go for it
        told = await foretell(client, before, state.change)
        await asyncio.sleep(LIVED_SECONDS)
        there, then = running(before), running(await look(client))
    left = {name for uid, name in there.items() if uid not in then}
    leave = {one.pod for one in told.evictions}
    victims = {name for one in told.evictions for name in one.victims}
    wrong = [f"{name} left, and nobody said so" for name in sorted(left - leave - victims)]
    wrong += [f"{name} did not leave" for name in sorted((leave & set(there.values())) - left)]
    return [f"state {number}, {state.change}: {why}" for why in wrong]


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_who_leaves_was_told_to(first: int) -> None:
    assert [why for number in range(first, first + 20) for why in virtual_loop.run(live(number))] == []

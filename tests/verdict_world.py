"""A scheduler that runs, and what everybody says of each pod before it comes: they must have been right.

state ─▶ server in memory ─▶ dump ─▶ allocate, explain, explain pod, what-if, previews ─┬─▶ differences
                └─▶ the pod comes ─▶ scheduler on virtual time ─▶ where it is, or why not ┘
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from dray.api.generated.core import Node, Pod
from dray.api.kinds import (
    BUDGETS,
    CLAIMS,
    CLASSES,
    NAMESPACES,
    NODES,
    PATCHES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    RULES,
    SLICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from dray.api.nodes import is_ready
from dray.api.references import ObjectRef
from dray.api.registry import Kind
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.process import virtual_loop
from dray.process.virtual_loop import LoopClock
from dray.scheduler.scheduler import Scheduler
from dray.scheduling.pod_info import read_pod
from dray.snapshot import Snapshot, from_objects
from dray.snapshot.pod_explanation import PodExplanation, explain_pod
from dray.what_if.elsewhere import move_elsewhere
from dray.what_if.evictions import Eviction
from dray.what_if.pending_changes import Chance, assess_pending
from local_server import LocalServer, local_server, typed
from odd_states import Change, OddState, draw_odd_state
from rare_states import draw_rare_state
from verdict_states import Newcomer, draw_state

DUMPED = (
    NAMESPACES,
    NODES,
    CLASSES,
    SLICES,
    RULES,
    PATCHES,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
    VOLUMES,
    VOLUME_CLAIMS,
    POD_GROUPS,
    BUDGETS,
    CLAIMS,
    PODS,
)
ADMINS_HERE = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
SETTLE_SECONDS = 3.0
CHANGE_SECONDS = 15.0
"""Longer than a pod that was refused waits before it is tried again."""
MOMENT = "2026-06-01T12:00:00Z"


class World:
    """A server with a scheduler."""

    def __init__(self, server: LocalServer) -> None:
        self.admin = server.client()

    async def put(self, manifest: dict[str, Any]) -> None:
        """Stores an object with its status."""
        made = await self.admin.create(typed(manifest))
        if manifest["kind"] == "Node":  # a new one is tainted until it is ready
            taints = {"spec": {"taints": manifest["spec"].get("taints")}}
            await self.admin.patch(NODES, "", made.metadata.name, taints)
        if "status" in manifest:
            meta = made.metadata
            kind = next(kind for kind in DUMPED if kind.kind == manifest["kind"])
            status = {"status": manifest["status"]}
            await self.admin.patch(kind, meta.namespace, meta.name, status, subresource="status")

    async def change(self, change: Change) -> None:
        """What happens; nothing, if it cannot: what is there already does not come, and what is not does not go."""
        manifest = change.what
        kind = next(kind for kind in DUMPED if kind.kind == manifest["kind"])
        namespace, name = manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]
        with suppress(ApiError):
            if change.goes:
                await self.admin.delete(kind, namespace, name)
            elif change.patch is not None:
                await self.admin.patch(kind, namespace, name, change.patch)
            else:
                await self.put(manifest)

    async def help_along(self) -> None:
        """What others than the scheduler do for pods that have a node soon: volumes get bound, devices made ready."""
        volumes = {one.spec.claim_ref.uid: one for one in await self._all(VOLUMES) if one.spec.claim_ref is not None}
        for claim in await self._all(VOLUME_CLAIMS):
            volume = volumes.get(claim.metadata.uid)
            if volume is not None and claim.status.phase != "Bound":
                meta = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
                where = (claim.metadata.namespace, claim.metadata.name)
                bound = {"metadata": meta, "spec": {"volumeName": volume.metadata.name}}
                await self.admin.patch(VOLUME_CLAIMS, *where, bound)
                await self.admin.patch(VOLUME_CLAIMS, *where, {"status": {"phase": "Bound"}}, subresource="status")
        for claim in await self._all(CLAIMS):
            allocation = claim.status.allocation
            waited_for = [one for one in allocation.devices.results if one.binding_conditions] if allocation else []
            if waited_for and not claim.status.devices:
                said = [
                    {
                        "driver": one.driver,
                        "pool": one.pool,
                        "device": one.device,
                        **({"shareID": one.share_id} if one.share_id else {}),
                        "conditions": [
                            {
                                "type": kind,
                                "status": "True",
                                "reason": "Made",
                                "message": "",
                                "lastTransitionTime": MOMENT,
                            }
                            for kind in one.binding_conditions
                        ],
                    }
                    for one in waited_for
                ]
                place = (claim.metadata.namespace, claim.metadata.name)
                await self.admin.patch(CLAIMS, *place, {"status": {"devices": said}}, subresource="status")

    async def _all(self, kind: Kind) -> list[Any]:
        return list((await self.admin.list(kind)).items)

    async def dump(self) -> Snapshot:
        """What is stored, as the commands read it."""
        objects = [one for kind in DUMPED for one in (await self.admin.list(kind)).items]
        return from_objects(objects, has_all_nodes=True, has_all_volumes=True)

    async def pod(self, name: str) -> Pod:
        """A pod as it is now."""
        found = await self.admin.get(PODS, "default", name)
        assert isinstance(found, Pod)
        return found


@asynccontextmanager
async def running() -> AsyncIterator[World]:
    """A world on a virtual loop."""
    clock = LoopClock()
    async with local_server(clock, with_roles=False) as server:
        world = World(server)
        task = asyncio.get_running_loop().create_task(Scheduler(world.admin, clock).run())
        try:
            yield world
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def find_differences(number: int) -> list[str]:
    """What somebody said of a pod of a state that was not so."""
    return _found(_live(number), f"state {number}")


def _found(looking: Coroutine[Any, Any, list[str]], where: str) -> list[str]:
    """Work of the scheduler that failed, and nobody noticed, is a difference, too."""
    try:
        return virtual_loop.run(looking)
    except AssertionError as error:
        return [f"{where}: {error}"]


async def _live(number: int) -> list[str]:
    state = draw_state(number)
    async with running() as world:
        for manifest in state.objects:
            await world.put(manifest)
        await asyncio.sleep(SETTLE_SECONDS)
        found: list[str] = []
        for newcomer in state.newcomers:
            found += [
                f"state {number}, {newcomer.pod['metadata']['name']}: {why}" async for why in _try(world, newcomer)
            ]
        return found


def find_odd_differences(number: int) -> list[str]:
    """What somebody said of a pod of an odd state that was not so, while the state changed."""
    return _found(_live_oddly(draw_odd_state(number), f"odd state {number}"), f"odd state {number}")


def find_rare_differences(number: int) -> list[str]:
    """The same of a rare state."""
    return _found(_live_oddly(draw_rare_state(number), f"rare state {number}"), f"rare state {number}")


async def _live_oddly(state: OddState, where: str) -> list[str]:
    found: list[str] = []
    async with running() as world:
        await world.admin.patch(NAMESPACES, "", "default", ADMINS_HERE)
        for manifest in state.objects:
            await world.put(manifest)
        await asyncio.sleep(SETTLE_SECONDS)
        for place, step in enumerate(state.steps):
            if isinstance(step, Change):
                await world.change(step)
                await asyncio.sleep(CHANGE_SECONDS)
                await world.help_along()
                await asyncio.sleep(SETTLE_SECONDS)
                found += [f"{where}, step {place}: {why}" for why in _waiting(await world.dump())]
                continue
            name = step.pod["metadata"]["name"]
            found += [f"{where}, {name}: {why}" async for why in _try(world, step)]
    return found


def _waiting(now: Snapshot) -> Iterator[str]:
    """Pods that wait although they fit, after something changed."""
    for pod in now.objects(Pod):
        if pod.spec.node_name:
            continue
        told = explain_pod(now, f"default/{pod.metadata.name}")
        if told.status == "fits":
            yield f"{pod.metadata.name} fits on {told.node}, and waits: {_message(pod)}"


async def _try(world: World, newcomer: Newcomer) -> AsyncIterator[str]:
    """Lets a pod come; what was said of it before and is not so."""
    name = newcomer.pod["metadata"]["name"]
    try:
        for claim in newcomer.claims:
            await world.put(claim)
    except ApiError as error:
        yield f"a claim is refused: {error}"
        return
    pod = {**newcomer.pod, "metadata": {**newcomer.pod["metadata"], "uid": f"uid-{name}"}}
    before = (await world.dump()).with_objects({**pod, "status": {"phase": "Pending"}})
    told = explain_pod(before, f"default/{name}")
    await asyncio.sleep(SETTLE_SECONDS)  # the scheduler has heard of all that is there
    await world.put(newcomer.pod)
    await asyncio.sleep(SETTLE_SECONDS)
    await world.help_along()
    await asyncio.sleep(SETTLE_SECONDS)
    live = await world.pod(name)
    after = await world.dump()
    for why in (
        *_compare_pod(told, live, after, before),
        *_compare_chances(told, assess_pending(before).pods[f"default/{name}"]),
        *_compare_preview(told, before, newcomer),
        *_compare_claims(before, newcomer),
    ):
        yield why


def _compare_pod(told: PodExplanation, live: Pod, after: Snapshot, before: Snapshot) -> Iterator[str]:
    """What is explained of a pod, and what became of it."""
    node = live.spec.node_name
    # Of a node that lacks devices and refuses the pod, too, either may be counted: what is known is not asked again.
    may_differ = read_pod(live).wants_devices or live.spec.scheduling_group is not None or told.status == "unjudged"
    if told.status == "fits":
        if node != told.node:
            yield f"explain pod says that it fits on {told.node}; it is on {node or 'none'}: {_message(live)}"
    elif node and told.preemption is None:  # else it may have come as soon as others were on their way out
        yield f"explain pod says {told.status}, {told.message!r}; it is on {node}"
    elif not node and not may_differ and told.message not in _message(live):
        yield f"explain pod says {told.message!r}, the scheduler {_message(live)!r}"
    gone = {pod.metadata.name for pod in after.objects(Pod) if pod.metadata.deletion_timestamp is not None}
    leaving = {pod.metadata.name for pod in before.objects(Pod) if pod.metadata.deletion_timestamp is not None}
    gone -= leaving
    victims = {one.name.name for one in told.preemption.victims} - leaving if told.preemption is not None else set()
    if not victims <= gone or (live.status.nominated_node_name and gone != victims):  # who waits makes others go, too
        yield f"explain pod says that {sorted(victims)} would go for it, {sorted(gone)} did"
    again = explain_pod(after, f"default/{live.metadata.name}")
    if node and again.status != "scheduled" and _is_ready(after, node):
        yield f"afterwards explain pod says {again.status}: {again.notes}"
    if not node and again.status == "fits" and not gone:
        yield f"afterwards explain pod says that it fits on {again.node}"


def _is_ready(snapshot: Snapshot, node: str) -> bool:
    found = snapshot.get(NODES.resource, "", node)
    return isinstance(found, Node) and is_ready(found)


def _message(pod: Pod) -> str:
    return next((one.message for one in pod.status.conditions if one.type == "PodScheduled"), "")


def _compare_chances(told: PodExplanation, chance: Chance) -> Iterator[str]:
    fits = None if told.status == "unjudged" else told.status == "fits"
    if chance.fits != fits or (chance.node or "") != told.node:
        yield f"what-if says {chance}, explain pod {told.status} {told.node}"


def _compare_preview(told: PodExplanation, before: Snapshot, newcomer: Newcomer) -> Iterator[str]:
    """As if it had been somewhere, and had to leave. Where there are no claims at all, it is not known who has some."""
    if newcomer.pod["spec"].keys() & {"schedulingGates", "schedulingGroup"}:
        return  # of gates nobody asks a pod that had a node, and of its gang others are there then
    name = newcomer.pod["metadata"]["name"]
    claims = tuple(f"default/{claim['metadata']['name']}" for claim in newcomer.claims)
    leaving = Eviction(pod=f"default/{name}", claims=claims, devices=(), causes=(), due=MOMENT, expected=MOMENT)
    (moved,) = move_elsewhere(before, {ObjectRef("default", name, f"uid-{name}"): leaving})
    fits = None if told.status == "unjudged" else told.status == "fits"
    if moved.fits is None and newcomer.pod["spec"].get("resourceClaims") and not list(before.objects(ResourceClaim)):
        return
    if moved.fits != fits or (moved.fits and moved.fits_on != told.node):
        yield f"a preview says {moved.fits} {moved.fits_on} {moved.why_not}, explain pod {told.status} {told.node}"


def _compare_claims(before: Snapshot, newcomer: Newcomer) -> Iterator[str]:
    """What allocate and explain say of each claim by itself."""
    for claim in newcomer.claims:
        name = f"default/{claim['metadata']['name']}"
        status = before.allocate(name).status
        report = before.explain(name).report
        if report.error or any(one.error for one in report.claims):
            explained = "error"
        elif any(verdict.status == "allocated" for verdict in report.nodes):
            explained = "allocated"
        else:
            explained = "unsatisfiable"
        if status != explained:
            yield f"allocate says {status} of {name}, explain {explained}"

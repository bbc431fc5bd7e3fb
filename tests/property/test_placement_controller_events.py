"""Whatever happens on a hub, in whatever order: what the controller has written in the end obeys the rules, is what
anybody would decide who looks at the hub then, and is not written again when nothing happens.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controller_world import World
from dray.api.cluster import ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement, Taint
from dray.controllers import Manager
from dray.placement import Fleet, place
from hub_world import Hub, binding, cluster, cluster_set, placement, taint
from local_server import local_server

NAMES = ("c0", "c1", "c2", "c3")
PLACEMENTS = ("p0", "p1")
LASTING = ("NoSelect", "PreferNoSelect")
EFFECTS = (*LASTING, "NoSelectIfNew")

Step = tuple[Any, ...]


def taints(effects: tuple[str, ...]) -> st.SearchStrategy[list[dict[str, Any]]]:
    one = st.builds(lambda key, effect: taint(f"{key}:{effect}"), st.sampled_from("ab"), st.sampled_from(effects))
    return st.lists(one, max_size=2, unique_by=lambda made: (made["key"], made["effect"]))


def steps(effects: tuple[str, ...], counts: st.SearchStrategy[int | None]) -> st.SearchStrategy[Step]:
    toleration = st.fixed_dictionaries(
        {"key": st.sampled_from("ab"), "operator": st.just("Exists")},
        optional={"tolerationSeconds": st.sampled_from([0, 40])},
    )
    spec = st.fixed_dictionaries({"tolerations": st.lists(toleration, max_size=2), "numberOfClusters": counts})
    return st.one_of(
        st.tuples(st.just("cluster"), st.sampled_from(NAMES), taints(effects)),
        st.tuples(st.just("cluster"), st.sampled_from(NAMES), taints(effects)),
        st.tuples(st.just("no cluster"), st.sampled_from(NAMES)),
        st.tuples(st.just("placement"), st.sampled_from(PLACEMENTS), spec),
        st.tuples(st.just("no placement"), st.sampled_from(PLACEMENTS)),
        st.tuples(st.just("meddle"), st.sampled_from(PLACEMENTS)),
        st.tuples(st.just("binding"), st.booleans()),
        st.tuples(st.just("pause"), st.sampled_from([1, 30])),
    )


@contextlib.asynccontextmanager
async def running_hub() -> AsyncIterator[Hub]:
    """A placement controller that may do everything, on a server that starts fast."""
    async with local_server(with_roles=False) as server:
        manager = Manager(server.client(), server.clock, wanted=["placement-controller"])
        task = asyncio.get_running_loop().create_task(manager.run())
        try:
            yield Hub(server, manager)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def put(world: World, plural: str, made: dict[str, Any]) -> None:
    """Creates an object, or gives the one that is there another spec."""
    name = made["metadata"]["name"]
    if await world.get(plural, name) is None:
        await world.create(made)
    else:
        await world.patch(plural, name, {"spec": {**dict.fromkeys(("taints", "tolerations")), **made["spec"]}})


async def remove(world: World, plural: str, name: str) -> None:
    if await world.get(plural, name) is not None:
        await world.delete(plural, name)


async def take(hub: Hub, step: Step) -> None:
    match step:
        case ("cluster", name, marks):
            await put(hub, "managedclusters", cluster(name, *marks))
        case ("no cluster", name):
            await remove(hub, "managedclusters", name)
        case ("placement", name, spec):
            await put(hub, "placements", placement(name, **{k: v for k, v in spec.items() if v is not None}))
        case ("no placement", name):
            await remove(hub, "placements", name)
        case ("meddle", name):
            await remove(hub, "placementdecisions", f"{name}-decision-1")
        case ("binding", True):
            await put(hub, "managedclustersetbindings", binding())
        case ("binding", False):
            await remove(hub, "managedclustersetbindings", "clusterset1")
        case ("pause", seconds):
            await hub.settle(seconds)


def tolerates(wanted: Placement, mark: Taint, now: datetime) -> bool:
    """Written down a second time: the key matches, and the time, if there is a limit, is not over."""
    for one in wanted.spec.tolerations:
        assert mark.time_added is not None
        age = (now - mark.time_added.datetime()).total_seconds()
        limited = one.toleration_seconds is not None and mark.effect != "NoSelectIfNew"
        if one.key == mark.key and not (limited and age >= (one.toleration_seconds or 0)):
            return True
    return False


def may_have(wanted: Placement, found: ManagedCluster, selected: bool, now: datetime) -> bool:
    return all(
        mark.effect == "PreferNoSelect" or (mark.effect == "NoSelectIfNew" and selected) or tolerates(wanted, mark, now)
        for mark in found.spec.taints
    )


async def check_rules(hub: Hub) -> None:
    now = datetime.fromtimestamp(hub.clock.now(), UTC)
    clusters: list[ManagedCluster] = await hub.objects("managedclusters")
    is_bound = bool(await hub.objects("managedclustersetbindings"))
    for wanted in await hub.objects("placements"):
        chosen = await hub.decisions(wanted.metadata.name)
        allowed = {
            one.metadata.name
            for one in (clusters if is_bound else ())
            if may_have(wanted, one, one.metadata.name in chosen, now)
        }
        count = wanted.spec.number_of_clusters
        assert set(chosen) <= allowed
        assert len(chosen) == len(set(chosen)) == (len(allowed) if count is None else min(count, len(allowed)))
        assert wanted.status.number_of_selected_clusters == len(chosen)


async def written(hub: Hub) -> list[object]:
    return [await hub.objects("placements"), await hub.objects("placementdecisions")]


RUN = settings(max_examples=25)
COUNTS: st.SearchStrategy[int | None] = st.sampled_from([None, 0, 1, 2])


@RUN
@given(st.lists(steps(EFFECTS, COUNTS), min_size=3, max_size=15))
async def test_decisions_obey_the_rules_and_rest(taken: list[Step]) -> None:
    async with running_hub() as hub:
        await hub.create(cluster_set(), binding())
        for step in taken:
            await take(hub, step)
        await hub.settle(0.5)
        await check_rules(hub)
        await hub.settle(60)
        await check_rules(hub)
        at_rest = await written(hub)
        for number, one in enumerate(await hub.objects("managedclusters")):
            beat = {"metadata": {"annotations": {"beat": str(number)}}}
            await hub.patch("managedclusters", one.metadata.name, beat)
        await hub.settle(30)
        assert await written(hub) == at_rest


@RUN
@given(st.lists(steps(LASTING, st.none()), min_size=3, max_size=15), st.randoms(use_true_random=False))
async def test_any_order_of_events_comes_to_what_the_hub_shows_in_the_end(taken: list[Step], shuffler: Any) -> None:
    """Placements that take all they can have: history does not count."""
    shuffled = list(taken)
    shuffler.shuffle(shuffled)

    async with running_hub() as hub:
        await hub.create(cluster_set(), binding())
        for step in shuffled:
            await take(hub, step)
        await hub.settle(1)
        kinds = ("managedclusters", "managedclustersets", "managedclustersetbindings")
        objects: list[ManagedCluster | ManagedClusterSet | ManagedClusterSetBinding] = [
            one for plural in kinds for one in await hub.objects(plural)
        ]
        now = datetime.fromtimestamp(hub.clock.now(), UTC)
        for wanted in await hub.objects("placements"):
            anew = place(Fleet(objects), wanted, now)
            assert await hub.decisions(wanted.metadata.name) == list(anew.decisions)
            conditions = await hub.conditions(wanted.metadata.name)
            assert conditions == {kind: (one.status, one.reason) for kind, one in anew.conditions.items()}

"""Pods that speak of other pods, on a real (in-memory) server: they wait for the right company, and get it."""

from __future__ import annotations

from typing import Any

from dray.api.meta import DeleteOptions
from scheduler_world import PODS, World, scheduler_world

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERM = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}}
ALONE = {"podAntiAffinity": {REQUIRED: [TERM]}}
TOGETHER = {"podAffinity": {REQUIRED: [TERM]}}


async def add(here: World, name: str, labels: dict[str, str], **spec: Any) -> None:
    meta = {"name": name, "namespace": "default", "labels": labels}
    containers = [{"name": "c", "image": "i"}]
    await here.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}})
    await here.settle()


async def node_of(here: World, name: str) -> str:
    return (await here.pod(name)).spec.node_name or ""


async def test_pods_that_avoid_each_other_take_a_node_each_and_the_next_waits_for_one_to_go() -> None:
    async with scheduler_world() as here:
        for name in "ab":
            await here.add_node(name, labels={"host": name})
        for name in ("one", "two", "three"):
            await add(here, name, {"app": "web"}, affinity=ALONE)
        assert {await node_of(here, "one"), await node_of(here, "two")} == {"a", "b"}
        assert "2 node(s) didn't match pod anti-affinity rules" in await here.message("three")
        freed = await node_of(here, "one")
        await here.admin.delete(PODS, "default", "one", DeleteOptions(grace_period_seconds=0))
        await here.settle()
        assert await node_of(here, "three") == freed


async def test_a_pod_waits_for_company_to_come_or_to_get_the_label() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", labels={"host": "a"})
        await add(here, "guest", {}, affinity=TOGETHER)
        assert "1 node(s) didn't match pod affinity rules" in await here.message("guest")
        await add(here, "host", {"app": "web"})
        assert await node_of(here, "guest") == "a"
        await here.admin.patch(PODS, "default", "host", {"metadata": {"labels": {"app": "db"}}})
        await add(here, "late", {}, affinity=TOGETHER)
        assert not await node_of(here, "late")
        await here.admin.patch(PODS, "default", "host", {"metadata": {"labels": {"app": "web"}}})
        await here.settle()
        assert await node_of(here, "late") == "a"


async def test_pods_are_spread_and_the_next_one_waits_for_another_node() -> None:
    one = {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}
    spread = [{**one, "labelSelector": {"matchLabels": {"app": "web"}}}]
    async with scheduler_world() as here:
        await here.add_node("a", labels={"host": "a"})
        for name in ("one", "two"):
            await add(here, name, {"app": "web"}, topologySpreadConstraints=spread)
        assert await node_of(here, "one") == "a"
        assert "didn't match pod topology spread constraints" in await here.message("two")
        await here.add_node("b", labels={"host": "b"})
        await here.settle()
        assert await node_of(here, "two") == "b"

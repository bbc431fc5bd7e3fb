"""Where the pods of Services are: EndpointSlices and Endpoints follow pods, and only those that are selected."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from controller_world import Manifest, World, controller_world, manifest

SERVICE = "kubernetes.io/service-name"


@contextlib.asynccontextmanager
async def endpoint_world() -> AsyncIterator[World]:
    wanted = ("endpointslice-controller", "endpoints-controller", "garbage-collector-controller")
    async with controller_world(*wanted) as world:
        yield world


def service(name: str, **spec: Any) -> Manifest:
    ports = [{"name": "web", "port": 80, "targetPort": "http"}]
    return manifest("v1", "Service", name, spec={"ports": ports, "selector": {"app": name}, **spec})


async def pod(world: World, name: str, address: str, *, app: str = "a", port: int = 8080, ready: bool = True) -> None:
    container = {"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": port}]}
    made = manifest("v1", "Pod", name, spec={"containers": [container], "nodeName": "n"})
    made["metadata"]["labels"] = {"app": app}
    await world.create(made)
    await standing(world, name, ready=ready, podIP=address, podIPs=[{"ip": address}], phase="Running")


async def standing(world: World, name: str, *, ready: bool, **status: Any) -> None:
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await world.patch("pods", name, {"status": {"conditions": [condition], **status}}, "status")


async def slices(world: World) -> list[Any]:
    return [each for each in await world.objects("endpointslices") if SERVICE in each.metadata.labels]


async def test_pods_come_and_go() -> None:
    async with endpoint_world() as world:
        await pod(world, "early", "10.0.0.1")
        await world.create(service("a"))
        await world.settle()
        await pod(world, "late", "10.0.0.2", ready=False)
        await pod(world, "other", "10.0.0.9", app="b")
        await world.settle()
        (found,) = await slices(world)
        assert found.metadata.owner_references[0].name == "a"
        assert [(port.name, port.port) for port in found.ports] == [("web", 8080)]
        told = {each.addresses[0]: each.conditions.ready for each in found.endpoints}
        assert told == {"10.0.0.1": True, "10.0.0.2": False}
        (subset,) = (await world.get("endpoints", "a")).subsets
        assert [each.ip for each in subset.addresses] == ["10.0.0.1"]
        assert [each.ip for each in subset.not_ready_addresses] == ["10.0.0.2"]
        await standing(world, "late", ready=True)
        await world.delete("pods", "early", grace_period_seconds=0)
        await world.settle()
        (found,) = await slices(world)
        assert [(each.target_ref.name, each.conditions.ready) for each in found.endpoints] == [("late", True)]
        await world.delete("endpointslices", found.metadata.name)
        await world.settle()
        assert [len(each.endpoints) for each in await slices(world)] == [1]
        await world.delete("services", "a")
        await world.settle(5)
        assert await slices(world) == []
        assert [each.metadata.name for each in await world.objects("endpoints")] in ([], ["kubernetes"])


async def test_pods_with_other_numbers_for_a_port_are_in_other_slices() -> None:
    async with endpoint_world() as world:
        await world.create(service("a"))
        await world.settle()
        (empty,) = await slices(world)
        assert empty.endpoints == ()
        await pod(world, "one", "10.0.0.1", port=1)
        await pod(world, "two", "10.0.0.2", port=2)
        await world.settle()
        assert sorted(each.ports[0].port for each in await slices(world)) == [1, 2]
        assert len((await world.get("endpoints", "a")).subsets) == 2


async def test_many_pods_are_in_several_slices_and_stay_where_they_are() -> None:
    async with endpoint_world() as world:
        await world.create(service("a"))
        for number in range(120):
            await pod(world, f"p{number:03}", f"10.0.1.{number}")
        await world.settle(5)
        before = {each.metadata.name: len(each.endpoints) for each in await slices(world)}
        assert sorted(before.values()) == [20, 100]
        await world.delete("pods", "p000", grace_period_seconds=0)
        await world.settle()
        after = {each.metadata.name: len(each.endpoints) for each in await slices(world)}
        assert sum(after.values()) == 119
        assert sum(after[name] != before[name] for name in before) == 1


async def test_services_without_selector_are_left_alone() -> None:
    async with endpoint_world() as world:
        await world.create(service("a", selector={}))
        await world.settle()
        assert await slices(world) == []


async def test_pods_and_services_find_each_other_by_any_labels() -> None:
    """Which label a Service's pods are found by is nobody's concern: all that it asks for have to be there."""
    async with endpoint_world() as world:
        both = {"app": "a", "tier": "back"}
        await world.create(service("a"), service("b", selector=both), service("c", selector={"tier": "back"}))
        await pod(world, "one", "10.0.0.1")
        await pod(world, "two", "10.0.0.2", app="x")
        await world.settle()

        async def members() -> dict[str, list[str]]:
            await world.settle()
            return {
                each.metadata.labels[SERVICE]: sorted(one.target_ref.name for one in each.endpoints)
                for each in await slices(world)
            }

        async def label(name: str, **labels: str | None) -> None:
            await world.patch("pods", name, {"metadata": {"labels": labels}})

        assert await members() == {"a": ["one"], "b": [], "c": []}
        await label("one", tier="back")
        await label("two", tier="back")
        assert await members() == {"a": ["one"], "b": ["one"], "c": ["one", "two"]}
        await label("two", app="a")
        await label("one", tier=None)
        assert await members() == {"a": ["one", "two"], "b": ["two"], "c": ["two"]}
        await world.patch("services", "c", {"spec": {"selector": {"tier": None, "app": "a"}}})
        await world.delete("services", "a")
        assert await members() == {"b": ["two"], "c": ["one", "two"]}
        await world.patch("services", "b", {"spec": {"selector": {"tier": "front"}}})
        await label("one", tier="front")
        assert await members() == {"b": ["one"], "c": ["one", "two"]}

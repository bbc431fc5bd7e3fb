"""Rules on a server that keeps only what Kubernetes keeps: names instead of class and CEL, annotations for the rate."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from controller_world import World, controller_world
from dray.api.kinds import RULES
from dray.api.meta import Object
from dray.api.registry import Kind
from dray.api.resource import DeviceTaintRule, ResourceSlice
from dray.api.status import ApiError
from dray.cli.live import load_snapshot
from dray.client.http import HttpClient
from dray.client.kubeconfig import load_kubeconfig
from dray.maintenance.rule_writing import Support, delete_rules, find_support, plan_rules, write_rules
from dray.snapshot.device_selection import DeviceSelection
from dray.snapshot.taint_rules import TaintRequest
from eviction_objects import device_slice, leaving, rule, use_devices
from live_server import LiveServer
from server_process import server_on_thread
from snapshot_objects import DRIVER, device, device_class, resource_slice

T = TypeVar("T", bound=Object)
ODD = f'device.attributes["{DRIVER}"].numa == 1'


class Kubernetes(HttpClient):
    """As if the server dropped what Kubernetes does not know (SVS-07, SVS-10)."""

    async def try_create(self, obj: T) -> T:
        return _dropped(await super().try_create(_dropped(obj)))

    async def create(self, obj: T) -> T:
        return await super().create(_dropped(obj))


def _dropped(obj: T) -> T:
    if not isinstance(obj, DeviceTaintRule):
        return obj
    selector, taint = obj.spec.device_selector, obj.spec.taint
    kept = selector and replace(selector, device_class_name=None, selectors=())
    return replace(obj, spec=replace(obj.spec, device_selector=kept, taint=replace(taint, evictions_per_second=None)))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with server_on_thread(tmp_path_factory.mktemp("server") / "state") as (running, _):
        documents = [device_class(), *(_pool(f"node-{number}") for number in (1, 2))]
        for document in documents:
            plural = {"DeviceClass": "deviceclasses", "ResourceSlice": "resourceslices"}[document["kind"]]
            assert running.request("POST", f"/apis/resource.k8s.io/v1/{plural}", document).code == 201
        yield running


def _pool(node: str, devices: int = 4) -> dict[str, Any]:
    return resource_slice(node, *(device(f"gpu-{number}", numa=number % 2) for number in range(devices)))


@contextlib.asynccontextmanager
async def client_of(server: LiveServer, kind: type[HttpClient] = Kubernetes) -> AsyncIterator[HttpClient]:
    async with kind(load_kubeconfig([Path(server.kubeconfig)])) as client:
        try:
            yield client
        finally:
            await delete_rules(client, await rules_of(client))


async def rules_of(client: HttpClient) -> list[DeviceTaintRule]:
    return [one for one in (await client.list(RULES)).items if isinstance(one, DeviceTaintRule)]


async def apply(client: HttpClient, request: TaintRequest) -> Support:
    snapshot = await load_snapshot(client)
    support = await find_support(client, request)
    await write_rules(client, snapshot, request, plan_rules(snapshot, request, support))
    return support


def selected(rules: list[DeviceTaintRule]) -> set[tuple[str | None, str | None]]:
    return {
        (one.spec.device_selector.pool, one.spec.device_selector.device) for one in rules if one.spec.device_selector
    }


async def test_class_and_cel_become_names_and_never_a_wider_rule(server: LiveServer) -> None:
    async with client_of(server) as client:
        asked = TaintRequest(
            selection=DeviceSelection(device_class="gpu", cel=(ODD,)), key="fw", value="old", effect="NoExecute"
        )
        assert await apply(client, asked) == Support(class_and_cel=False)
        rules = await rules_of(client)
        assert selected(rules) == {(f"node-{n}", f"gpu-{d}") for n in (1, 2) for d in (1, 3)}
        assert {one.spec.taint.effect for one in rules} == {"NoExecute"}


async def test_the_rate_goes_into_an_annotation(server: LiveServer) -> None:
    async with client_of(server) as client:
        asked = TaintRequest(selection=DeviceSelection(pool="node-1"), key="fw", effect="None", rate=3)
        assert await apply(client, asked) == Support(rate=False)
        (only,) = await rules_of(client)
        assert only.metadata.annotations["dray.dev/evictions-per-second"] == "3"
        assert only.spec.taint.evictions_per_second is None


async def test_the_trial_stores_nothing_and_what_needs_no_trial_has_none(server: LiveServer) -> None:
    async with client_of(server) as client:
        plain = TaintRequest(selection=DeviceSelection(pool="node-1"), key="k", effect="None")
        assert await find_support(client, plain) == Support()
        special = TaintRequest(selection=DeviceSelection(cel=("true",)), key="k", effect="None", rate=2)
        assert await find_support(client, special) == Support(class_and_cel=False, rate=False)
        assert await rules_of(client) == []


class WithoutRules(HttpClient):
    """Talks to a server that has no rules, as Kubernetes up to 1.36 is without gates."""

    async def group_of(self, kind: Kind) -> str:
        raise ApiError(404, "NotFound", f"the server has no {kind.kind}")


async def test_who_only_looks_hears_that_rules_cannot_be_written(server: LiveServer) -> None:
    asked = TaintRequest(selection=DeviceSelection(pool="node-1"), key="k", effect="None")
    async with client_of(server, WithoutRules) as client:
        with pytest.raises(ApiError, match="the server has no DeviceTaintRule"):
            await find_support(client, asked)


async def test_asking_again_changes_the_rules_that_are_there(server: LiveServer) -> None:
    async with client_of(server, HttpClient) as client:
        selection = DeviceSelection(device_class="gpu", cel=(ODD,))
        first = TaintRequest(selection=selection, key="fw", value="old", effect="None", rate=2)
        assert await apply(client, first) == Support()
        (before,) = await rules_of(client)
        await apply(client, TaintRequest(selection=selection, key="fw", effect="NoExecute"))
        (after,) = await rules_of(client)
        assert after.metadata.uid == before.metadata.uid
        taint = after.spec.taint
        assert (taint.value, taint.effect, taint.evictions_per_second) == ("", "NoExecute", None)
        assert after.spec.device_selector == before.spec.device_selector


async def test_rules_for_devices_that_no_longer_match_go(server: LiveServer) -> None:
    async with client_of(server) as client:
        asked = TaintRequest(selection=DeviceSelection(node="node-2", cel=(ODD,)), key="fw", effect="None")
        await apply(client, asked)
        assert selected(await rules_of(client)) == {("node-2", "gpu-1"), ("node-2", "gpu-3")}
        slices = {one.metadata.name: one for one in (await load_snapshot(client)).objects(ResourceSlice)}
        old = slices["node-2-slice"]
        less = await client.update(replace(old, spec=replace(old.spec, devices=old.spec.devices[:2])))
        await apply(client, asked)
        assert selected(await rules_of(client)) == {("node-2", "gpu-1")}
        await client.update(replace(less, spec=old.spec))


async def test_a_rule_of_the_same_name_that_is_another_one_is_not_deleted(server: LiveServer) -> None:
    async with client_of(server) as client:
        await apply(client, TaintRequest(selection=DeviceSelection(pool="node-1"), key="k", effect="None"))
        (only,) = await rules_of(client)
        other = replace(only, metadata=replace(only.metadata, uid="another"))
        with pytest.raises(ApiError) as error:
            await delete_rules(client, [other])
        assert error.value.code == 409
        assert len(await rules_of(client)) == 1


@pytest.mark.req("5055-90")
async def test_the_eviction_controller_honours_the_rate_in_the_annotation_and_a_change_of_it() -> None:
    async def gone(world: World) -> int:
        return len(await leaving(world))

    async with controller_world("device-taint-eviction-controller") as world:
        names = [f"gpu-{number}" for number in range(30)]
        await world.create(device_slice("pool", *names))
        for name in names:
            await use_devices(world, f"claim-{name}", name, pods=(f"pod-{name}",))
        made = rule()
        made["metadata"]["annotations"] = {"dray.dev/evictions-per-second": "1"}
        await world.create(made)
        await world.settle(0.1)
        assert await gone(world) == 10
        await world.settle(4)
        assert await gone(world) == 14
        faster = {"metadata": {"annotations": {"dray.dev/evictions-per-second": "1000"}}}
        await world.patch("devicetaintrules", "rule", faster)
        await world.settle(1)
        assert await gone(world) == 30

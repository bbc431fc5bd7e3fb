"""The scheduler against a real (in-memory) server, with its own rights and a clock that the test moves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.api.registry import by_kind
from dray.api.resource import AllocationResult, ResourceClaim
from dray.api.resource.claim import FINALIZER
from dray.api.status import ApiError
from dray.scheduler.scheduler import MAX_BINDING, Scheduler
from local_server import LocalServer, local_server, typed

PODS = by_kind("v1", "Pod")
NODES = by_kind("v1", "Node")
CLAIMS = by_kind("resource.k8s.io/v1", "ResourceClaim")
EVENTS = by_kind("v1", "Event")
RULES = by_kind("resource.k8s.io/v1", "DeviceTaintRule")
DRIVER = "gpu.example.com"


class Recorder:
    """A client that remembers writes and can be told to fail them."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.writes: list[str] = []
        self.fail: Callable[[str], ApiError | None] = lambda _write: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _note(self, write: str) -> None:
        self.writes.append(write)
        error = self.fail(write)
        if error is not None:
            raise error

    async def update(self, obj: Any, subresource: str = "") -> Any:
        self._note(f"update {obj.kind}/{subresource}" if subresource else f"update {obj.kind}")
        return await self._client.update(obj, subresource)

    async def update_with_status(self, obj: Any) -> Any:
        """With two writes, as over HTTP."""
        stored = await self.update(obj)
        return await self.update(replace(stored, status=obj.status), "status")

    async def post(self, kind: Any, namespace: str, name: str, subresource: str, body: Any) -> Any:
        self._note(f"post {subresource}")
        return await self._client.post(kind, namespace, name, subresource, body)


class World:
    """A server, a scheduler and what tests ask about them."""

    def __init__(self, server: LocalServer, disabled_gates: frozenset[str] = frozenset()) -> None:
        self.server = server
        self.clock = server.clock
        self.admin = server.client()
        self.client = Recorder(server.component("kube-scheduler"))
        self.scheduler = Scheduler(self.client, server.clock, disabled_gates=disabled_gates)

    async def add(self, api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Any:
        meta = {"name": name, "namespace": namespace} if namespace else {"name": name}
        return await self.admin.create(typed({"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}))

    async def add_node(self, name: str, *devices: Any, taints: Any = None) -> None:
        await self.add("v1", "Node", name)
        await self.admin.patch(NODES, "", name, {"spec": {"taints": taints}})
        status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}}
        await self.admin.patch(NODES, "", name, {"status": status}, subresource="status")
        if devices:
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            entries = [{"name": device} if isinstance(device, str) else device for device in devices]
            spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": entries}
            await self.add("resource.k8s.io/v1", "ResourceSlice", f"{name}-gpus", spec=spec)

    async def add_class(self) -> None:
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        await self.add("resource.k8s.io/v1", "DeviceClass", "gpu", spec={"selectors": [selector]})

    async def add_claim(self, name: str, **exactly: Any) -> None:
        wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **exactly}
        spec = {"devices": {"requests": [{"name": "r", "exactly": wanted}]}}
        await self.add("resource.k8s.io/v1", "ResourceClaim", name, "default", spec=spec)

    async def add_pod(self, name: str, *claims: str, **spec: Any) -> None:
        references = [{"name": claim, "resourceClaimName": claim} for claim in claims]
        containers = [{"name": "c", "image": "i"}]
        await self.add(
            "v1", "Pod", name, "default", spec={"containers": containers, "resourceClaims": references, **spec}
        )

    async def pod(self, name: str) -> Pod:
        found = await self.admin.get(PODS, "default", name)
        assert isinstance(found, Pod)
        return found

    async def claim(self, name: str) -> ResourceClaim:
        found = await self.admin.get(CLAIMS, "default", name)
        assert isinstance(found, ResourceClaim)
        return found

    async def message(self, name: str) -> str:
        conditions = (await self.pod(name)).status.conditions
        return next((found.message for found in conditions if found.type == "PodScheduled"), "")

    async def settle(self, seconds: float = 0.5) -> None:
        await self.clock.advance(seconds, turns=80)


@contextlib.asynccontextmanager
async def world(disabled_gates: frozenset[str] = frozenset()) -> AsyncIterator[World]:
    async with local_server() as server:
        made = World(server, disabled_gates)
        task = asyncio.get_running_loop().create_task(made.scheduler.run())
        try:
            yield made
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def run(scenario: Callable[[World], Awaitable[None]], *disabled_gates: str) -> None:
    async def whole() -> None:
        async with world(frozenset(disabled_gates)) as made:
            await scenario(made)

    asyncio.run(whole())


@pytest.mark.req("4381-58", "4381-103", "4381-115", "4381-118", "4381-121", "4381-130")
def test_finalizer_then_allocation_then_binding() -> None:
    async def scenario(here: World) -> None:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        await here.add_claim("c")
        await here.add_pod("p", "c")
        await here.settle()
        assert (await here.pod("p")).spec.node_name == "a"
        claim = await here.claim("c")
        assert claim.metadata.finalizers == (FINALIZER,)
        assert claim.status.allocation is not None
        assert [consumer.name for consumer in claim.status.reserved_for] == ["p"]
        assert here.client.writes == ["update ResourceClaim", "update ResourceClaim/status", "post binding"]

    run(scenario)


@pytest.mark.req("4381-104", "4381-115", "4381-116", "4381-117")
@pytest.mark.parametrize("failing", ["update ResourceClaim", "update ResourceClaim/status", "post binding"])
def test_whatever_write_fails_the_pod_is_tried_again_and_nothing_stays_reserved_meanwhile(failing: str) -> None:
    async def scenario(here: World) -> None:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        await here.add_claim("c")
        here.client.fail = lambda write: ApiError(503, "ServiceUnavailable", "not now") if write == failing else None
        await here.add_pod("p", "c")
        await here.settle()
        assert not (await here.pod("p")).spec.node_name
        if failing == "post binding":
            assert (await here.claim("c")).status.reserved_for == ()
        here.client.fail = lambda _write: None
        await here.settle(30)
        assert (await here.pod("p")).spec.node_name == "a"

    run(scenario)


@pytest.mark.req("4381-127", "4381-128")
def test_of_two_schedulers_only_one_allocates_a_claim_that_both_want() -> None:
    async def scenario(here: World) -> None:
        other = Scheduler(here.server.component("kube-scheduler"), here.clock, name="other")
        task = asyncio.get_running_loop().create_task(other.run())
        await here.add_node("a", "gpu-0", "gpu-1")
        await here.add_node("b", "gpu-0", "gpu-1")
        await here.add_class()
        await here.add_claim("c")
        await here.add_pod("p1", "c")
        await here.add_pod("p2", "c", schedulerName="other")
        await here.settle(60)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        claim = await here.claim("c")
        assert claim.status.allocation is not None
        [result] = claim.status.allocation.devices.results
        assert {(await here.pod(name)).spec.node_name for name in ("p1", "p2")} == {result.pool}
        assert sorted(consumer.name for consumer in claim.status.reserved_for) == ["p1", "p2"]

    run(scenario)


@pytest.mark.req("4381-113", "4381-129")
def test_claims_that_hold_devices_on_different_nodes_are_sorted_out() -> None:
    async def scenario(here: World) -> None:
        await here.add_node("a", "gpu-0", "gpu-1")
        await here.add_node("b", "gpu-0", "gpu-1")
        await here.add_class()
        for name, node in (("c1", "a"), ("c2", "b")):
            await here.add_claim(name)
            selector = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            result = {"request": "r", "driver": DRIVER, "pool": node, "device": "gpu-0"}
            allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [selector]}}
            await here.admin.patch(
                CLAIMS, "default", name, {"status": {"allocation": allocation}}, subresource="status"
            )
        await here.add_pod("p", "c1", "c2")
        await here.settle(30)
        assert (await here.pod("p")).spec.node_name in ("a", "b")

    run(scenario)


@pytest.mark.req("4381-98", "4381-119", "4381-217")
def test_a_pod_waits_for_its_class_and_is_told_why() -> None:
    async def scenario(here: World) -> None:
        await here.add_node("a", "gpu-0")
        await here.add_claim("c")
        await here.add_pod("p", "c")
        await here.settle(3)
        assert "cannot allocate all claims: device class gpu does not exist" in await here.message("p")
        events = [event.message for event in (await here.admin.list(EVENTS, "default")).items]  # type: ignore[attr-defined]
        assert any("device class gpu does not exist" in text for text in events)
        await here.add_class()
        await here.settle(1)
        assert (await here.pod("p")).spec.node_name == "a"

    run(scenario)


@pytest.mark.req("4381-119", "4381-138")
def test_a_released_device_reaches_the_pod_that_waits_for_it_at_once() -> None:
    async def scenario(here: World) -> None:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        await here.add_claim("c1")
        await here.add_claim("c2")
        await here.add_pod("p1", "c1")
        await here.settle()
        await here.add_pod("p2", "c2")
        await here.settle(20)
        assert "cannot allocate all claims" in await here.message("p2")
        nobody = {"status": {"reservedFor": None, "allocation": None}}
        await here.admin.patch(CLAIMS, "default", "c1", nobody, subresource="status")
        await here.settle(0.05)
        assert (await here.pod("p2")).spec.node_name == "a"

    run(scenario)


@pytest.mark.req("5027-26", "5027-31", "5027-32", "5027-37", "5027-55")
def test_a_pod_waits_for_a_patched_attribute_and_fits_on_the_first_retry() -> None:
    async def scenario(here: World) -> None:
        await here.add_node("a", "gpu-0", "gpu-1")
        await here.add_class()
        rack = f'"rack" in device.attributes["{DRIVER}"] && device.attributes["{DRIVER}"].rack == 3'
        await here.add_claim("c", selectors=[{"cel": {"expression": rack}}])
        await here.add_pod("p", "c")
        await here.settle(3)
        assert not (await here.pod("p")).spec.node_name
        attempts = here.scheduler.decided
        patch = {"filter": {"device": "gpu-1"}, "attributes": {f"{DRIVER}/rack": {"int": 3}}}
        before = (await here.admin.list(by_kind("resource.k8s.io/v1", "ResourceSlice"))).items
        await here.add("resource.k8s.io/v1alpha3", "ResourceSlicePatch", "racks", spec={"devices": patch})
        await here.settle(1)
        allocation = (await here.claim("c")).status.allocation
        assert allocation is not None
        assert [result.device for result in allocation.devices.results] == ["gpu-1"]
        assert here.scheduler.decided == attempts + 1
        assert (await here.admin.list(by_kind("resource.k8s.io/v1", "ResourceSlice"))).items == before

    run(scenario)


@pytest.mark.req("5055-50", "5055-51", "5055-62", "5055-143")
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_rule_keeps_pods_away_until_it_goes(effect: str) -> None:
    async def scenario(here: World) -> None:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        taint = {"key": "example.com/x", "effect": effect}
        spec = {"deviceSelector": {"device": "gpu-0"}, "taint": taint}
        await here.add("resource.k8s.io/v1", "DeviceTaintRule", "rule", spec=spec)
        await here.add_claim("c")
        await here.add_pod("p", "c")
        await here.settle(3)
        assert not (await here.pod("p")).spec.node_name
        await here.admin.delete(RULES, "", "rule")
        await here.settle(15)
        assert (await here.pod("p")).spec.node_name == "a"

    run(scenario)


@pytest.mark.req("4381-122", "4381-211", "5055-64", "5027-38")
def test_pods_without_claims_are_not_held_up() -> None:
    """A hundred rules and a pending claim cost a plain pod nothing: one decision, one write."""

    async def scenario(here: World) -> None:
        await here.add_node("a", "gpu-0")
        for number in range(100):
            taint = {"key": "example.com/x", "effect": "NoSchedule"}
            await here.add(
                "resource.k8s.io/v1", "DeviceTaintRule", f"r{number}", spec={"deviceSelector": {}, "taint": taint}
            )
        await here.settle()
        await here.add_pod("p")
        await here.settle(0.1)
        assert (await here.pod("p")).spec.node_name == "a"
        assert here.scheduler.decided == 1
        assert here.client.writes == ["post binding"]

    run(scenario)


@pytest.mark.req("4381-123", "4381-186")
def test_a_node_that_floods_us_with_slices_does_not_starve_others() -> None:
    async def scenario(here: World) -> None:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        await here.add_claim("c", count=2)
        await here.add_pod("waiting", "c")
        await here.settle(1)
        before = here.scheduler.decided
        slices = by_kind("resource.k8s.io/v1", "ResourceSlice")
        for number in range(50):
            devices = [{"name": "gpu-0", "attributes": {"beat": {"int": number}}}]
            await here.admin.patch(slices, "", "a-gpus", {"spec": {"devices": devices}})
            await here.settle(0.05)
        assert here.scheduler.decided - before <= 4
        await here.add_pod("plain")
        await here.settle(0.1)
        assert (await here.pod("plain")).spec.node_name == "a"

    run(scenario)


@pytest.mark.req("5055-108", "5055-114", "5055-115", "5055-119", "4381-205")
@pytest.mark.parametrize("gate", ["DRADeviceTaints", "DRADeviceTaintRules"])
def test_with_the_gate_off_in_the_scheduler_a_rule_has_no_effect(gate: str) -> None:
    async def scenario(here: World) -> None:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        spec = {"deviceSelector": {"device": "gpu-0"}, "taint": {"key": "example.com/x", "effect": "NoSchedule"}}
        await here.add("resource.k8s.io/v1", "DeviceTaintRule", "rule", spec=spec)
        await here.add_claim("c")
        await here.add_pod("p", "c")
        await here.settle()
        assert (await here.pod("p")).spec.node_name == "a"

    gates = (gate, "DRADeviceTaintRules") if gate == "DRADeviceTaints" else (gate,)
    run(scenario, *gates)


@pytest.mark.req("5027-41", "5027-43", "5027-44")
def test_with_the_gate_off_in_the_scheduler_patches_have_no_effect() -> None:
    async def scenario(here: World) -> None:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        patch = {"attributes": {f"{DRIVER}/rack": {"int": 3}}}
        await here.add("resource.k8s.io/v1alpha3", "ResourceSlicePatch", "racks", spec={"devices": patch})
        absent = f'!("rack" in device.attributes["{DRIVER}"])'
        await here.add_claim("c", selectors=[{"cel": {"expression": absent}}])
        await here.add_pod("p", "c")
        await here.settle()
        assert (await here.pod("p")).spec.node_name == "a"

    run(scenario, "DRAAdminControlledDeviceAttributes")


@pytest.mark.req("4381-106", "4381-109", "4381-206")
def test_the_filter_timeout_is_ten_seconds_and_can_be_turned_off() -> None:
    async def scenario(here: World) -> None:
        limited = Scheduler(here.client, here.clock)
        quick = Scheduler(here.client, here.clock, filter_seconds=0.5)
        unlimited = Scheduler(here.client, here.clock, disabled_gates=frozenset({"DRASchedulerFilterTimeout"}))
        assert [each.options.max_seconds for each in (limited, quick, unlimited)] == [10.0, 0.5, None]

    run(scenario)


@pytest.mark.req("5027-34", "5027-35", "5027-36")
def test_an_allocation_that_a_patch_comes_too_late_for_stays() -> None:
    async def scenario(here: World) -> None:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        absent = f'!("bad" in device.attributes["{DRIVER}"])'
        await here.add_claim("c", selectors=[{"cel": {"expression": absent}}])
        await here.add_pod("p", "c")
        await here.settle()
        before = await here.claim("c")
        patch = {"attributes": {f"{DRIVER}/bad": {"bool": True}}}
        await here.add("resource.k8s.io/v1alpha3", "ResourceSlicePatch", "late", spec={"devices": patch})
        await here.settle(30)
        assert await here.claim("c") == before
        assert (await here.pod("p")).spec.node_name == "a"

    run(scenario)


def test_many_pods_that_wait_for_their_claims_hold_up_nobody() -> None:
    async def scenario(here: World) -> None:
        await here.add_node("a")
        template = [{"name": "c", "resourceClaimTemplateName": "later"}]
        for number in range(MAX_BINDING + 1):
            await here.add_pod(f"waiting-{number}", resourceClaims=template)
        await here.add_pod("plain")
        await here.settle()
        assert (await here.pod("plain")).spec.node_name == "a"

    run(scenario)


@pytest.mark.req("4381-121")
def test_in_process_finalizer_and_allocation_are_one_write() -> None:
    async def scenario(here: World) -> None:
        await here.add_node("a")
        await here.add_claim("c")
        claim = await here.claim("c")
        status = replace(claim.status, allocation=AllocationResult())
        wanted = replace(claim, metadata=replace(claim.metadata, finalizers=(FINALIZER,)), status=status)
        scheduler = here.server.component("kube-scheduler")
        stored = await scheduler.update_with_status(wanted)
        assert stored.metadata.finalizers == (FINALIZER,)
        assert stored.status.allocation is not None
        assert int(stored.metadata.resource_version) == int(claim.metadata.resource_version) + 1
        with pytest.raises(ApiError, match="has been modified"):
            await scheduler.update_with_status(wanted)

    run(scenario)

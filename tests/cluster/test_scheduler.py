"""The scheduler against a real (in-memory) server, with its own rights and a clock that the test moves."""

import asyncio
from collections.abc import Set
from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.registry import by_kind
from dray.api.resource import AllocationResult
from dray.api.resource.claim import FINALIZER
from dray.api.resource.pool import PoolKey
from dray.api.status import ApiError
from dray.client.informer import LISTED_AT_ONCE
from dray.reconcile import Informers
from dray.scheduler.scheduler import MAX_BINDING, Scheduler
from dray.scheduling.cluster import Cluster
from dray.tracker import Event
from scheduler_world import CLAIMS, DRIVER, EVENTS, PODS, RULES, World, scheduler_world


@pytest.mark.req("4381-58", "4381-103", "4381-115", "4381-118", "4381-121", "4381-130", "4381-39", "4381-253")
async def test_finalizer_then_allocation_then_binding() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        await here.add_claim("c")
        await here.settle(5)
        assert (await here.claim("c")).status.allocation is None  # nobody wants it yet
        await here.add_pod("p", "c")
        await here.settle()
        assert (await here.pod("p")).spec.node_name == "a"
        claim = await here.claim("c")
        assert claim.metadata.finalizers == (FINALIZER,)
        assert claim.status.allocation is not None
        assert claim.status.allocation.allocation_timestamp is not None
        assert [consumer.name for consumer in claim.status.reserved_for] == ["p"]
        assert here.client.writes == ["update ResourceClaim", "update ResourceClaim/status", "post binding"]


@pytest.mark.req("4381-104", "4381-115", "4381-116", "4381-117")
@pytest.mark.parametrize("failing", ["update ResourceClaim", "update ResourceClaim/status", "post binding"])
async def test_whatever_write_fails_the_pod_is_tried_again_and_nothing_stays_reserved_meanwhile(failing: str) -> None:
    async with scheduler_world() as here:
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


@pytest.mark.req("4381-84", "SVS-51")
async def test_a_pod_stays_pending_if_a_selector_fails_on_some_node() -> None:
    async with scheduler_world() as here:
        fast = {"name": "gpu-0", "attributes": {"fast": {"bool": True}}}
        await here.add_node("a", fast)
        await here.add_node("b", "gpu-1")
        await here.add_class()
        await here.add_claim("c", selectors=[{"cel": {"expression": f'device.attributes["{DRIVER}"].fast'}}])
        await here.add_pod("p", "c")
        await here.settle()
        pod = await here.pod("p")
        assert not pod.spec.node_name
        (condition,) = [one for one in pod.status.conditions if one.type == "PodScheduled"]
        assert (condition.status, condition.reason) == ("False", "SchedulerError")
        assert "CEL runtime error" in condition.message
        await here.admin.delete(by_kind("resource.k8s.io/v1", "ResourceSlice"), "", "b-gpus")
        await here.settle(30)
        assert (await here.pod("p")).spec.node_name == "a"


@pytest.mark.req("4381-127", "4381-128", "implied-7")
async def test_of_two_schedulers_only_one_allocates_a_claim_that_both_want() -> None:
    async with scheduler_world() as here:
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


@pytest.mark.req("4381-93", "4381-114")
async def test_what_was_chosen_is_taken_while_it_is_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        update, asked, go = here.client.update, [], asyncio.Event()

        async def slow(obj: Any, subresource: str = "") -> Any:
            asked.append(obj.metadata.name)
            await go.wait()
            return await update(obj, subresource)

        monkeypatch.setattr(here.client, "update", slow)
        for name in ("first", "second"):
            await here.add_claim(name)
            await here.add_pod(name, name)
        await here.settle()
        assert asked == ["first"], "nobody else was given the device"
        assert "cannot allocate all claims" in await here.message("second")
        go.set()
        await here.settle()
        assert (await here.pod("first")).spec.node_name == "a"
        assert set(asked) == {"first"}


async def give(here: World, name: str, node: str, device: str) -> None:
    """Has a claim hold a device that no pod uses."""
    selector = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    result = {"request": "r", "driver": DRIVER, "pool": node, "device": device}
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [selector]}}
    await here.add_claim(name)
    await here.admin.patch(CLAIMS, "default", name, {"status": {"allocation": allocation}}, subresource="status")


@pytest.mark.req("4381-113")
async def test_chance_decides_which_claim_gives_its_devices_back() -> None:
    async with scheduler_world() as here:
        numbers = range(8)
        for node in ("a", "b"):
            await here.add_node(node, *[f"gpu-{number}" for number in range(2 * len(numbers))])
        await here.add_class()
        for number in numbers:
            await give(here, f"a-{number}", "a", f"gpu-{number}")
            await give(here, f"b-{number}", "b", f"gpu-{number}")
            await here.add_pod(f"p-{number}", f"a-{number}", f"b-{number}")
        await here.settle(30)
        assert {(await here.pod(f"p-{number}")).spec.node_name for number in numbers} == {"a", "b"}


@pytest.mark.req("4381-113", "4381-129")
async def test_claims_that_hold_devices_on_different_nodes_are_sorted_out() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0", "gpu-1")
        await here.add_node("b", "gpu-0", "gpu-1")
        await here.add_class()
        for name, node in (("c1", "a"), ("c2", "b")):
            await give(here, name, node, "gpu-0")
        await here.add_pod("p", "c1", "c2")
        await here.settle(30)
        node = (await here.pod("p")).spec.node_name
        assert node in ("a", "b")
        # Who shares a claim that was given up and allocated anew goes where it is now.
        for name in ("c1", "c2"):
            await here.add_pod(f"shares-{name}", name)
        await here.settle(5)
        assert {(await here.pod(f"shares-{name}")).spec.node_name for name in ("c1", "c2")} == {node}


@pytest.mark.req("4381-98", "4381-119", "4381-217")
async def test_a_pod_waits_for_its_class_and_is_told_why() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await here.add_claim("c")
        await here.add_pod("p", "c")
        await here.settle(3)
        assert "cannot allocate all claims: request r: device class gpu does not exist" in await here.message("p")
        events = [event.message for event in (await here.admin.list(EVENTS, "default")).items]  # type: ignore[attr-defined]
        assert any("device class gpu does not exist" in text for text in events)
        await here.add_class()
        await here.settle(1)
        assert (await here.pod("p")).spec.node_name == "a"


@pytest.mark.req("4381-119", "4381-138")
async def test_a_released_device_reaches_the_pod_that_waits_for_it_at_once() -> None:
    async with scheduler_world() as here:
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


async def test_what_a_pod_is_told_is_told_anew_when_it_is_no_longer_so() -> None:
    """Another pod takes a device that the message counts as free: that helps nobody, but the message is wrong then."""
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0", "gpu-1")
        await here.add_class()
        await here.add_claim("many", count=3)
        await here.add_pod("waits", "many")
        await here.settle(2)
        assert "2 of 2 devices match; 2 free" in await here.message("waits")
        await here.add_claim("one")
        await here.add_pod("takes", "one")
        await here.settle(1)
        assert (await here.pod("takes")).spec.node_name == "a"
        await here.settle(15)
        assert "2 of 2 devices match; 1 in use, 1 free" in await here.message("waits")
        attempts = here.scheduler._state.decided
        await here.settle(60)
        assert here.scheduler._state.decided == attempts, "nothing changed, so nobody is looked at again"


@pytest.mark.parametrize("seconds", range(10))
@pytest.mark.parametrize("in_group", [False, True])
async def test_what_is_no_longer_so_right_after_it_was_told_is_told_anew_as_well(seconds: int, in_group: bool) -> None:
    """Whenever it is told, and whenever it is looked at: a change of counts that comes at once is put off, not lost."""
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0", "gpu-1")
        await here.add_class()
        await here.add_claim("many", count=3)
        await here.settle(seconds + 0.5)
        group = {}
        if in_group:
            gang = {"schedulingPolicy": {"gang": {"minCount": 1}}}
            await here.add("scheduling.k8s.io/v1beta1", "PodGroup", "g", "default", spec=gang)
            group = {"schedulingGroup": {"podGroupName": "g"}}
        await here.add_pod("waits", "many", **group)
        await here.settle(0.5)
        assert "2 of 2 devices match; 2 free" in await here.message("waits")
        taint = {"key": "worn", "effect": "NoSchedule"}
        await here.add("resource.k8s.io/v1", "DeviceTaintRule", "worn", spec={"deviceSelector": {}, "taint": taint})
        await here.settle(25)
        assert "2 tainted by rule worn" in await here.message("waits")
        attempts = here.scheduler._state.decided
        await here.settle(60)
        assert here.scheduler._state.decided == attempts, "nothing changed, so nobody is looked at again"


@pytest.mark.req("5027-26", "5027-31", "5027-32", "5027-37", "5027-55", "5027-36")
async def test_a_pod_waits_for_a_patched_attribute_and_fits_on_the_first_retry() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0", "gpu-1")
        await here.add_class()
        rack = f'"rack" in device.attributes["{DRIVER}"] && device.attributes["{DRIVER}"].rack == 3'
        await here.add_claim("c", selectors=[{"cel": {"expression": rack}}])
        await here.add_pod("p", "c")
        await here.settle(3)
        assert not (await here.pod("p")).spec.node_name
        attempts = here.scheduler._state.decided
        patch = {"filter": {"device": "gpu-1"}, "attributes": {f"{DRIVER}/rack": {"int": 3}}}
        before = (await here.admin.list(by_kind("resource.k8s.io/v1", "ResourceSlice"))).items
        await here.add("resource.k8s.io/v1alpha3", "ResourceSlicePatch", "racks", spec={"devices": patch})
        await here.settle(1)
        allocation = (await here.claim("c")).status.allocation
        assert allocation is not None
        assert [result.device for result in allocation.devices.results] == ["gpu-1"]
        assert here.scheduler._state.decided == attempts + 1
        assert (await here.admin.list(by_kind("resource.k8s.io/v1", "ResourceSlice"))).items == before


@pytest.mark.req("5055-50", "5055-51", "5055-62", "5055-143", "implied-4", "5055-136")
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
async def test_a_rule_keeps_pods_away_until_it_goes(effect: str) -> None:
    async with scheduler_world() as here:
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
        await here.settle(0.5)  # the pod has waited longer than any backoff, so it is tried at once
        assert (await here.pod("p")).spec.node_name == "a"


@pytest.mark.req("4381-122", "4381-211", "5055-64", "5027-38")
async def test_pods_without_claims_are_not_held_up() -> None:
    """A hundred rules and patches cost a plain pod nothing: one decision, one write."""

    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        for number in range(100):
            taint = {"key": "example.com/x", "effect": "NoSchedule"}
            await here.add(
                "resource.k8s.io/v1", "DeviceTaintRule", f"r{number}", spec={"deviceSelector": {}, "taint": taint}
            )
            patch = {"attributes": {"example.com/n": {"int": number}}}
            await here.add("resource.k8s.io/v1alpha3", "ResourceSlicePatch", f"p{number}", spec={"devices": patch})
        await here.settle()
        await here.add_pod("p")
        await here.settle(0.1)
        assert (await here.pod("p")).spec.node_name == "a"
        assert here.scheduler._state.decided == 1
        assert here.client.writes == ["post binding"]


@pytest.mark.req("4381-186")
async def test_a_node_that_floods_us_with_slices_does_not_starve_others() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        await here.add_claim("c", count=2)
        await here.add_pod("waiting", "c")
        await here.settle(1)
        before = here.scheduler._state.decided
        slices = by_kind("resource.k8s.io/v1", "ResourceSlice")
        for number in range(50):
            devices = [{"name": "gpu-0", "attributes": {"beat": {"int": number}}}]
            await here.admin.patch(slices, "", "a-gpus", {"spec": {"devices": devices}})
            await here.settle(0.05)
        assert here.scheduler._state.decided - before <= 4
        await here.add_pod("plain")
        await here.settle(0.1)
        assert (await here.pod("plain")).spec.node_name == "a"


@pytest.mark.req("5055-108", "5055-114", "5055-115", "5055-119", "5055-123")
@pytest.mark.parametrize("gate", ["DRADeviceTaints", "DRADeviceTaintRules"])
async def test_with_the_gate_off_in_the_scheduler_a_rule_has_no_effect(gate: str) -> None:
    gates = (gate, "DRADeviceTaintRules") if gate == "DRADeviceTaints" else (gate,)
    async with scheduler_world(*gates) as here:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        spec = {"deviceSelector": {"device": "gpu-0"}, "taint": {"key": "example.com/x", "effect": "NoSchedule"}}
        await here.add("resource.k8s.io/v1", "DeviceTaintRule", "rule", spec=spec)
        await here.add_claim("c")
        await here.add_pod("p", "c")
        await here.settle()
        assert (await here.pod("p")).spec.node_name == "a"


@pytest.mark.req("5027-41", "5027-43", "5027-44", "5027-48")
async def test_with_the_gate_off_in_the_scheduler_patches_have_no_effect() -> None:
    async with scheduler_world("DRAAdminControlledDeviceAttributes") as here:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        patch = {"attributes": {f"{DRIVER}/rack": {"int": 3}}}
        await here.add("resource.k8s.io/v1alpha3", "ResourceSlicePatch", "racks", spec={"devices": patch})
        absent = f'!("rack" in device.attributes["{DRIVER}"])'
        await here.add_claim("c", selectors=[{"cel": {"expression": absent}}])
        await here.add_pod("p", "c")
        await here.settle()
        assert (await here.pod("p")).spec.node_name == "a"


@pytest.mark.req("4381-106", "4381-109", "4381-206")
async def test_the_filter_timeout_is_ten_seconds_and_can_be_turned_off() -> None:
    async with scheduler_world() as here:
        limited = Scheduler(here.client, here.clock)
        quick = Scheduler(here.client, here.clock, filter_seconds=0.5)
        unlimited = Scheduler(here.client, here.clock, disabled_gates=frozenset({"DRASchedulerFilterTimeout"}))
        assert [each.options.max_seconds for each in (limited, quick, unlimited)] == [10.0, 0.5, None]


@pytest.mark.req("5027-34", "5027-35")
async def test_an_allocation_that_a_patch_comes_too_late_for_stays() -> None:
    async with scheduler_world() as here:
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


async def test_many_pods_that_wait_for_their_claims_hold_up_nobody() -> None:
    async with scheduler_world() as here:
        await here.add_node("a")
        template = [{"name": "c", "resourceClaimTemplateName": "later"}]
        for number in range(MAX_BINDING + 1):
            await here.add_pod(f"waiting-{number}", resourceClaims=template)
        await here.add_pod("plain")
        await here.settle()
        assert (await here.pod("plain")).spec.node_name == "a"


@pytest.mark.req("4381-111", "4381-119", "4381-144")
async def test_a_pod_is_not_tried_before_its_claim_is_there() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        await here.add_pod("p", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "template"}])
        await here.settle(5)
        assert here.scheduler._state.decided == 0
        assert await here.message("p") == "ResourceClaim not created yet: claim gpu of template template"
        pod = await here.pod("p")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod.metadata.uid, "controller": True}
        await here.add_claim("p-gpu")
        await here.admin.patch(CLAIMS, "default", "p-gpu", {"metadata": {"ownerReferences": [owner]}})
        statuses = [{"name": "gpu", "resourceClaimName": "p-gpu"}]
        await here.admin.patch(
            PODS, "default", "p", {"status": {"resourceClaimStatuses": statuses}}, subresource="status"
        )
        await here.settle()
        assert here.scheduler._state.decided == 1
        assert (await here.pod("p")).spec.node_name == "a"


async def test_a_scheduler_that_stops_leaves_the_informers_of_its_process_to_the_next_one() -> None:
    async with scheduler_world() as here:
        client, clock, loop = here.server.component("kube-scheduler"), here.clock, asyncio.get_running_loop()
        informers = Informers(here.admin, clock)
        running = loop.create_task(informers.run())
        first, second = (Scheduler(client, clock, name="shared", informers=informers) for _ in range(2))
        await here.add_node("a")
        for number, scheduler in enumerate((first, second)):
            task = loop.create_task(scheduler.run())
            await here.add_pod(f"p{number}", schedulerName="shared")
            await here.settle()
            assert (await here.pod(f"p{number}")).spec.node_name == "a"
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert (first._state.decided, second._state.decided) == (1, 1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_scheduler_that_takes_over_leaves_turns_of_the_loop_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes in together what it hears of in a turn: one slice after the other costs a third more."""
    looks, track = [0], Cluster.track

    def counted(cluster: Cluster, *events: Event) -> Set[PoolKey]:
        looks[-1] += 1
        return track(cluster, *events)

    monkeypatch.setattr(Cluster, "track", counted)
    async with scheduler_world() as here:
        client, clock, loop = here.server.component("kube-scheduler"), here.clock, asyncio.get_running_loop()
        informers = Informers(here.admin, clock)
        running = loop.create_task(informers.run())
        count = 5 * LISTED_AT_ONCE
        for number in range(count):
            await here.add_node(f"n{number}", "gpu-0")
        first, second = (Scheduler(client, clock, name="shared", informers=informers) for _ in range(2))
        first_run = loop.create_task(first.run())
        await here.settle()
        first_run.cancel()
        await asyncio.gather(first_run, return_exceptions=True)
        looks.append(0)
        second_run, known, most = loop.create_task(second.run()), 0, 0
        while second.problem:
            await asyncio.sleep(0)
            now = len(second.cluster.nodes) + len(second.cluster.tracker.pools)
            most, known = max(most, now - known), now
        assert (known, most) == (2 * count, LISTED_AT_ONCE)
        assert looks[-1] == 5
        for task in (running, second_run):
            task.cancel()
        await asyncio.gather(running, second_run, return_exceptions=True)


@pytest.mark.req("4381-121")
async def test_in_process_finalizer_and_allocation_are_one_write() -> None:
    async with scheduler_world() as here:
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

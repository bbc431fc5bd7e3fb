"""Groups of pods against a real (in-memory) server: together or not at all, and nothing held meanwhile."""

import asyncio
from typing import Any

import pytest

from dray.api.conditions import DISRUPTION_TARGET, find_condition
from dray.api.generated.scheduling import PodGroup
from dray.api.kinds import EVENTS, POD_GROUPS, PODS
from dray.api.meta import DeleteOptions
from dray.api.pod_groups import INITIALLY_SCHEDULED
from dray.api.resource import ResourceClaim
from dray.api.resource.claim import FINALIZER
from dray.api.status import ApiError
from dray.scheduler.group_binding import GroupBinder, Placed
from scheduler_world import CLAIMS, DRIVER, World, scheduler_world

RACK = "example.com/rack"


async def add_group(here: World, name: str, min_count: int = 2, **spec: Any) -> None:
    policy = {"gang": {"minCount": min_count}} if min_count else {"basic": {}}
    await here.add("scheduling.k8s.io/v1beta1", "PodGroup", name, "default", spec={"schedulingPolicy": policy, **spec})


async def add_member(here: World, group: str, name: str, *claims: str, **spec: Any) -> None:
    await here.add_pod(name, *claims, schedulingGroup={"podGroupName": group}, **spec)


async def add_gang(here: World, name: str, count: int, **spec: Any) -> None:
    """A gang of pods with a device each."""
    await add_group(here, name, count, **spec)
    for number in range(count):
        await here.add_claim(f"{name}-{number}")
        await add_member(here, name, f"{name}-{number}", f"{name}-{number}")


async def nodes(here: World, *names: str) -> list[str]:
    return [(await here.pod(name)).spec.node_name for name in names]


async def told(here: World, name: str) -> Any:
    group: Any = await here.admin.get(POD_GROUPS, "default", name)
    return find_condition(group.status.conditions, INITIALLY_SCHEDULED)


async def test_a_gang_waits_for_its_pods_then_runs() -> None:
    async with scheduler_world() as here:
        await here.add_node("a")
        await add_member(here, "g", "p0")
        await here.settle(2)
        assert await here.message("p0") == 'waiting for pod group "g", which does not exist'
        await add_group(here, "g", 2)
        await here.settle(15)
        assert await here.message("p0") == "waiting for more pods of PodGroup g: 1 of the 2 that it needs are there"
        condition = await told(here, "g")
        assert (condition.status, condition.reason) == ("False", "Unschedulable")
        assert "1 of the 2" in condition.message
        assert await nodes(here, "p0") == [""]
        await add_member(here, "g", "p1")
        await here.settle()
        assert await nodes(here, "p0", "p1") == ["a", "a"]
        condition = await told(here, "g")
        assert (condition.status, condition.reason) == ("True", "Scheduled")
        events = (await here.admin.list(EVENTS, "default")).items
        seen = {(event.involved_object.kind, event.reason) for event in events}  # type: ignore[attr-defined]
        assert {("PodGroup", "FailedScheduling"), ("PodGroup", "Scheduled")} <= seen


async def test_too_few_devices_are_left_alone_until_there_are_enough() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0", "gpu-1")
        await here.add_class()
        await add_gang(here, "g", 3)
        await here.settle(2)
        assert await nodes(here, "g-0", "g-1", "g-2") == ["", "", ""]
        claims = (await here.admin.list(CLAIMS, "default")).items
        assert [claim.status.allocation for claim in claims] == [None] * 3  # type: ignore[attr-defined]
        said = "PodGroup g needs nodes for 3 pods at once, and 2 fit; the next does not: 0/1 nodes are available"
        assert (await here.message("g-0")).startswith(said)
        assert (await told(here, "g")).message.startswith(said)
        await here.add_node("b", "gpu-0")
        await here.settle(2)
        assert sorted(await nodes(here, "g-0", "g-1", "g-2")) == ["a", "a", "b"]


async def test_what_stops_a_gang_is_told_of_the_pod_that_it_stops() -> None:
    """Its resources, its claims and the nodes that suit it: the others of the gang have none of these."""
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0", labels={"kind": "large"})
        await here.add_node("b")
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        spec = {"selectors": [selector], "extendedResourceName": "example.com/gpu"}
        await here.add("resource.k8s.io/v1", "DeviceClass", "gpu", spec=spec)
        await add_group(here, "g", 2)
        amounts = {"requests": {"example.com/gpu": "2"}, "limits": {"example.com/gpu": "2"}}
        wanting = {"containers": [{"name": "c", "image": "i", "resources": amounts}], "nodeSelector": {"kind": "large"}}
        await add_member(here, "g", "p0", **wanting)
        await add_member(here, "g", "p1", nodeSelector={"kind": "small"})
        await here.settle(15)
        said = "for example.com/gpu: 1 of 1 device matches; 1 free; nearest node is a, short by 1 device."
        assert (await here.message("p0")).endswith(said), await here.message("p0")
        assert await here.message("p1") == await here.message("p0")


async def test_two_gangs_that_do_not_fit_together_run_one_after_the_other() -> None:
    async with scheduler_world() as here:
        for name in ("a", "b", "c"):
            await here.add_node(name, "gpu-0")
        await here.add_class()
        for name in ("g", "h"):
            await add_group(here, name, 2)
        for number in range(2):  # they come by turns
            for name in ("g", "h"):
                await here.add_claim(f"{name}-{number}")
                await add_member(here, name, f"{name}-{number}", f"{name}-{number}")
        await here.settle(5)
        of_g, of_h = await nodes(here, "g-0", "g-1"), await nodes(here, "h-0", "h-1")
        assert [all(of_g), any(of_h)] in ([True, False], [False, True])
        first = "g" if all(of_g) else "h"
        other = "h" if all(of_g) else "g"
        for number in range(2):
            await here.admin.delete(PODS, "default", f"{first}-{number}")
            await here.release(await here.claim(f"{first}-{number}"))
        await here.settle(15)
        assert all(await nodes(here, f"{other}-0", f"{other}-1"))


async def test_the_pods_of_a_group_may_have_to_be_in_one_domain() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0", labels={RACK: "1"})
        await here.add_node("b", "gpu-0", labels={RACK: "2"})
        await here.add_class()
        constraint = {"topology": [{"key": RACK}]}
        await add_gang(here, "g", 2, schedulingConstraints=constraint)
        await here.settle(2)
        assert await nodes(here, "g-0", "g-1") == ["", ""]
        assert f"1 fit on the nodes with {RACK}=1" in (await told(here, "g")).message
        await here.add_node("c", "gpu-0", labels={RACK: "2"})
        await here.settle(2)
        assert sorted(await nodes(here, "g-0", "g-1")) == ["b", "c"]


async def test_a_claim_that_pods_of_a_group_share_is_reserved_for_the_group() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await here.add_node("b", "gpu-0")
        await here.add_class()
        await here.add_claim("shared")
        await add_group(here, "g", 2, resourceClaims=[{"name": "shared", "resourceClaimName": "shared"}])
        for number in range(2):
            await add_member(here, "g", f"p{number}", "shared")
        await here.settle()
        assert len(set(await nodes(here, "p0", "p1"))) == 1
        [user] = (await here.claim("shared")).status.reserved_for
        assert (user.api_group, user.resource, user.name) == ("scheduling.k8s.io", "podgroups", "g")


@pytest.mark.parametrize("failing", ["update ResourceClaim/status", "post binding"])
async def test_what_cannot_be_stored_is_let_go_or_tried_again(failing: str) -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0", "gpu-1")
        await here.add_class()
        seen: list[str] = []

        def fail(write: str) -> ApiError | None:
            """The first write of its kind fails, and the others do not."""
            seen.append(write)
            is_first = write == failing and seen.count(write) == 1
            return ApiError(503, "ServiceUnavailable", "not now") if is_first else None

        here.client.fail = fail
        await add_gang(here, "g", 2)
        await here.settle(40)
        assert await nodes(here, "g-0", "g-1") == ["a", "a"]


async def test_what_a_gang_was_given_is_taken_while_it_is_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    reserve, go = GroupBinder.reserve, asyncio.Event()

    async def slow(binder: GroupBinder, placed: Placed, group: PodGroup | None) -> list[ResourceClaim]:
        await go.wait()
        return await reserve(binder, placed, group)

    monkeypatch.setattr(GroupBinder, "reserve", slow)
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0", "gpu-1")
        await here.add_class()
        await add_gang(here, "g", 2)
        await here.settle()
        await here.add_claim("c")
        await here.add_pod("p", "c")
        await here.settle()
        assert "cannot allocate all claims" in await here.message("p")
        go.set()
        await here.settle()
        assert await nodes(here, "g-0", "g-1", "p") == ["a", "a", ""]


async def test_who_comes_too_late_for_its_device_is_given_another() -> None:
    """Its group runs without it, and what an attempt before left to it is tainted."""
    async with scheduler_world() as here:
        tainted = {"name": "gpu-0", "taints": [{"key": "broken", "effect": "NoSchedule"}]}
        await here.add_node("a", tainted, "gpu-1", "gpu-2", "gpu-3")
        await here.add_class()
        await add_gang(here, "g", 2)
        await here.settle()
        await here.add_claim("late")
        devices = {"results": [{"request": "r", "driver": DRIVER, "pool": "a", "device": "gpu-0"}]}
        await here.admin.patch(CLAIMS, "default", "late", {"metadata": {"finalizers": [FINALIZER]}})
        await here.admin.patch(
            CLAIMS, "default", "late", {"status": {"allocation": {"devices": devices}}}, subresource="status"
        )
        await add_member(here, "g", "late", "late")
        for _ in range(12):
            await here.settle(10)
        assert await nodes(here, "g-0", "g-1", "late") == ["a", "a", "a"]
        allocation = (await here.claim("late")).status.allocation
        assert allocation is not None
        assert allocation.devices.results[0].device == "gpu-3"


async def test_a_basic_group_takes_what_fits() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        await add_group(here, "g", 0)
        for number in range(2):
            await here.add_claim(f"g-{number}")
            await add_member(here, "g", f"g-{number}", f"g-{number}")
        await here.settle(2)
        assert sorted(await nodes(here, "g-0", "g-1")) == ["", "a"]


async def test_pods_of_another_priority_do_not_go_together() -> None:
    async with scheduler_world() as here:
        await here.add_node("a")
        await here.add("scheduling.k8s.io/v1", "PriorityClass", "high", value=10)
        await add_group(here, "g", 1)
        await add_member(here, "g", "p", priorityClassName="high")
        await here.settle(2)
        assert await nodes(here, "p") == [""]
        assert "same priority as the pod group's priority, got 10 and 0" in await here.message("p")
        assert (await told(here, "g")).reason == "SchedulerError"


async def test_without_the_gate_pods_are_on_their_own() -> None:
    async with scheduler_world("GenericWorkload") as here:
        await here.add_node("a")
        await add_member(here, "g", "p")
        await here.settle()
        assert await nodes(here, "p") == ["a"]


async def test_a_group_that_goes_while_its_devices_are_written_gets_no_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    reserve = GroupBinder.reserve
    async with scheduler_world() as here:

        async def reserved(binder: GroupBinder, placed: Placed, group: PodGroup | None) -> list[ResourceClaim]:
            await here.admin.patch(POD_GROUPS, "default", "g", {"metadata": {"finalizers": None}})
            await here.admin.delete(POD_GROUPS, "default", "g")
            return await reserve(binder, placed, group)

        monkeypatch.setattr(GroupBinder, "reserve", reserved)
        await here.add_node("a", "gpu-0", "gpu-1")
        await here.add_class()
        await add_gang(here, "g", 2)
        await here.settle()
        assert await nodes(here, "g-0", "g-1") == ["", ""]
        monkeypatch.undo()
        await here.settle(90)
        assert await here.message("g-0") == 'waiting for pod group "g", which does not exist'
        claims = (await here.admin.list(CLAIMS, "default")).items
        assert [claim.status.allocation for claim in claims] == [None] * 2  # type: ignore[attr-defined]


async def add_class_of_priority(here: World, name: str, value: int, **more: Any) -> None:
    await here.add("scheduling.k8s.io/v1", "PriorityClass", name, value=value, **more)


async def left(here: World) -> list[str]:
    """The pods that were not made to go."""
    pods = (await here.admin.list(PODS, "default")).items
    return sorted(pod.metadata.name for pod in pods if pod.metadata.deletion_timestamp is None)


async def test_a_gang_makes_as_few_of_lower_priority_go_as_it_needs() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0", "gpu-1")
        await here.add_node("b", "gpu-0", "gpu-1")
        await here.add_class()
        await add_class_of_priority(here, "high", 100)
        for number in range(3):
            await here.add_claim(f"low-{number}")
            await here.add_pod(f"low-{number}", f"low-{number}")
        await here.settle()
        await add_group(here, "g", 2, priorityClassName="high")
        for number in range(2):
            await here.add_claim(f"g-{number}")
            await add_member(here, "g", f"g-{number}", f"g-{number}", priorityClassName="high")
        await here.settle(2)
        there = await left(here)
        assert len(there) == 4
        assert {"g-0", "g-1"} <= set(there)
        gone = ({"low-0", "low-1", "low-2"} - set(there)).pop()
        await here.admin.delete(PODS, "default", gone, DeleteOptions(grace_period_seconds=0))
        await here.settle(5)
        assert await left(here) == there  # its device is not free yet, and nobody else goes for that
        await here.release(await here.claim(gone))
        await here.settle(15)
        assert all(await nodes(here, "g-0", "g-1"))
        assert await left(here) == there


@pytest.mark.parametrize(("mode", "gone"), [("single", 1), ("all", 2)])
async def test_who_goes_for_a_pod_of_higher_priority_is_as_the_group_says(mode: str, gone: int) -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await here.add_node("b", "gpu-0")
        await here.add_class()
        await add_class_of_priority(here, "high", 100)
        await add_gang(here, "g", 2, disruptionMode={mode: {}})
        await here.settle()
        assert all(await nodes(here, "g-0", "g-1"))
        await here.add_claim("c")
        await here.add_pod("p", "c", priorityClassName="high")
        await here.settle(2)
        assert len(await left(here)) == 3 - gone
        group: Any = await here.admin.get(POD_GROUPS, "default", "g")
        assert (find_condition(group.status.conditions, DISRUPTION_TARGET) is not None) == (mode == "all")


async def test_a_gang_that_may_not_preempt_does_not() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        await add_class_of_priority(here, "polite", 100, preemptionPolicy="Never")
        await here.add_claim("low")
        await here.add_pod("low", "low")
        await here.settle()
        await add_group(here, "g", 1, priorityClassName="polite")
        await here.add_claim("g-0")
        await add_member(here, "g", "g-0", "g-0", priorityClassName="polite")
        await here.settle(2)
        assert await left(here) == ["g-0", "low"]
        assert "not eligible due to preemptionPolicy=Never" in await here.message("g-0")


async def test_a_gang_that_lost_a_pod_while_claims_were_written_does_not_begin_and_holds_nothing() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0", "gpu-1")
        await here.add_class()

        def lose(write: str) -> ApiError | None:
            """The first claim is written, and meanwhile one of the pods goes."""
            if write == "update ResourceClaim/status":
                here.scheduler._changes._on_pod(gone, None)
            return None

        await add_group(here, "g", 2)
        for number in range(2):
            await here.add_claim(f"g-{number}")
        await add_member(here, "g", "g-1", "g-1")
        await here.settle(2)
        gone = await here.pod("g-1")
        here.client.fail = lose
        await add_member(here, "g", "g-0", "g-0")
        await here.settle(1)
        assert await nodes(here, "g-0", "g-1") == ["", ""]
        assert "post binding" not in here.client.writes
        here.client.fail = lambda _write: None
        await here.admin.delete(PODS, "default", "g-1", DeleteOptions(grace_period_seconds=0))
        for _ in range(10):
            await here.settle(10)
        assert (await here.claim("g-0")).status.allocation is None  # that of g-1 is the claim controller's to release

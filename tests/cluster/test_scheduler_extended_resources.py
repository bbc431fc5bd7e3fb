"""Extended resources that are devices, on a real (in-memory) server: claims that a scheduler makes."""

from __future__ import annotations

from typing import Any

from dray.api.meta import DeleteOptions
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from scheduler_world import CLAIMS, DRIVER, NODES, PODS, World, scheduler_world

GPU = "example.com/gpu"


async def add_class(here: World) -> None:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    spec = {"selectors": [selector], "extendedResourceName": GPU}
    await here.add("resource.k8s.io/v1", "DeviceClass", "gpu", spec=spec)


async def add_pod(here: World, name: str, count: int = 1, **spec: Any) -> None:
    amounts = {"requests": {GPU: str(count)}, "limits": {GPU: str(count)}}
    await here.add_pod(name, containers=[{"name": "c", "image": "i", "resources": amounts}], **spec)


async def claims(here: World) -> list[ResourceClaim]:
    return [one for one in (await here.admin.list(CLAIMS)).items if isinstance(one, ResourceClaim)]


async def test_the_scheduler_makes_a_claim_and_says_so_before_it_binds() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0", "gpu-1")
        await add_class(here)
        await add_pod(here, "p", 2)
        await here.settle()
        pod = await here.pod("p")
        assert pod.spec.node_name == "a"
        [claim] = await claims(here)
        told = pod.status.extended_resource_claim_status
        assert told is not None
        assert told.resource_claim_name == claim.metadata.name
        [mapping] = told.request_mappings
        assert (mapping.container_name, mapping.resource_name, mapping.request_name) == (
            "c",
            GPU,
            "container-0-request-0",
        )
        assert claim.metadata.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
        assert [owner.uid for owner in claim.metadata.owner_references] == [pod.metadata.uid]
        assert [one.uid for one in claim.status.reserved_for] == [pod.metadata.uid]
        assert claim.status.allocation is not None
        assert len(claim.status.allocation.devices.results) == 2


async def test_a_class_that_comes_later_helps_a_pod_that_waits() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await add_pod(here, "p")
        await here.settle()
        assert await here.message("p") == "0/1 nodes are available: 1 Insufficient example.com/gpu."
        await add_class(here)
        await here.settle(12)
        assert (await here.pod("p")).spec.node_name == "a"
        await add_pod(here, "q")
        await here.settle()
        message = await here.message("q")
        assert 'Request "container-0-request-0" for example.com/gpu: 1 of 1 device matches; 1 in use' in message


async def test_a_device_plugin_needs_no_claim() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20", GPU: "1"}}
        await here.admin.patch(NODES, "", "a", {"status": status}, subresource="status")
        await add_class(here)
        await add_pod(here, "p")
        await here.settle()
        pod = await here.pod("p")
        assert (pod.spec.node_name, pod.status.extended_resource_claim_status) == ("a", None)
        assert await claims(here) == []


async def test_nothing_is_left_of_a_binding_that_is_refused() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await add_class(here)
        refusals = 2

        def refuse(write: str) -> ApiError | None:
            nonlocal refusals
            if write != "post binding" or not refusals:
                return None
            refusals -= 1
            return ApiError(500, "InternalError", "no")

        here.client.fail = refuse
        await add_pod(here, "p")
        await here.settle()
        assert refusals == 1
        assert await claims(here) == []
        await here.settle(15)
        assert (await here.pod("p")).spec.node_name == "a"
        [claim] = await claims(here)
        told = (await here.pod("p")).status.extended_resource_claim_status
        assert told is not None
        assert told.resource_claim_name == claim.metadata.name


async def test_a_claim_of_an_unanswered_attempt_is_used_or_removed() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await here.add_node("b", "gpu-0")
        await add_class(here)
        lost = 1

        def lose(write: str) -> ApiError | None:
            nonlocal lost
            if write != "post binding" or not lost:
                return None
            lost -= 1
            raise TimeoutError

        here.client.fail = lose
        await add_pod(here, "p")
        await here.settle()
        [claim] = await claims(here)
        assert claim.status.allocation is not None
        assert not (await here.pod("p")).spec.node_name
        # The node of its devices takes no pods now: the claim has to go first.
        [taken] = {one.pool for one in claim.status.allocation.devices.results}
        await here.admin.patch(NODES, "", taken, {"spec": {"unschedulable": True}})
        await here.settle(60)
        await here.settle(60)
        assert (await here.pod("p")).spec.node_name == ({"a", "b"} - {taken}).pop()
        [anew] = await claims(here)
        assert anew.metadata.uid != claim.metadata.uid


async def test_a_gate_turns_it_off() -> None:
    async with scheduler_world("DRAExtendedResource") as here:
        await here.add_node("a", "gpu-0")
        await add_class(here)
        await add_pod(here, "p")
        await here.settle()
        assert "Insufficient example.com/gpu" in await here.message("p")


async def test_a_pod_that_goes_leaves_devices_to_the_next() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await add_class(here)
        await add_pod(here, "first")
        await here.settle()
        await add_pod(here, "second")
        await here.settle()
        await here.admin.delete(PODS, "default", "first", DeleteOptions(grace_period_seconds=0))
        [claim] = await claims(here)
        await here.release(claim)
        await here.settle(12)
        assert (await here.pod("second")).spec.node_name == "a"

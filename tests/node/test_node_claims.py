"""Claims of pods are prepared before they run and unprepared after the last one, over real Unix sockets."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import grpc
import pytest

from dray.node.runtime.none import NoRuntime
from dray.plugins.generated import dra_v1_pb2 as dra
from node_world import CLAIMS, NODE, NodeWorld, local_world
from scripted_driver import device


def cdi_ids(world: NodeWorld, uid: str, container: str = "main") -> tuple[str, ...]:
    """The CDI devices with which a container was started."""
    assert isinstance(world.runtime, NoRuntime)
    return world.runtime.orders[uid, container].cdi_ids


@pytest.mark.req("4381-151", "4381-156", "4381-160", "4381-162", "5055-84", "4381-224")
async def test_a_pod_runs_after_its_claim_is_prepared_and_goes_after_it_is_unprepared() -> None:
    async with local_world() as world:
        driver = await world.driver()
        seen: list[dra.Claim] = []

        async def prepare(request: dra.NodePrepareResourcesRequest) -> dra.NodePrepareResourcesResponse:
            seen.extend(request.claims)
            pod = await world.get("p")
            assert pod is not None
            assert pod.status.phase == "Pending"
            return await driver.prepare_well(request)

        driver.prepare = prepare
        claim = await world.claim("c", "gpu-0")
        pod = await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        assert [(one.namespace, one.uid, one.name) for one in seen] == [("default", claim.metadata.uid, "c")]
        assert cdi_ids(world, pod.metadata.uid) == ("example.com/gpu=gpu-0",)
        assert driver.held == {claim.metadata.uid}
        await world.delete("p")
        await world.gone("p")
        assert driver.unprepared == [["c"]]
        assert len(world.agent.book) == 0


@pytest.mark.req("4381-156")
async def test_pods_that_share_a_claim_have_it_prepared_once_and_unprepared_after_the_last() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await world.claim("c", "gpu-0")
        pods = [await world.pod(f"p{number}", claims=["c"], bind=False) for number in range(5)]
        await asyncio.gather(*(world.bind(pod.metadata.name) for pod in pods))
        for pod in pods:
            await world.phase(pod.metadata.name, "Running")
            assert cdi_ids(world, pod.metadata.uid) == ("example.com/gpu=gpu-0",)
        assert driver.prepared == [["c"]]
        for pod in pods[:-1]:
            await world.delete(pod.metadata.name)
            await world.gone(pod.metadata.name)
        assert driver.unprepared == []
        await world.delete("p4")
        await world.gone("p4")
        assert driver.unprepared == [["c"]]


@pytest.mark.req("4381-176", "4381-194")
async def test_a_claim_with_devices_of_two_drivers_is_prepared_by_both() -> None:
    async with local_world() as world:
        first, second = await world.driver("a.example.com"), await world.driver("b.example.com")
        first.devices["c"] = [device("a-0", "one", cdi="a.example.com/x=a-0")]
        second.devices["c"] = [device("b-0", "two", cdi="b.example.com/x=b-0")]
        claim = await world.claim("c", one=(), two=())
        await world.allocate(
            claim,
            [
                {"request": "one", "driver": "a.example.com", "pool": "node-1", "device": "a-0"},
                {"request": "two", "driver": "b.example.com", "pool": "node-1", "device": "b-0"},
            ],
        )
        pod = await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        assert (first.held, second.held) == ({claim.metadata.uid}, {claim.metadata.uid})
        assert set(cdi_ids(world, pod.metadata.uid)) == {"a.example.com/x=a-0", "b.example.com/x=b-0"}
        page = world.metrics()
        for name in ("a.example.com", "b.example.com", "<any>"):
            assert f'dra_resource_claims_in_use{{driver_name="{name}"}} 1.0' in page


@pytest.mark.req("4381-169", "4381-74")
async def test_a_container_gets_only_the_devices_of_the_requests_that_it_names() -> None:
    async with local_world() as world:
        driver = await world.driver()
        driver.devices["c"] = [
            device("gpu-0", "one"),
            device("gpu-1", "two/second-choice"),
            dra.Device(pool_name="node-1", device_name="gpu-2", cdi_device_ids=["example.com/gpu=all"]),
            dra.Device(pool_name="node-1", device_name="gpu-3", request_names=["one"]),
        ]
        await world.claim("c", one=("gpu-0", "gpu-2", "gpu-3"), two="gpu-1")
        containers = [
            {"name": "one", "resources": {"claims": [{"name": "c", "request": "one"}]}, "image": "x"},
            {"name": "two", "resources": {"claims": [{"name": "c", "request": "two"}]}, "image": "x"},
            {"name": "both", "resources": {"claims": [{"name": "c"}]}, "image": "x"},
            {"name": "neither", "image": "x"},
        ]
        pod = await world.pod("p", claims=["c"], containers=containers)
        await world.phase("p", "Running")
        got = {name: cdi_ids(world, pod.metadata.uid, name) for name in ("one", "two", "both", "neither")}
        assert got == {
            "one": ("example.com/gpu=gpu-0", "example.com/gpu=all"),
            "two": ("example.com/gpu=gpu-1", "example.com/gpu=all"),
            "both": ("example.com/gpu=gpu-0", "example.com/gpu=gpu-1", "example.com/gpu=all"),
            "neither": (),
        }


@pytest.mark.req("4381-157", "4381-209", "4381-215", "4381-223", "4381-233")
@pytest.mark.parametrize(
    ("flaw", "why"),
    [
        ("missing", 'ResourceClaim c: resourceclaims.resource.k8s.io "c" not found'),
        ("unallocated", "ResourceClaim c is not allocated"),
        ("unreserved", "is not allowed to use ResourceClaim c"),
    ],
)
async def test_a_pod_whose_claim_is_not_its_own_does_not_run_until_it_is(flaw: str, why: str) -> None:
    async with local_world() as world:
        driver = await world.driver()
        if flaw != "missing":
            await world.claim("c", *(() if flaw == "unallocated" else ("gpu-0",)))
        pod = await world.pod("p", claims=["c"], reserve=False)
        assert why in await world.event("FailedPrepareDynamicResources", why)
        waiting = await world.get("p")
        assert waiting is not None
        assert waiting.status.phase == "Pending"
        assert driver.prepared == []
        if flaw == "missing":
            await world.claim("c", "gpu-0")
        elif flaw == "unallocated":
            claim = await world.admin.get(CLAIMS, "default", "c")
            result = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
            await world.allocate(claim, [result])  # type: ignore[arg-type]
        await world.reserve("c", pod)
        await world.phase("p", "Running")


@pytest.mark.req("4381-157")
async def test_a_refused_pod_can_be_deleted_although_its_driver_never_was_here() -> None:
    async with local_world() as world:
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        message = await world.event("FailedPrepareDynamicResources", "not registered")
        assert message.endswith("DRA driver gpu.example.com is not registered")
        await world.delete("p")
        await world.gone("p")
        assert len(world.agent.book) == 0


@pytest.mark.req("4381-158", "4381-159", "4381-172", "4381-173", "4381-239")
async def test_a_pod_stays_while_its_claim_cannot_be_unprepared() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        driver.unprepare_error = "the bus is busy"
        await world.delete("p")
        assert "the bus is busy" in await world.event("FailedUnprepareDynamicResources", "busy")
        await world.until(lambda: len(driver.unprepared) >= 3)
        pod = await world.get("p")
        assert pod is not None
        assert (pod.metadata.deletion_timestamp is not None, pod.status.phase) == (True, "Running")
        driver.unprepare_error = ""
        await world.gone("p")
        assert not driver.held


@pytest.mark.req("4381-260")
async def test_a_claim_that_its_driver_does_not_know_any_more_is_asked_for_until_it_is_well() -> None:
    """NOT_FOUND may mean that there is nothing to undo, or that the driver looked in the wrong place."""
    async with local_world() as world:
        driver = await world.driver()
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        driver.unprepare_code = grpc.StatusCode.NOT_FOUND
        await world.delete("p")
        await world.event("FailedUnprepareDynamicResources", "NOT_FOUND")
        await world.until(lambda: len(driver.unprepared) >= 3)
        assert await world.get("p") is not None
        driver.unprepare_code = grpc.StatusCode.OK
        await world.gone("p")


@pytest.mark.req("4381-173", "SVS-55")
async def test_a_claim_that_is_missing_in_the_answer_is_not_unprepared() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        driver.unprepare_forgets = True
        await world.delete("p")
        await world.event("FailedUnprepareDynamicResources", "c")
        await world.until(lambda: len(driver.unprepared) >= 2)
        assert await world.get("p") is not None
        driver.unprepare_forgets = False
        await world.gone("p")
        assert not driver.held


@pytest.mark.req("4381-159")
async def test_a_driver_that_is_removed_while_in_use_holds_its_pods_until_it_is_back() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        await driver.stop()
        await world.delete("p")
        await world.event("FailedUnprepareDynamicResources", "gpu.example.com")
        retries = 'dra_operations_seconds_count{driver_name="gpu.example.com",grpc_status_code="Unavailable"'
        await world.until(lambda: f'{retries},method_name="NodeUnprepareResources"}}' in _sorted(world))
        assert await world.get("p") is not None
        await driver.start()
        await world.gone("p")
        assert driver.unprepared == [["c"]]


def _sorted(world: NodeWorld) -> str:
    """The metrics with the labels of each in order."""
    lines = []
    for line in world.metrics().splitlines():
        name, brace, rest = line.partition("{")
        labels, end, value = rest.partition("}")
        lines.append(f"{name}{brace}{','.join(sorted(labels.split(',')))}{end}{value}" if brace else line)
    return "\n".join(lines)


@pytest.mark.req("4381-172")
async def test_a_pod_that_ends_by_itself_is_unprepared_before_it_counts_as_ended_and_only_once() -> None:
    async with local_world() as world:
        driver = await world.driver()
        claim = await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        driver.unprepare_error = "not yet"
        assert isinstance(world.runtime, NoRuntime)
        for running in list(world.runtime._exits):
            world.runtime.end(running, 0)
        await world.event("FailedUnprepareDynamicResources", "not yet")
        pod = await world.get("p")
        assert pod is not None
        assert pod.status.phase == "Running"
        driver.unprepare_error = ""
        await world.phase("p", "Succeeded")
        assert claim.metadata.uid not in driver.held
        calls = len(driver.unprepared)
        await world.delete("p")
        await world.gone("p")
        assert len(driver.unprepared) == calls


async def test_skipped_node_operations_need_no_driver() -> None:
    async with local_world() as world:
        claim = await world.claim("c")
        result = {"request": "gpu", "driver": "virtual.example.com", "pool": "p", "device": "d"}
        await world.allocate(claim, [{**result, "skipNodeOperations": ["*"]}])  # type: ignore[dict-item]
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        await world.delete("p")
        await world.gone("p")
        page = world.metrics()
        assert 'dra_node_prepare_skips_total{driver_name="virtual.example.com"} 1.0' in page
        assert 'dra_node_unprepare_skips_total{driver_name="virtual.example.com"} 1.0' in page


async def test_a_pod_that_was_given_the_node_by_whoever_made_it_runs_only_if_there_is_room() -> None:
    cpus = os.cpu_count() or 1

    def container(amount: int) -> list[dict[str, Any]]:
        return [{"name": "main", "image": "none", "resources": {"requests": {"cpu": str(amount)}}}]

    async with local_world() as world:
        await world.pod("first", containers=container(cpus))
        await world.phase("first", "Running")
        await world.pod("second", nodeName=NODE, bind=False, containers=container(1))
        refused = await world.phase("second", "Failed")
        assert refused.status.reason == "OutOfcpu"
        assert not refused.status.container_statuses[0].state.running
        await world.delete("first", grace=0)
        await world.gone("first")
        await world.pod("third", nodeName=NODE, bind=False, containers=container(cpus))
        await world.phase("third", "Running")

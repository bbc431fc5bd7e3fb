"""Drivers that misbehave, and a server or disk that is not there: clear events, nothing runs that must not, and all is
well again once the fault is gone."""

from __future__ import annotations

import asyncio
import errno
import itertools
import time
from collections.abc import Awaitable, Callable

import grpc
import pytest
from msgspec.structs import replace

import builders
from dray.api.generated.core import ContainerStateWaiting, Pod
from dray.files import Directory
from dray.node import checkpoint
from dray.node.checkpoint import State
from dray.node.runtime import Order, Running, StartFailed
from dray.node.runtime.interface import OnExit
from dray.plugins.generated import dra_v1_pb2 as dra
from dray.server.admission import most_stored
from local_server import LocalServer
from node_world import CLAIMS, local_world
from patience import eventually_async
from process_world import process_world
from scripted_driver import ScriptedDriver, device

Bad = Callable[[dra.NodePrepareResourcesRequest], Awaitable[dra.NodePrepareResourcesResponse]]
Response = dra.NodePrepareResourcesResponse


def answering(make: Callable[[str], dict[str, dra.NodePrepareResourceResponse]]) -> Bad:
    """Answers for a claim (by uid) with whatever `make` makes of it."""

    async def prepare(request: dra.NodePrepareResourcesRequest) -> Response:
        return Response(claims=make(request.claims[0].uid))

    return prepare


async def fails(_request: dra.NodePrepareResourcesRequest) -> Response:
    raise RuntimeError("boom")


def of(*devices: dra.Device, error: str = "") -> dra.NodePrepareResourceResponse:
    return dra.NodePrepareResourceResponse(devices=devices, error=error)


BAD_ANSWERS: dict[str, tuple[Bad, str]] = {
    "an error for the claim": (
        answering(lambda uid: {uid: of(device("gpu-0"), error="device fell off the bus")}),
        "NodePrepareResources failed for ResourceClaim c: device fell off the bus",
    ),
    "an error for the call": (fails, "NodePrepareResources of driver gpu.example.com: UNKNOWN"),
    "no entry": (answering(lambda _: {}), "skipped ResourceClaim c"),
    "the wrong claim": (answering(lambda _: {"other": of(device("gpu-0"))}), "unknown claim UID 'other'"),
    "one claim too many": (
        answering(lambda uid: {uid: of(device("gpu-0")), "other": of()}),
        "unknown claim UID 'other'",
    ),
    "another device": (
        answering(lambda uid: {uid: of(device("gpu-7"))}),
        "device 'gpu-7' of pool 'node-1' is not allocated to it",
    ),
    "one device too many": (
        answering(lambda uid: {uid: of(device("gpu-0"), device("gpu-1"))}),
        "device 'gpu-1' of pool 'node-1' is not allocated",
    ),
    "another pool": (answering(lambda uid: {uid: of(device("gpu-0", pool="node-2"))}), "of pool 'node-2'"),
    "another request": (answering(lambda uid: {uid: of(device("gpu-0", "tpu"))}), "is for request 'tpu'"),
    "a bad CDI id": (answering(lambda uid: {uid: of(device("gpu-0", cdi="/dev/nvidia0"))}), "is not qualified"),
    "a CDI device of another vendor": (
        answering(lambda uid: {uid: of(device("gpu-0", cdi="other.example.com/gpu=0"))}),
        "--cdi-vendor gpu.example.com=other.example.com would allow it",
    ),
    "too many CDI ids": (
        answering(
            lambda uid: {
                uid: of(
                    dra.Device(pool_name="node-1", device_name="gpu-0", cdi_device_ids=["example.com/gpu=a"] * 1000)
                )
            }
        ),
        "more than 256 CDI devices",
    ),
}


@pytest.mark.req("4381-165", "4381-167", "4381-168", "4381-170", "4381-171", "4381-223", "4381-261", "4381-239")
@pytest.mark.parametrize("fault", BAD_ANSWERS)
async def test_a_bad_answer_is_told_not_used_and_asked_for_again(fault: str) -> None:
    prepare, why = BAD_ANSWERS[fault]

    async with local_world() as world:
        driver = await world.driver()
        driver.prepare = prepare
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        message = await world.event("FailedPrepareDynamicResources", why)
        assert message.startswith("Failed to prepare dynamic resources: prepare dynamic resources: ")
        pod = await world.get("p")
        assert pod is not None
        assert pod.status.phase == "Pending"
        await world.until(lambda: len(driver.prepared) >= 2)
        driver.prepare = driver.prepare_well
        await world.phase("p", "Running")


@pytest.mark.parametrize("fault", ["error", "details", "hook"])
async def test_what_a_driver_says_cannot_do_anything_to_a_terminal(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    evil, shown = "\x1b[2J\x9b31m all\r\nis well \u202e", "\\x1b[2J\\x9b31m all\\r\\nis well \\u202e"

    async def refuse(_request: dra.NodePrepareResourcesRequest) -> Response:
        raise RuntimeError(evil)

    async def fail_to_start(_order: Order, _on_exit: OnExit) -> Running:
        raise StartFailed("CreateContainerError", f"hook: {evil}")

    async with local_world() as world:
        driver = await world.driver()
        driver.prepare = refuse if fault == "details" else answering(lambda uid: {uid: of(error=evil)})
        if fault == "hook":
            driver.prepare = driver.prepare_well
            monkeypatch.setattr(world.runtime, "start", fail_to_start)
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        reason = "Failed" if fault == "hook" else "FailedPrepareDynamicResources"
        message = await world.event(reason, "all")
        assert message.isprintable()
        if fault != "details":  # gRPC escapes some of it itself
            assert shown in message
        pod = await world.get("p")
        assert pod is not None
        waiting = [one.state.waiting.message for one in pod.status.container_statuses if one.state.waiting]
        assert all(text.isprintable() for text in waiting)


@pytest.mark.req("4381-167", "4381-170")
async def test_only_what_is_missing_is_asked_for_again_and_later_and_later() -> None:
    async with local_world() as world:
        driver = await world.driver()
        moments: list[float] = []

        async def prepare(request: dra.NodePrepareResourcesRequest) -> Response:
            moments.append(time.monotonic())
            answer = await driver.prepare_well(request)
            if len(moments) < 4:
                del answer.claims[next(one.uid for one in request.claims if one.name == "c2")]
            return answer

        driver.prepare = prepare
        await world.claim("c1", "gpu-0")
        await world.claim("c2", "gpu-1")
        await world.pod("p", claims=["c1", "c2"])
        await world.phase("p", "Running")
        assert [sorted(names) for names in driver.prepared] == [["c1", "c2"], ["c2"], ["c2"], ["c2"]]
        pauses = [after - before for before, after in itertools.pairwise(moments)]
        assert pauses[0] >= 0.2
        assert pauses[2] >= 0.9  # twice as long each time


@pytest.mark.req("SVS-55")
async def test_a_driver_that_hangs_is_given_up_after_a_time_and_holds_up_no_others() -> None:
    async with local_world(started=False) as world:
        world.settings = replace(world.settings, call_seconds=0.5)
        await world.start()
        hanging, good = await world.driver(), await world.driver("good.example.com")
        release = asyncio.Event()

        async def prepare(request: dra.NodePrepareResourcesRequest) -> Response:
            await release.wait()
            return await hanging.prepare_well(request)

        hanging.prepare = prepare
        for number in range(20):
            await world.claim(f"stuck-{number}", f"gpu-{number}")
            await world.pod(f"stuck-{number}", claims=[f"stuck-{number}"])
        await world.claim("fine", "x-0", driver=good.name)
        await world.pod("fine", claims=["fine"])
        await world.phase("fine", "Running")
        await world.event("FailedPrepareDynamicResources", "DEADLINE_EXCEEDED")
        release.set()
        for number in range(20):
            await world.phase(f"stuck-{number}", "Running")


async def test_a_driver_that_crashes_in_the_middle_of_a_call_is_asked_again_when_it_is_back() -> None:
    async with local_world() as world:
        driver = await world.driver()

        async def crash(_request: dra.NodePrepareResourcesRequest) -> Response:
            asyncio.get_running_loop().create_task(driver.stop(leave_sockets=True))
            await asyncio.sleep(30)
            raise AssertionError("unreachable")

        driver.prepare = crash
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.event("FailedPrepareDynamicResources", "gpu.example.com")
        driver.prepare = driver.prepare_well
        await driver.start()
        await world.phase("p", "Running")


async def test_an_answer_that_is_no_protobuf_is_an_error_like_any_other() -> None:
    async with local_world() as world:
        driver = await world.driver()
        good = driver._dra

        def garbage() -> list[object]:
            handler = grpc.unary_unary_rpc_method_handler(
                _garbage, request_deserializer=bytes, response_serializer=bytes
            )
            return [one._replace(handler=handler) for one in good()]

        await driver.stop()
        driver._dra = garbage  # type: ignore[method-assign,assignment]
        await driver.start()
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.event("FailedPrepareDynamicResources", "NodePrepareResources of driver gpu.example.com: INTERNAL")
        await driver.stop()
        driver._dra = good  # type: ignore[method-assign]
        await driver.start()
        await world.phase("p", "Running")


async def _garbage(_request: bytes, _context: object) -> bytes:
    return b"\xff\xff\xff\xff garbage \x00"


@pytest.mark.req("4381-132", "4381-159", "4381-172")
async def test_a_driver_that_vanished_with_claims_prepared_is_asked_to_unprepare_when_it_is_back() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        await driver.stop(leave_sockets=True)
        await world.delete("p", grace=0)  # force: the object is gone at once
        await world.gone("p")
        await world.until(lambda: any(one.unpreparing for one in world.agent.book))
        back = ScriptedDriver(world.root)
        await world.start_driver(back)
        await world.until(lambda: back.unprepared == [["c"]])
        await world.until(lambda: len(world.agent.book) == 0)


@pytest.mark.req("4381-132")
async def test_a_claim_that_was_forced_away_is_unprepared_from_what_the_agent_remembers() -> None:
    async with local_world() as world:
        driver = await world.driver()
        claim = await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        await world.admin.patch(CLAIMS, "default", "c", {"metadata": {"finalizers": None}})
        await world.admin.delete(CLAIMS, "default", "c")
        await world.delete("p")
        await world.gone("p")
        assert driver.unprepared == [["c"]]
        assert claim.metadata.uid not in driver.held


async def test_a_full_disk_keeps_pods_waiting_and_nothing_is_prepared_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = True
    written = checkpoint._replace

    def replace_file(root: Directory, state: State) -> None:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        written(root, state)

    monkeypatch.setattr(checkpoint, "_replace", replace_file)

    async with local_world() as world:
        driver = await world.driver()
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.event("FailedPrepareDynamicResources", "No space left on device")
        assert driver.prepared == []
        assert len(world.agent.book) == 0
        full = False
        await world.phase("p", "Running")
        full = True
        await world.delete("p")
        await world.event("FailedUnprepareDynamicResources", "No space left on device")
        assert await world.get("p") is not None
        full = False
        await world.gone("p")
        assert not driver.held


@pytest.mark.req("4381-227")
async def test_without_the_server_running_pods_go_on_and_containers_restart() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"], restartPolicy="Always")
        running = await world.phase("p", "Running")
        away = _Away(world.server)
        away.begin()
        orders = world.runtime.orders  # type: ignore[attr-defined]
        orders.clear()
        for one in list(world.runtime._exits):  # type: ignore[attr-defined]
            world.runtime.end(one, 1)  # type: ignore[attr-defined]
        await world.until(lambda: bool(orders))
        assert orders[running.metadata.uid, "main"].cdi_ids == ("example.com/gpu=gpu-0",)
        assert driver.prepared == [["c"]]
        away.end()

        async def is_reported() -> bool:
            pod = await world.get("p")
            return pod is not None and pod.status.container_statuses[0].restart_count == 1

        await eventually_async(is_reported, "the restart was never reported")


class _Away:
    """Makes every write and read of the node fail as if nobody listened."""

    def __init__(self, server: LocalServer) -> None:
        self._engine = server.engine
        self._store = server.engine.store

    def begin(self) -> None:
        def unreachable(*_arguments: object, **_options: object) -> object:
            raise ConnectionError("connection refused")

        self._engine.store = _Broken(unreachable)  # type: ignore[assignment]

    def end(self) -> None:
        self._engine.store = self._store


class _Broken:
    """A store of which everything fails."""

    def __init__(self, failure: Callable[..., object]) -> None:
        self._failure = failure

    def __getattr__(self, _name: str) -> Callable[..., object]:
        return self._failure


async def test_pods_of_the_same_name_are_told_apart() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await world.claim("c", "gpu-0")
        first = await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        driver.unprepare_error = "busy"
        await world.delete("p", grace=0)
        second = await world.pod("p", claims=["c"])
        await world.event("FailedPrepareDynamicResources", "is being unprepared")
        driver.unprepare_error = ""
        await world.phase("p", "Running")
        assert first.metadata.uid != second.metadata.uid
        assert [record.pods for record in world.agent.book] == [(second.metadata.uid,)]


async def test_a_large_pod_runs_and_ends_and_goes_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others wrote of it is not the node's; and what would be too long to tell of its containers is left out."""
    monkeypatch.setattr(most_stored, "MOST_OF_NODE_OBJECT", 64 * 1024)
    async with local_world() as world:
        for name, count, size in (("long", 1, 200_000), ("many", 500, 10)):
            containers = [builders.container(f"c{number}", args=["x" * size]) for number in range(count)]
            await world.pod(name, containers=containers)
            running = await world.phase(name, "Running")
            assert len(running.status.container_statuses) == (count if name == "long" else 0)
            await world.delete(name, grace=1)
            await world.gone(name)


async def test_why_a_container_does_not_start_is_told_in_short() -> None:
    """A command may have megabytes, and what a node writes of a pod may not."""
    async with process_world() as world:
        await world.pod("p", containers=[{"name": "main", "image": "none", "command": ["x" * 900_000]}])
        await world.event("Failed", "xxx")
        await world.until(lambda: any(told(pod) for pod in world.agent._pods))
        (waiting,) = [told(pod) for pod in world.agent._pods]
        assert waiting is not None
        assert (waiting.reason, len(waiting.message)) == ("RunContainerError", 1024)


def told(pod: Pod) -> ContainerStateWaiting | None:
    """What a pod says of why its container waits."""
    return next((one.state.waiting for one in pod.status.container_statuses), None)

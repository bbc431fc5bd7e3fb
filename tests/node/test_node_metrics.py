"""The numbers and health pages of the agent."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request

import grpc
import pytest
from msgspec.structs import replace

from dray.node.agent import AgentError
from dray.node.runtime.none import NoRuntime
from node_world import NodeWorld, local_world
from patience import PATIENCE


def fetch(world: NodeWorld, path: str, method: str = "GET") -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{world.agent.metrics_port}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def value(page: str, name: str, **labels: str) -> float:
    """The one sample of a metric with these labels."""
    found = [
        float(line.rpartition(" ")[2])
        for line in page.splitlines()
        if line.split("{")[0] == name and all(f'{label}="{text}"' in line for label, text in labels.items())
    ]
    assert len(found) == 1, (name, labels, page)
    return found[0]


@pytest.mark.req("4381-193", "4381-194", "4381-257", "SVS-57")
async def test_calls_operations_and_claims_in_use_are_counted_under_both_names() -> None:
    async with local_world(started=False) as world:
        world.settings = replace(world.settings, metrics_port=0)
        await world.start()
        driver = await world.driver()
        driver.unprepare_error = "busy"
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        code, page = await asyncio.to_thread(fetch, world, "/metrics")
        assert code == 200
        prepared = {"driver_name": driver.name, "method_name": "NodePrepareResources", "grpc_status_code": "OK"}
        assert value(page, "dra_operations_seconds_count", **prepared) == 1
        assert value(page, "dra_grpc_operations_duration_seconds_count", **prepared) == 1
        operated = {"operation_name": "PrepareResources", "is_error": "false"}
        assert value(page, "dra_operations_duration_seconds_count", **operated) == 1
        assert "# TYPE dra_resource_claims_in_use gauge" in page
        assert "# TYPE dra_operations_seconds histogram" in page
        assert value(page, "dra_resource_claims_in_use", driver_name=driver.name) == 1
        assert value(page, "dra_resource_claims_in_use", driver_name="<any>") == 1
        await world.delete("p")
        await world.event("FailedUnprepareDynamicResources", "busy")
        driver.unprepare_error, driver.unprepare_code = "", grpc.StatusCode.NOT_FOUND
        await world.event("FailedUnprepareDynamicResources", "no such claim")
        driver.unprepare_code = grpc.StatusCode.OK
        await world.gone("p")
        page = world.metrics()
        for result in ("OK", "NotFound"):
            unprepared = prepared | {"method_name": "NodeUnprepareResources", "grpc_status_code": result}
            assert value(page, "dra_operations_seconds_count", **unprepared) >= 1
        operated = {"operation_name": "UnprepareResources", "is_error": "true"}
        assert value(page, "dra_operations_duration_seconds_count", **operated) >= 1
        assert value(page, "dra_resource_claims_in_use", driver_name="<any>") == 0


@pytest.mark.req("4381-198")
async def test_no_call_fails_when_nothing_is_wrong() -> None:
    async with local_world() as world:
        driver = await world.driver()
        for number in range(20):
            await world.claim(f"c{number}", f"gpu-{number}")
            await world.pod(f"p{number}", claims=[f"c{number}"])
        for number in range(20):
            await world.phase(f"p{number}", "Running")
            await world.delete(f"p{number}")
        for number in range(20):
            await world.gone(f"p{number}")
        page = world.metrics()
        codes = {
            line.split('grpc_status_code="')[1].split('"')[0] for line in page.splitlines() if "grpc_status" in line
        }
        assert codes == {"OK"}
        assert not driver.held


@pytest.mark.req("4381-225")
async def test_a_driver_that_is_gone_shows_in_pod_and_numbers_until_it_is_back() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        await driver.stop()
        assert isinstance(world.runtime, NoRuntime)
        for container in list(world.runtime._exits):
            world.runtime.end(container, 0)
        await world.event("FailedUnprepareDynamicResources", driver.name)
        pod = await world.get("p")
        assert pod is not None
        assert pod.status.phase == "Running"
        page = world.metrics()
        assert value(page, "dra_resource_claims_in_use", driver_name=driver.name) == 1
        failing = {"driver_name": driver.name, "method_name": "NodeUnprepareResources"}
        assert value(page, "dra_operations_seconds_count", **failing, grpc_status_code="Unavailable") >= 1
        await driver.start()
        await world.phase("p", "Succeeded")
        assert value(world.metrics(), "dra_resource_claims_in_use", driver_name="<any>") == 0


@pytest.mark.req("implied-15")
async def test_health_pages() -> None:
    async with local_world(started=False) as world:
        world.settings = replace(world.settings, metrics_port=0)
        await world.start()
        for path in ("/healthz", "/livez", "/readyz"):
            code, page = await asyncio.to_thread(fetch, world, path)
            assert (code, page.strip()) == (200, "ok")
        assert (await asyncio.to_thread(fetch, world, "/nothing"))[0] == 404
        assert (await asyncio.to_thread(fetch, world, "/metrics", "POST"))[0] == 405
        world.agent.ready.clear()
        code, page = await asyncio.to_thread(fetch, world, "/readyz")
        assert code in (500, 503)
        assert "pods" in page


async def test_a_port_that_is_taken_is_named() -> None:
    async with local_world(started=False) as world:
        server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        world.settings = replace(world.settings, metrics_port=port)
        with pytest.raises(AgentError, match=f"cannot serve metrics on 127.0.0.1:{port}.*--metrics-port"):
            await world.start()
        server.close()
        await server.wait_closed()

"""The node agent: how fast claims are prepared and pods run, and what the agent costs while nothing happens.

API server, agent and load are processes of their own on one machine; the driver does nothing, in the load's process,
which also plays the scheduler: `python -m bench node` prints the figures. The limits that they should reach are in
`LIMITS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc.aio
import uvloop
from bench._process import Dray, cpu_seconds

from dray.api import codec
from dray.api.generated.core import Pod
from dray.api.meta import Object
from dray.api.registry import by_kind
from dray.client import Informer
from dray.client.http import HttpClient
from dray.client.kubeconfig import load_kubeconfig
from dray.plugins import contracts, unix
from dray.plugins.generated import dra_v1_pb2 as dra
from dray.plugins.generated import registration_pb2 as registration

NODE = "bench-node"
DRIVER = "noop.example.com"
PODS = by_kind("v1", "Pod")
CLAIMS = by_kind("resource.k8s.io/v1", "ResourceClaim")
BURST = 500
ONE_BY_ONE = 60
IDLE_SECONDS = 10.0
PATIENCE = 120.0

LIMITS = {
    "bind_to_running_p50_ms": 50,
    "prepare_to_running_p50_ms": 50,
    "process_prepare_to_running_p50_ms": 50,
    "pods_per_second_500": 200,
    "idle_memory_mib": 60,
    "idle_cpu_percent": 0.5,
}


class Driver:
    """Prepares at once; device `x` of a claim `x`."""

    def __init__(self, root: Path) -> None:
        self._registry = root / "plugins_registry" / f"{DRIVER}-reg.sock"
        self._endpoint = root / "plugins" / DRIVER / "dra.sock"
        self._servers: list[grpc.aio.Server] = []
        self.asked: dict[str, float] = {}
        self.registered = asyncio.Event()

    async def start(self) -> None:
        """Listens, and waits to be registered."""
        self._endpoint.parent.mkdir(parents=True, exist_ok=True)
        version = "v1.DRAPlugin"
        calls = contracts.services(
            contracts.answer(contracts.PREPARE[version], self._prepare),
            contracts.answer(contracts.UNPREPARE[version], self._unprepare),
        )
        self._servers.append(await unix.listen(self._endpoint, calls))
        info = registration.PluginInfo(
            type="DRAPlugin", name=DRIVER, endpoint=str(self._endpoint), supported_versions=[version]
        )

        async def get_info(_request: Any, _context: Any) -> registration.PluginInfo:
            return info

        async def notify(_request: Any, _context: Any) -> registration.RegistrationStatusResponse:
            self.registered.set()
            return registration.RegistrationStatusResponse()

        handlers = contracts.services(
            contracts.answer(contracts.GET_INFO, get_info), contracts.answer(contracts.NOTIFY, notify)
        )
        self._servers.append(await unix.listen(self._registry, handlers))
        async with asyncio.timeout(PATIENCE):
            await self.registered.wait()

    async def stop(self) -> None:
        """Ends."""
        for server in self._servers:
            await server.stop(None)

    async def _prepare(
        self, request: dra.NodePrepareResourcesRequest, _context: grpc.aio.ServicerContext
    ) -> dra.NodePrepareResourcesResponse:
        for claim in request.claims:
            self.asked[claim.name] = time.perf_counter()
        return dra.NodePrepareResourcesResponse(
            claims={
                claim.uid: dra.NodePrepareResourceResponse(
                    devices=[dra.Device(pool_name=NODE, device_name=claim.name, request_names=["x"])]
                )
                for claim in request.claims
            }
        )

    async def _unprepare(
        self, request: dra.NodeUnprepareResourcesRequest, _context: grpc.aio.ServicerContext
    ) -> dra.NodeUnprepareResourcesResponse:
        answer = dra.NodeUnprepareResourceResponse()
        return dra.NodeUnprepareResourcesResponse(claims={claim.uid: answer for claim in request.claims})


class Agent:
    """`dray node` as a process."""

    def __init__(self, kubeconfig: Path, root: Path, runtime: str) -> None:
        command = [str(Path(sys.executable).with_name("dray")), "node", "--name", NODE, "--runtime", runtime]
        command += ["--kubeconfig", str(kubeconfig), "--root", str(root), "--cdi-dir", str(root / "cdi")]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if "ready" not in line:
            raise RuntimeError(f"the agent did not start: {line!r}")

    def memory_mib(self) -> float:
        """Resident memory."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(dict(line.split(":", 1) for line in status.splitlines())["VmRSS"].split()[0]) / 1024

    def cpu_seconds(self) -> float:
        """Time used so far."""
        return cpu_seconds(self._process.pid)

    def stop(self) -> None:
        """Ends the process as an operator would."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(20)


@contextlib.contextmanager
def agent(kubeconfig: Path, root: Path, runtime: str) -> Iterator[Agent]:
    """An agent for the time of a measurement."""
    started = Agent(kubeconfig, root, runtime)
    try:
        yield started
    finally:
        started.stop()


class Load:
    """Makes pods whose claims are allocated and rebinds them, and sees them run."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._pods: Informer[Pod] = Informer(client, PODS, sleep=asyncio.sleep)
        self._pods.on_change(self._changed)
        self._watch = asyncio.get_running_loop().create_task(self._pods.run())
        self._running: dict[str, asyncio.Event] = {}
        self.ran: dict[str, float] = {}

    async def make(self, name: str) -> None:
        """A pod that waits to be bound, with a claim of its name."""
        claim = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [{"name": "x", "exactly": {"deviceClassName": "x"}}]}},
        }
        container = {"name": "main", "image": "none", "command": ["/bin/sleep", "1000"]}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{**container, "resources": {"claims": [{"name": "x"}]}}],
                "resourceClaims": [{"name": "x", "resourceClaimName": name}],
            },
        }
        self._running[name] = asyncio.Event()
        await self._client.create(_typed(claim))
        made = await self._client.create(_typed(pod))
        result = {"request": "x", "driver": DRIVER, "pool": NODE, "device": name}
        status = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": made.metadata.uid}],
        }
        await self._client.patch(CLAIMS, "default", name, {"status": status}, subresource="status")

    async def bind(self, name: str) -> float:
        """Gives the pod to the node; when that began."""
        began = time.perf_counter()
        target = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"name": NODE}}
        await self._client.post(PODS, "default", name, "binding", target)
        return began

    async def runs(self, name: str) -> float:
        """When the pod was seen to run."""
        async with asyncio.timeout(PATIENCE):
            await self._running[name].wait()
        return self.ran[name]

    async def close(self) -> None:
        """Stops watching."""
        self._watch.cancel()
        await asyncio.gather(self._watch, return_exceptions=True)

    def _changed(self, _old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.status.phase == "Running" and new.metadata.name not in self.ran:
            self.ran[new.metadata.name] = time.perf_counter()
            self._running[new.metadata.name].set()


def _typed(document: dict[str, Any]) -> Object:
    obj = codec.read(document, by_kind(document["apiVersion"], document["kind"]).hub).obj
    assert obj is not None
    return obj


async def one_by_one(load: Load, driver: Driver, prefix: str) -> tuple[float, float]:
    """Milliseconds from binding, and from the driver's call, until a pod runs: medians."""
    from_bind, from_call = [], []
    for number in range(ONE_BY_ONE):
        name = f"{prefix}-{number:03}"
        await load.make(name)
        began = await load.bind(name)
        ran = await load.runs(name)
        from_bind.append(ran - began)
        from_call.append(ran - driver.asked[name])
    return statistics.median(from_bind) * 1000, statistics.median(from_call) * 1000


async def burst(load: Load) -> float:
    """Pods per second from the first binding until all run."""
    names = [f"burst-{number:03}" for number in range(BURST)]
    for start in range(0, BURST, 16):
        await asyncio.gather(*map(load.make, names[start : start + 16]))
    began = time.perf_counter()
    for start in range(0, BURST, 32):
        await asyncio.gather(*map(load.bind, names[start : start + 32]))
    ended = max([await load.runs(name) for name in names])
    return BURST / (ended - began)


async def idle(process: Agent) -> tuple[float, float]:
    """Memory in MiB and percent of one core while nothing happens."""
    await asyncio.sleep(1.0)
    before = process.cpu_seconds()
    await asyncio.sleep(IDLE_SECONDS)
    return process.memory_mib(), (process.cpu_seconds() - before) / IDLE_SECONDS * 100


async def measure(kubeconfig: Path, root: Path, process: Agent, runtime: str) -> dict[str, float]:
    """The figures of one runtime."""
    driver = Driver(root)
    await driver.start()
    async with HttpClient(load_kubeconfig([kubeconfig])) as client:
        load = Load(client)
        try:
            if runtime == "process":
                _, call = await one_by_one(load, driver, "process")
                return {"process_prepare_to_running_p50_ms": call}
            memory, cpu = await idle(process)
            bind, call = await one_by_one(load, driver, "none")
            used = process.cpu_seconds()
            rate = await burst(load)
            used = process.cpu_seconds() - used
            after, _ = await idle(process)
            return {
                "idle_memory_mib": memory,
                "idle_cpu_percent": cpu,
                "bind_to_running_p50_ms": bind,
                "prepare_to_running_p50_ms": call,
                "pods_per_second_500": rate,
                "agent_cpu_ms_per_pod": used / BURST * 1000,
                "memory_with_560_pods_mib": after,
            }
        finally:
            for name in load.ran:
                await client.delete(PODS, "default", name)
            async with asyncio.timeout(PATIENCE):
                while any(name in load.ran for name in [pod.metadata.name for pod in load._pods]):
                    await asyncio.sleep(0.1)
            await load.close()
            await driver.stop()


def run() -> dict[str, Any]:
    """All measurements; the names carry the units."""
    results: dict[str, float] = {}
    for runtime in ("none", "process"):
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            state, root = Path(directory) / "state", Path(directory) / "node"
            with Dray(["server"], state), agent(state / "kubeconfig", root, runtime) as process:
                results |= uvloop.run(measure(state / "kubeconfig", root, process, runtime))
    return {name: round(value, 2) for name, value in results.items()}


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))

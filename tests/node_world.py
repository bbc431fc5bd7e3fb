"""A node agent on a server in memory, with real Unix sockets to its drivers; tests play scheduler and controllers.

async def test_a_pod_runs() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace
from prometheus_client import generate_latest

from dray.api.generated.core import Event, Pod
from dray.api.meta import DeleteOptions
from dray.api.registry import by_kind
from dray.api.resource import ResourceClaim, ResourceSlice
from dray.api.resource.claim import ResourceClaimConsumerReference
from dray.api.status import ApiError
from dray.node.agent import Agent, NodeSettings
from dray.node.runtime import Runtime
from dray.node.runtime.none import NoRuntime
from dray.node.slices import NodeClient
from dray.reconcile import RealClock
from dray.server.security.identity import NODE_PREFIX, NODES, authenticated
from local_server import LocalServer, local_server, typed
from patience import LOOK_SECONDS, PATIENCE, eventually_async
from scripted_driver import ScriptedDriver

NODE = "node-1"
DRIVER = "gpu.example.com"
PODS = by_kind("v1", "Pod")
EVENTS = by_kind("v1", "Event")
CLAIMS = by_kind("resource.k8s.io/v1", "ResourceClaim")
SLICES = by_kind("resource.k8s.io/v1", "ResourceSlice")

W = TypeVar("W", bound="NodeWorld")


class NodeWorld:
    """The world around one agent."""

    def __init__(self, admin: NodeClient, node_client: NodeClient, root: Path) -> None:
        self.root = root
        self.admin = admin
        self.node_client = node_client
        self.settings = NodeSettings(name=NODE, root=root, address="10.0.0.1", wipe_delay=0.2, call_seconds=5.0)
        self.boot = "boot-1"
        self.clock = RealClock()
        self.runtime: Runtime = NoRuntime(self.clock)
        self.drivers: list[ScriptedDriver] = []
        self.allocated: dict[tuple[str, str], list[str]] = {}
        self._task: asyncio.Task[None] | None = None
        self.agent: Agent

    async def start(self) -> None:
        """Starts the agent, for the first time or again."""
        self.agent = Agent(self.settings, self.node_client, self.runtime, self.clock, self.boot)
        self._task = asyncio.get_running_loop().create_task(self.agent.run())
        ready = asyncio.get_running_loop().create_task(self.agent.ready.wait())
        await asyncio.wait({ready, self._task}, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
        ready.cancel()
        if self._task.done():
            self._task.result()
        assert self.agent.ready.is_set()

    async def stop(self) -> None:
        """Ends the agent as SIGTERM does, or, as far as others can see, a crash."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def driver(self, name: str = DRIVER, instance: str = "") -> ScriptedDriver:
        """A started driver that is registered."""
        driver = ScriptedDriver(self.root, name, instance)
        await self.start_driver(driver)
        await self.until(lambda: any(one.plugin_registered for one in driver.notified))
        # Until it is connected it is away, and what it publishes is soon removed.
        await self.until(lambda: self.agent.drivers.is_connected(name))
        return driver

    async def start_driver(self, driver: ScriptedDriver) -> None:
        """Starts a driver, be it registered or not."""
        if driver not in self.drivers:
            self.drivers.append(driver)
            driver.allocated = self.allocated
        await driver.start()

    async def claim(self, name: str, *devices: str, driver: str = DRIVER, **results: Any) -> ResourceClaim:
        """A claim that the scheduler has allocated: `devices` for request `gpu`, or `request=device` pairs."""
        requests = results or {"gpu": devices}
        spec = {"devices": {"requests": [{"name": one, "exactly": {"deviceClassName": "gpu"}} for one in requests]}}
        meta = {"name": name, "namespace": "default"}
        made = await self.admin.create(
            typed({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec})
        )
        assert isinstance(made, ResourceClaim)
        chosen = [
            {"request": request, "driver": driver, "pool": NODE, "device": device}
            for request, names in requests.items()
            for device in ((names,) if isinstance(names, str) else names)
        ]
        return await self.allocate(made, chosen) if chosen else made

    async def allocate(self, claim: ResourceClaim, results: list[dict[str, str]]) -> ResourceClaim:
        """Writes an allocation into a claim."""
        status = {"allocation": {"devices": {"results": results}}}
        meta = claim.metadata
        for one in results:
            self.allocated.setdefault((one["driver"], meta.name), []).append(one["device"])
        patched = await self.admin.patch(CLAIMS, meta.namespace, meta.name, {"status": status}, subresource="status")
        assert isinstance(patched, ResourceClaim)
        return patched

    async def reserve(self, claim: str, pod: Pod) -> None:
        """Lets a pod use a claim, as the scheduler does."""
        stored = await self.admin.get(CLAIMS, "default", claim)
        assert isinstance(stored, ResourceClaim)
        meta = pod.metadata
        consumer = ResourceClaimConsumerReference(resource="pods", name=meta.name, uid=meta.uid)
        status = replace(stored.status, reserved_for=(*stored.status.reserved_for, consumer))
        await self.admin.update(replace(stored, status=status), "status")

    async def pod(
        self, name: str, *, claims: Iterable[str] = (), reserve: bool = True, bind: bool = True, **spec: Any
    ) -> Pod:
        """A pod with claims of those names, reserved for it and bound to the node as the scheduler would."""
        names = list(claims)
        container = {"name": "main", "image": "none", "resources": {"claims": [{"name": one} for one in names]}}
        full = {
            "containers": [container],
            "resourceClaims": [{"name": one, "resourceClaimName": one} for one in names],
            "restartPolicy": "Never",
            **spec,
        }
        meta = {"name": name, "namespace": "default"}
        made = await self.admin.create(typed({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": full}))
        assert isinstance(made, Pod)
        for claim in names if reserve else ():
            await self.reserve(claim, made)
        if bind:
            await self.bind(name)
        return made

    async def bind(self, name: str) -> None:
        """The scheduler's last step."""
        body = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": NODE}}
        await self.admin.post(PODS, "default", name, "binding", {**body, "metadata": {"name": name}})

    async def get(self, name: str) -> Pod | None:
        """A pod as it is stored; None if it is gone."""
        try:
            found = await self.admin.get(PODS, "default", name)
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        assert isinstance(found, Pod)
        return found

    async def phase(self, name: str, phase: str) -> Pod:
        """Waits until a pod has a phase."""
        pod: Pod | None = None
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            pod = await self.get(name)
            if pod is not None and pod.status.phase == phase:
                return pod
            await asyncio.sleep(LOOK_SECONDS)
        raise AssertionError(f"pod {name} is not {phase} but {pod.status if pod else 'gone'}: {await self.events()}")

    async def delete(self, name: str, grace: int | None = None) -> None:
        """Deletes a pod, with its own grace period or another."""
        await self.admin.delete(PODS, "default", name, DeleteOptions(grace_period_seconds=grace))

    async def gone(self, name: str) -> None:
        """Waits until a pod is gone."""
        deadline = time.monotonic() + PATIENCE
        while await self.get(name) is not None:
            assert time.monotonic() < deadline, f"pod {name} is still there: {await self.events()}"
            await asyncio.sleep(LOOK_SECONDS)

    async def events(self, reason: str = "") -> list[str]:
        """The messages of events."""
        found = (await self.admin.list(EVENTS, "default")).items
        return [one.message for one in found if isinstance(one, Event) and reason in ("", one.reason)]

    async def event(self, reason: str, text: str) -> str:
        """Waits for an event whose message has a text in it."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for message in await self.events(reason):
                if text in message:
                    return message
            await asyncio.sleep(LOOK_SECONDS)
        raise AssertionError(f"no event {reason} with {text!r} in {await self.events()}")

    def metrics(self) -> str:
        """The agent's numbers as a scraper sees them."""
        return generate_latest(self.agent.metrics.registry()).decode()

    async def slices(self) -> list[str]:
        """The names of all slices."""
        found = (await self.admin.list(SLICES)).items
        return sorted(one.metadata.name for one in found if isinstance(one, ResourceSlice))

    async def publish(self, name: str, driver: str = DRIVER, node: str = NODE) -> None:
        """A slice as a driver makes it."""
        spec = {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        }
        meta = {"name": name}
        await self.admin.create(
            typed({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": meta, "spec": spec})
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until something is so."""
        await eventually_async(condition)


class LocalWorld(NodeWorld):
    """A world whose server is in this process."""

    def __init__(self, server: LocalServer, root: Path) -> None:
        super().__init__(server.client(), server.client(authenticated(f"{NODE_PREFIX}{NODE}", (NODES,))), root)
        self.server = server


@contextlib.asynccontextmanager
async def inhabited(world: W) -> AsyncIterator[W]:
    """A world whose agent and drivers are ended afterwards."""
    try:
        yield world
    finally:
        await world.stop()
        for driver in world.drivers:
            await driver.stop()


@contextlib.asynccontextmanager
async def local_world(*, started: bool = True) -> AsyncIterator[LocalWorld]:
    """A world with an agent. The root directory is short, because the paths of Unix sockets must be."""
    with tempfile.TemporaryDirectory(prefix="node-") as directory:
        # Pods of tests that run at the same time share the machine's control groups, and need uids of their own.
        server_of_its_own = local_server(seed=os.getpid())
        async with server_of_its_own as server, inhabited(LocalWorld(server, Path(directory))) as world:
            if started:
                await world.start()
            yield world

"""A driver on a real socket, an API server in memory, and tests in the place of the node.

async with driver_world(Fans()) as world:
    claim = await world.allocate("c", "fan-0")
    answer = await world.prepare(claim)
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import grpc.aio

from dray import cdi, driver
from dray.api.registry import by_kind
from dray.api.resource import ResourceClaim, ResourceSlice
from dray.client import Client
from dray.plugins import contracts, unix
from dray.plugins.generated import dra_v1_pb2 as dra
from local_server import LocalServer, local_server, typed
from patience import PATIENCE, eventually_async

NODE = "node-1"
SLICE = by_kind("resource.k8s.io/v1", "ResourceSlice")
CLAIM = by_kind("resource.k8s.io/v1", "ResourceClaim")


class Fans(driver.Driver):
    """A driver that notes what it is asked."""

    name = "fans.example.com"
    interval = 3600.0

    def __init__(self, *names: str) -> None:
        self.devices = [driver.Device(name, attributes={"rpm": 3000}) for name in names or ("fan-0", "fan-1")]
        self.calls: list[str] = []
        self.failures: list[Exception] = []

    def discover(self) -> Iterable[driver.Device]:
        yield from self.devices

    def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> driver.Edits | None:
        self.calls.append(f"prepare {claim} {device.name}")
        if self.failures:
            raise self.failures.pop(0)
        return driver.Edits(env={"FAN": device.name}, device_nodes=[f"/dev/{device.name}"])

    def unprepare(self, claim: driver.Claim) -> None:
        self.calls.append(f"unprepare {claim}")
        if self.failures:
            raise self.failures.pop(0)

    def set(self, *devices: driver.Device) -> None:
        """Other devices from now on."""
        self.devices = list(devices)
        self.changed()


class DriverWorld:
    """What tests see: the driver's files, the cluster, and the calls that a node makes."""

    def __init__(self, server: LocalServer, root: Path) -> None:
        self.server = server
        self.client: Client = server.client()
        self.root = root
        self.settings = driver.Settings(
            node=NODE, plugin_dir=root / "plugin", registry_dir=root / "registry", cdi_dir=root / "cdi"
        )
        self.settings.registry_dir.mkdir()
        self.cache = cdi.Cache([self.settings.cdi_dir])
        self.channel: grpc.aio.Channel | None = None

    @contextlib.asynccontextmanager
    async def running(self, it: driver.Driver, **changes: Any) -> AsyncIterator[driver.Runner]:
        """The driver, from start to stop."""
        client = changes.pop("client", self.client)
        async with driver.Runner(it, self.settings, client, **changes) as runner:
            self.channel = unix.channel(runner.endpoint)
            try:
                yield runner
            finally:
                await self.channel.close()

    async def allocate(
        self,
        name: str,
        *devices: str | dict[str, Any],
        config: Iterable[Any] = (),
        alternatives: Mapping[str, list[str]] | None = None,
    ) -> ResourceClaim:
        """A claim with devices of the driver, by name or as an allocation result; `alternatives` of its requests."""
        results = [
            {"request": "r", "driver": Fans.name, "pool": NODE, **(it if isinstance(it, dict) else {"device": it})}
            for it in devices
        ]
        names = {str(result["request"]).partition("/")[0] for result in results} or {"r"}
        document = _claim(name, {it: (alternatives or {}).get(it, []) for it in sorted(names)})
        claim = cast(ResourceClaim, await self.client.create(typed(document)))
        document["metadata"] |= {"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version}
        here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}
        allocated = {"results": results, "config": list(config)}
        document["status"] = {"allocation": {"devices": allocated, "nodeSelector": {"nodeSelectorTerms": [here]}}}
        return cast(ResourceClaim, await self.client.update(typed(document), "status"))

    async def prepare(self, *claims: ResourceClaim, version: str = "v1.DRAPlugin") -> Any:
        """The answer to one call for all claims, by uid."""
        assert self.channel is not None
        request = dra.NodePrepareResourcesRequest(claims=[_reference(claim) for claim in claims])
        answer = await contracts.call(self.channel, contracts.PREPARE[version], request, timeout=PATIENCE)
        return answer.claims

    async def unprepare(self, *claims: ResourceClaim, version: str = "v1.DRAPlugin") -> Any:
        """The same for unprepare."""
        assert self.channel is not None
        request = dra.NodeUnprepareResourcesRequest(claims=[_reference(claim) for claim in claims])
        answer = await contracts.call(self.channel, contracts.UNPREPARE[version], request, timeout=PATIENCE)
        return answer.claims

    async def forget(self, *claims: ResourceClaim) -> None:
        """Removes claims from the cluster; the driver hears nothing of it."""
        for claim in claims:
            await self.client.delete(CLAIM, claim.metadata.namespace, claim.metadata.name)

    async def slices(self) -> list[ResourceSlice]:
        """All slices, in the order of their names."""
        listing = await self.client.list(SLICE)
        return sorted(cast(list[ResourceSlice], listing.items), key=lambda it: it.metadata.name)

    async def published(self, count: int) -> list[ResourceSlice]:
        """The slices, once there are so many, all of one pool generation, which they say."""

        async def found() -> list[ResourceSlice]:
            slices = await self.slices()
            pools = {(it.spec.pool.generation, it.spec.pool.resource_slice_count) for it in slices}
            return slices if len(slices) == count and len(pools) == 1 and pools.pop()[1] == count else []

        return cast(list[ResourceSlice], await eventually_async(found, f"there were never {count} slices"))

    def cdi_files(self) -> list[str]:
        """The names of everything in the CDI directory."""
        return sorted(path.name for path in self.settings.cdi_dir.iterdir()) if self.settings.cdi_dir.exists() else []


def _reference(claim: ResourceClaim) -> dra.Claim:
    meta = claim.metadata
    return dra.Claim(namespace=meta.namespace, name=meta.name, uid=meta.uid)


def _claim(name: str, requests: Mapping[str, list[str]]) -> dict[str, Any]:
    wanted: list[dict[str, Any]] = []
    for request, alternatives in requests.items():
        choices = [{"name": it, "deviceClassName": "fans"} for it in alternatives]
        one_of = {"firstAvailable": choices} if choices else {"exactly": {"deviceClassName": "fans"}}
        wanted.append({"name": request, **one_of})
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": wanted}},
    }


@contextlib.asynccontextmanager
async def empty_world(**options: Any) -> AsyncIterator[DriverWorld]:
    """A cluster with one node, and a place for a driver that does not run yet."""
    root = Path(tempfile.mkdtemp(prefix="dray-"))  # pytest's own are too long for the names of sockets
    try:
        async with local_server(**{"with_roles": False, **options}) as server:
            world = DriverWorld(server, root)
            await world.client.create(typed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}))
            yield world
    finally:
        shutil.rmtree(root)


@contextlib.asynccontextmanager
async def driver_world(it: driver.Driver) -> AsyncIterator[DriverWorld]:
    """A cluster with one node on which the driver runs."""
    async with empty_world() as world, world.running(it):
        yield world

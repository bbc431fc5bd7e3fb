"""The cluster of a trial: an API server, one node, claims, and the history of the driver's slices."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from dray.api.generated.core import Namespace, Node
from dray.api.kinds import CLAIMS, NAMESPACES, NODES, SLICES
from dray.api.meta import DeleteOptions, Object, ObjectMeta, Preconditions
from dray.api.registry import Kind
from dray.api.resource import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
)
from dray.api.status import ApiError
from dray.client import Client, Informer
from dray.client.http import HttpClient
from dray.client.kubeconfig import find_connection
from dray.reconcile import RealClock

NAMESPACE: Final = "dray-driver-test"
REQUEST: Final = "request"
OWN_LABEL: Final = "dray.dev/made-by-driver-test"
"""On the namespace: it may go when the trial is over, also if another one made it and was killed."""
NAMESPACE_PATIENCE: Final = 60
"""Seconds."""


class StageError(Exception):
    """There is no cluster for the trial. The message says what to change."""


class Places(msgspec.Struct, frozen=True):
    """Where things are."""

    node: str
    kubeconfig: Path
    registry: Path
    plugins: Path
    plugin: Path
    cdi: Path

    def by_name(self) -> dict[str, str]:
        """All of them as text."""
        return {name: str(getattr(self, name)) for name in self.__struct_fields__}


class Served(NamedTuple):
    """An API server that runs: a client with all rights, and the file that leads there."""

    client: Client
    kubeconfig: Path


Serve = Callable[[Path], AbstractAsyncContextManager[Served]]
"""Runs an API server with a state directory. It is given to the kit, which knows clients only."""


class DeviceName(NamedTuple):
    """A published device."""

    pool: str
    device: str


class SliceChange(NamedTuple):
    """What happened to a slice: None for what was not there, or is gone."""

    old: ResourceSlice | None
    new: ResourceSlice | None


class Stage:
    """What rules see of the cluster."""

    def __init__(self, client: Client, places: Places) -> None:
        self.client = client
        self.places = places
        self.parameters: Any = None
        """Opaque parameters that claims bring along, for drivers that need some."""
        self.changes: list[SliceChange] = []
        """Every change of slices on the node, in order."""
        self.tampered: set[str] = set()
        """The versions of slices that the kit itself has written."""
        self._numbers = itertools.count(1)
        self._clock = RealClock()
        self._slices: Informer[ResourceSlice] = Informer(
            client, SLICES, fields=f"spec.nodeName={places.node}", sleep=self._clock.sleep
        )
        self._slices.on_change(lambda old, new: self.changes.append(SliceChange(old, new)))

    async def run(self) -> None:
        """Follows the slices until cancelled."""
        await self._slices.run()

    async def make_node(self) -> None:
        """For a driver that is to run in a cluster of the trial's own."""
        await self._ensure(Node(api_version="v1", kind="Node", metadata=ObjectMeta(name=self.places.node)))

    async def ready(self) -> None:
        """Once there is a namespace, and slices are being followed. Raises StageError if there is no such node."""
        try:
            await self.client.get(NODES, "", self.places.node)
        except ApiError as error:
            if error.code != 404:
                raise
            raise StageError(f"there is no node {self.places.node}; --node-name says where the driver is") from None
        await self._make_namespace()
        await self._slices.synced()

    def slices(self, driver: str) -> list[ResourceSlice]:
        """The driver's slices on the node."""
        return [found for found in self._slices if found.spec.driver == driver]

    def devices(self, driver: str) -> list[DeviceName]:
        """The driver's devices."""
        return [
            DeviceName(found.spec.pool.name, device.name)
            for found in self.slices(driver)
            for device in found.spec.devices
        ]

    async def create_claim(self) -> ResourceClaim:
        """A claim that nobody has allocated."""
        request = DeviceRequest(name=REQUEST, exactly=ExactDeviceRequest(device_class_name="any", count=1))
        claim = ResourceClaim(
            api_version="resource.k8s.io/v1",
            kind="ResourceClaim",
            metadata=ObjectMeta(name=f"claim-{next(self._numbers)}", namespace=NAMESPACE),
            spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))),
        )
        return await self.client.create(claim)

    async def allocate(
        self, claim: ResourceClaim, driver: str, candidates: Iterable[DeviceName] | None = None
    ) -> DeviceName | None:
        """Gives a claim the first device that is free; None if there is none."""
        taken = await self._taken(driver)
        for device in self.devices(driver) if candidates is None else candidates:
            if device in taken:
                continue
            status = replace(claim.status, allocation=self._allocation(driver, device))
            try:
                await self.client.update(replace(claim, status=status), "status")
            except ApiError as error:
                if error.code != 409:
                    raise
                continue
            return device
        return None

    async def _taken(self, driver: str) -> set[DeviceName]:
        """The devices of a driver that claims have."""
        claims = [obj for obj in (await self.client.list(CLAIMS)).items if isinstance(obj, ResourceClaim)]
        allocations = [claim.status.allocation for claim in claims if claim.status.allocation is not None]
        results = [result for allocation in allocations for result in allocation.devices.results]
        return {DeviceName(result.pool, result.device) for result in results if result.driver == driver}

    async def deallocate(self, claim: ResourceClaim) -> None:
        """Removes a claim, if it is still there; drivers hear nothing of it."""
        await self._delete(CLAIMS, claim)

    async def delete_slice(self, found: ResourceSlice) -> None:
        """Removes a slice, if it is still there."""
        await self._delete(SLICES, found)

    async def empty_slice(self, found: ResourceSlice) -> str:
        """Takes the devices out of a slice, as somebody else might; the version that this makes."""
        changed = await self.client.patch(SLICES, "", found.metadata.name, {"spec": {"devices": None}})
        self.tampered.add(changed.metadata.resource_version)
        return changed.metadata.resource_version

    async def close(self) -> None:
        """Removes what the trial made and a cluster would keep; a namespace that somebody else made stays."""
        for claim in (await self.client.list(CLAIMS, NAMESPACE)).items:
            await self._delete(CLAIMS, claim)
        namespace = await self._namespace()
        if namespace is not None and OWN_LABEL in namespace.metadata.labels:
            await self._delete(NAMESPACES, namespace)

    async def _make_namespace(self) -> None:
        """One that is still being deleted, by a trial before this one, has to go first: nothing can be made in it."""
        labels = {OWN_LABEL: "true"}
        wanted = Namespace(api_version="v1", kind="Namespace", metadata=ObjectMeta(name=NAMESPACE, labels=labels))
        for _ in range(NAMESPACE_PATIENCE):
            await self._ensure(wanted)
            found = await self._namespace()
            if found is not None and found.metadata.deletion_timestamp is None:
                return
            await self._clock.sleep(1)
        raise StageError(f"the namespace {NAMESPACE} is being deleted, and stays for longer than a minute")

    async def _namespace(self) -> Object | None:
        try:
            return await self.client.get(NAMESPACES, "", NAMESPACE)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def _allocation(self, driver: str, device: DeviceName) -> AllocationResult:
        result = DeviceRequestAllocationResult(request=REQUEST, driver=driver, pool=device.pool, device=device.device)
        config: tuple[DeviceAllocationConfiguration, ...] = ()
        if self.parameters is not None:
            opaque = OpaqueDeviceConfiguration(driver=driver, parameters=self.parameters)
            config = (DeviceAllocationConfiguration(source="FromClaim", opaque=opaque),)
        return AllocationResult(devices=DeviceAllocationResult(results=(result,), config=config))

    async def _ensure(self, obj: Object) -> None:
        try:
            await self.client.create(obj)
        except ApiError as error:
            if error.code != 409:
                raise

    async def _delete(self, kind: Kind, obj: Object) -> None:
        meta = obj.metadata
        options = DeleteOptions(preconditions=Preconditions(uid=meta.uid))
        try:
            await self.client.delete(kind, meta.namespace, meta.name, options)
        except ApiError as error:
            if error.code not in (404, 409):
                raise


@contextlib.asynccontextmanager
async def own_stage(serve: Serve, node: str) -> AsyncIterator[Stage]:
    """A cluster of the trial's own: an API server in this process, in a directory that goes away at the end."""
    root = Path(tempfile.mkdtemp(prefix="dray-dt-"))  # short: sockets have names of at most 107 bytes
    plugins = root / "plugins"
    try:
        async with serve(root / "state") as served:
            places = Places(node, served.kubeconfig, root / "registry", plugins, plugins / "driver", root / "cdi")
            for path in (places.registry, places.plugin, places.cdi):
                path.mkdir(parents=True)
            made = Stage(served.client, places)
            await made.make_node()
            async with _followed(made) as stage:
                yield stage
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextlib.asynccontextmanager
async def external_stage(kubeconfig: Path, node: str, cdi: Path) -> AsyncIterator[Stage]:
    """The cluster that a running driver belongs to. Raises StageError if it cannot be reached."""
    places = Places(node, kubeconfig, Path(), Path(), Path(), cdi)
    async with HttpClient(find_connection(kubeconfig), agent="dray driver-test") as client:
        made = Stage(client, places)
        try:
            try:
                async with _followed(made) as stage:
                    yield stage
            finally:
                await made.close()
        except (ApiError, OSError) as error:
            raise StageError(f"the API server of {kubeconfig} cannot be used: {error}") from None


@contextlib.asynccontextmanager
async def _followed(stage: Stage) -> AsyncIterator[Stage]:
    following = asyncio.create_task(stage.run())
    try:
        await stage.ready()
        yield stage
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following

"""A DRA driver over real Unix sockets that does what a test tells it, good or bad, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import grpc
import grpc.aio

from dray.plugins import contracts, unix
from dray.plugins.generated import dra_v1_pb2 as dra
from dray.plugins.generated import health_v1_pb2 as health
from dray.plugins.generated import registration_pb2 as registration

Prepare = Callable[[dra.NodePrepareResourcesRequest], Awaitable[dra.NodePrepareResourcesResponse]]


class ScriptedDriver:
    """One instance. `prepare`, `unprepare_error` and the like can be changed; the defaults are a good driver's."""

    def __init__(self, root: Path, name: str = "gpu.example.com", instance: str = "") -> None:
        suffix = f"-{instance}" if instance else ""
        self.name = name
        self.registry = root / "plugins_registry" / f"{name}{suffix}-reg.sock"
        self.endpoint = root / "plugins" / name / f"dra{suffix}.sock"
        self.info = registration.PluginInfo(
            type="DRAPlugin", name=name, endpoint=str(self.endpoint), supported_versions=["v1.DRAPlugin"]
        )
        self.devices: dict[str, list[dra.Device]] = {}
        """What claims get, by their name."""
        self.allocated: dict[tuple[str, str], list[str]] = {}
        """By driver and claim, the devices that were allocated: what a claim gets that is not in `devices`."""
        self.prepared: list[list[str]] = []
        self.unprepared: list[list[str]] = []
        self.notified: list[registration.RegistrationStatus] = []
        self.prepare: Prepare = self.prepare_well
        self.unprepare_error = ""
        self.unprepare_forgets = False
        self.unprepare_code = grpc.StatusCode.OK
        """What a whole call ends with."""
        self.held: set[str] = set()
        """The uids of claims that are prepared."""
        self._health: asyncio.Queue[health.NodeWatchResourcesResponse] = asyncio.Queue()
        self._servers: list[grpc.aio.Server] = []

    async def start(self) -> None:
        """Listens on both sockets, the driver's own first."""
        for path in (self.endpoint, self.registry):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._servers.append(await unix.listen(self.endpoint, contracts.services(*self._dra(), *self._watch())))
        self._servers.append(
            await unix.listen(
                self.registry,
                contracts.services(
                    contracts.answer(contracts.GET_INFO, self._get_info),
                    contracts.answer(contracts.NOTIFY, self._notify),
                ),
            )
        )

    async def stop(self, *, leave_sockets: bool = False) -> None:
        """Ends; a crash leaves its sockets behind."""
        for server in reversed(self._servers):
            await server.stop(None)
        self._servers.clear()
        for path in (self.registry, self.endpoint):
            if not leave_sockets:
                path.unlink(missing_ok=True)

    def report(self, *reports: health.DeviceHealth) -> None:
        """Sends a health report to whoever watches."""
        self._health.put_nowait(health.NodeWatchResourcesResponse(devices=reports))

    async def prepare_well(self, request: dra.NodePrepareResourcesRequest) -> dra.NodePrepareResourcesResponse:
        """Every claim gets its devices."""
        answers = {claim.uid: self.answer(claim) for claim in request.claims}
        self.held |= answers.keys()
        return dra.NodePrepareResourcesResponse(claims=answers)

    def answer(self, claim: dra.Claim) -> dra.NodePrepareResourceResponse:
        """What a good driver says of a claim."""
        names = self.allocated.get((self.name, claim.name), ["gpu-0"])
        return dra.NodePrepareResourceResponse(devices=self.devices.get(claim.name) or [device(one) for one in names])

    def _dra(self) -> list[contracts.Handler]:
        return [
            handler
            for version in contracts.DRA_SERVICES
            for handler in (
                contracts.answer(contracts.PREPARE[version], self._prepare),
                contracts.answer(contracts.UNPREPARE[version], self._unprepare),
            )
        ]

    def _watch(self) -> list[contracts.Handler]:
        return [contracts.answer_stream(method, self._watch_health) for method in contracts.WATCH_HEALTH.values()]

    async def _get_info(
        self, _request: registration.InfoRequest, _context: grpc.aio.ServicerContext
    ) -> registration.PluginInfo:
        return self.info

    async def _notify(
        self, request: registration.RegistrationStatus, _context: grpc.aio.ServicerContext
    ) -> registration.RegistrationStatusResponse:
        self.notified.append(request)
        return registration.RegistrationStatusResponse()

    async def _prepare(
        self, request: dra.NodePrepareResourcesRequest, _context: grpc.aio.ServicerContext
    ) -> dra.NodePrepareResourcesResponse:
        self.prepared.append([claim.name for claim in request.claims])
        return await self.prepare(request)

    async def _unprepare(
        self, request: dra.NodeUnprepareResourcesRequest, context: grpc.aio.ServicerContext
    ) -> dra.NodeUnprepareResourcesResponse:
        self.unprepared.append([claim.name for claim in request.claims])
        if self.unprepare_code is not grpc.StatusCode.OK:
            await context.abort(self.unprepare_code, "no such claim")
        if self.unprepare_forgets:
            return dra.NodeUnprepareResourcesResponse()
        if not self.unprepare_error:
            self.held -= {claim.uid for claim in request.claims}
        answer = dra.NodeUnprepareResourceResponse(error=self.unprepare_error)
        return dra.NodeUnprepareResourcesResponse(claims={claim.uid: answer for claim in request.claims})

    async def _watch_health(
        self, _request: health.NodeWatchResourcesRequest, _context: grpc.aio.ServicerContext
    ) -> AsyncIterator[health.NodeWatchResourcesResponse]:
        while True:
            yield await self._health.get()


def device(name: str, *requests: str, cdi: str = "", pool: str = "node-1") -> dra.Device:
    """A prepared device with a CDI id."""
    return dra.Device(
        pool_name=pool, device_name=name, request_names=requests, cdi_device_ids=[cdi or f"example.com/gpu={name}"]
    )

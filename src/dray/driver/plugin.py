"""The driver as the node sees it: what it says of itself, and how it answers prepare, unprepare and health calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeAlias, TypeVar

import grpc
import grpc.aio

from dray.api.references import ObjectRef
from dray.driver.checkpoint import Prepared
from dray.driver.errors import DriverError
from dray.driver.health import HealthReports
from dray.driver.preparation import ClaimGone, Preparation
from dray.plugins import contracts
from dray.plugins.generated import dra_v1_pb2 as dra
from dray.plugins.generated import health_v1_pb2 as health
from dray.plugins.generated import registration_pb2 as registration

log = logging.getLogger(__name__)

Context: TypeAlias = grpc.aio.ServicerContext
T = TypeVar("T")


class Registration:
    """Answers the node in the registry directory."""

    def __init__(self, driver: str, endpoint: str, versions: Iterable[str]) -> None:
        self._info = registration.PluginInfo(
            type=contracts.PLUGIN_TYPE, name=driver, endpoint=endpoint, supported_versions=list(versions)
        )
        self.registered = asyncio.Event()
        """Set once a node has accepted the driver."""

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """The service."""
        return contracts.services(
            contracts.answer(contracts.GET_INFO, self._get_info), contracts.answer(contracts.NOTIFY, self._notify)
        )

    async def _get_info(self, _request: registration.InfoRequest, _context: Context) -> registration.PluginInfo:
        return self._info

    async def _notify(
        self, status: registration.RegistrationStatus, context: Context
    ) -> registration.RegistrationStatusResponse:
        if not status.plugin_registered:
            log.error("the node refuses this driver: %s", status.error)
            await context.abort(grpc.StatusCode.UNKNOWN, f"failed registration process: {status.error}")
        log.info("registered with the node")
        self.registered.set()
        return registration.RegistrationStatusResponse()


class Plugin:
    """Answers calls for claims, in every version, and health watches if there is health to report."""

    def __init__(self, preparation: Preparation, reports: HealthReports | None) -> None:
        self._preparation = preparation
        self._reports = reports
        self._working: set[asyncio.Task[Any]] = set()

    @property
    def versions(self) -> tuple[str, ...]:
        """What to advertise, the preferred one first."""
        return (*contracts.DRA_SERVICES, *(contracts.HEALTH_SERVICES if self._reports is not None else ()))

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """The services of all versions."""
        found = []
        for version in contracts.DRA_SERVICES:
            found.append(contracts.answer(contracts.PREPARE[version], self._prepare_in(version)))
            found.append(contracts.answer(contracts.UNPREPARE[version], self._unprepare))
        if self._reports is not None:
            watches = contracts.WATCH_HEALTH.values()
            found += [contracts.answer_stream(method, self._watch_health) for method in watches]
        return contracts.services(*found)

    async def drain(self) -> None:
        """Waits for work that goes on although its caller has given up."""
        await asyncio.gather(*self._working, return_exceptions=True)

    def _prepare_in(
        self, version: str
    ) -> Callable[[dra.NodePrepareResourcesRequest, Context], Awaitable[dra.NodePrepareResourcesResponse]]:
        has_shares = version == "v1.DRAPlugin"

        async def prepare(
            request: dra.NodePrepareResourcesRequest, context: Context
        ) -> dra.NodePrepareResourcesResponse:
            return await self._prepare(request, context, has_shares=has_shares)

        return prepare

    async def _prepare(
        self, request: dra.NodePrepareResourcesRequest, context: Context, *, has_shares: bool
    ) -> dra.NodePrepareResourcesResponse:
        """Every claim has an entry. The whole call fails only if there are no such claims (4381-170, 4381-261)."""
        outcomes = await self._each(request.claims, context, self._preparation.prepare)
        gone = [outcome for outcome in outcomes.values() if isinstance(outcome, ClaimGone)]
        if gone and len(gone) == len(outcomes):
            await context.abort(grpc.StatusCode.NOT_FOUND, "; ".join(map(str, gone)))
        answer = dra.NodePrepareResourcesResponse()
        for uid, outcome in outcomes.items():
            entry = answer.claims[uid]
            if isinstance(outcome, DriverError):
                entry.error = _text(outcome)
                continue
            for prepared in outcome:
                _add_device(entry, prepared, has_shares=has_shares)
        return answer

    async def _unprepare(
        self, request: dra.NodeUnprepareResourcesRequest, context: Context
    ) -> dra.NodeUnprepareResourcesResponse:
        outcomes = await self._each(request.claims, context, self._preparation.unprepare)
        answer = dra.NodeUnprepareResourcesResponse()
        for uid, outcome in outcomes.items():
            answer.claims[uid].error = _text(outcome) if isinstance(outcome, DriverError) else ""
        return answer

    async def _watch_health(
        self, _request: health.NodeWatchResourcesRequest, _context: Context
    ) -> AsyncIterator[health.NodeWatchResourcesResponse]:
        assert self._reports is not None
        async for report in self._reports.watch():
            yield report

    async def _each(
        self, claims: Iterable[dra.Claim], context: Context, work: Callable[[ObjectRef], Coroutine[Any, Any, T]]
    ) -> dict[str, T | DriverError]:
        """The outcome for every claim, by uid; all are worked on at once."""
        references = {claim.uid: ObjectRef(claim.namespace, claim.name, claim.uid) for claim in claims}
        for reference in references.values():
            if not all(reference):
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a claim needs namespace, name and uid")
        outcomes = await asyncio.gather(*(self._finish(work(reference)) for reference in references.values()))
        return dict(zip(references, outcomes, strict=True))

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T | DriverError:
        """Lets work end even if the node gives up, so that a repeated call finds a claim that is whole."""
        task = asyncio.create_task(_outcome(work))
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return await asyncio.shield(task)


async def _outcome(work: Coroutine[Any, Any, T]) -> T | DriverError:
    try:
        return await work
    except DriverError as error:
        log.warning("%s", error)
        return error
    except Exception as error:
        log.exception("a call of the node failed")
        return DriverError(f"internal error: {type(error).__name__}: {error}")


def _text(error: DriverError) -> str:
    return str(error) or type(error).__name__


def _add_device(entry: dra.NodePrepareResourceResponse, prepared: Prepared, *, has_shares: bool) -> None:
    device = entry.devices.add(
        request_names=[prepared.request],
        pool_name=prepared.pool,
        device_name=prepared.device,
        cdi_device_ids=list(prepared.cdi_ids),
    )
    if has_shares and prepared.share_id:
        device.share_id = prepared.share_id

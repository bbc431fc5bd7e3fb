"""The two calls to a driver, with their time limit, their metric and their answers as plain values."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from dray.node.answers import LONGEST_ANSWER, MOST_DEVICES, ClaimAnswer
from dray.node.claim_record import PREPARE, UNPREPARE, ClaimRecord, PreparedDevice
from dray.node.drivers import DriverMissing, Drivers
from dray.node.metrics import NodeMetrics
from dray.plugins import contracts
from dray.plugins.generated import dra_v1_pb2 as messages
from dray.reconcile import Clock

Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=Message)

LONGEST_DETAILS: Final = 512


class CallFailed(Exception):
    """A whole call failed: the driver is away, hangs, crashed, answered with an error or with garbage."""


class DriverCalls:
    """Calls drivers by name, whichever instance is the one to use."""

    def __init__(
        self, drivers: Drivers, metrics: NodeMetrics, clock: Clock, seconds: float = contracts.CALL_SECONDS
    ) -> None:
        self._drivers = drivers
        self._metrics = metrics
        self._clock = clock
        self._seconds = seconds

    def check(self, driver: str) -> None:
        """Raises DriverMissing if nobody could be called."""
        self._drivers.instance(driver)

    async def prepare(self, driver: str, records: Sequence[ClaimRecord]) -> dict[str, ClaimAnswer]:
        """NodePrepareResources for several claims. Raises DriverMissing or CallFailed."""
        request = messages.NodePrepareResourcesRequest(claims=_claims(records))
        response = await self._call(driver, PREPARE, contracts.PREPARE, request)
        asked = {record.uid for record in records}
        # Who answers for claims that nobody asked for is not believed: what they say of them is not looked at.
        return {uid: _prepared(one) if uid in asked else ClaimAnswer() for uid, one in response.claims.items()}

    async def unprepare(self, driver: str, records: Sequence[ClaimRecord]) -> dict[str, ClaimAnswer]:
        """NodeUnprepareResources for several claims. Raises DriverMissing or CallFailed."""
        request = messages.NodeUnprepareResourcesRequest(claims=_claims(records))
        response = await self._call(driver, UNPREPARE, contracts.UNPREPARE, request)
        return {uid: ClaimAnswer(error=one.error) for uid, one in response.claims.items()}

    async def _call(self, driver: str, method: str, versions: Mapping[str, contracts.Method[Q, A]], request: Q) -> A:
        try:
            instance = self._drivers.instance(driver)
        except DriverMissing:
            # Nobody was called, and still it is a try that failed: retries show in the metric (4381-159).
            self._metrics.called(driver, method, _metric_code(grpc.StatusCode.UNAVAILABLE), 0.0)
            raise
        started = self._clock.monotonic()
        code = grpc.StatusCode.UNKNOWN
        try:
            called = versions[instance.identity.version]
            answer = await contracts.call(instance.channel, called, request, timeout=self._seconds)
            if answer is None:  # which is how gRPC hands on what it could not decode
                code = grpc.StatusCode.INTERNAL
                raise CallFailed(f"{method} of driver {driver}: INTERNAL: the answer is not what the protocol says")
            code = grpc.StatusCode.OK
            return answer
        except grpc.aio.AioRpcError as error:
            code = error.code()
            details = (error.details() or "")[:LONGEST_DETAILS]
            raise CallFailed(f"{method} of driver {driver}: {code.name}: {details}") from None
        except asyncio.CancelledError:
            code = grpc.StatusCode.CANCELLED
            raise
        finally:
            self._metrics.called(driver, method, _metric_code(code), self._clock.monotonic() - started)


def _claims(records: Sequence[ClaimRecord]) -> list[messages.Claim]:
    return [messages.Claim(namespace=one.namespace, uid=one.uid, name=one.name) for one in records]


def _prepared(one: messages.NodePrepareResourceResponse) -> ClaimAnswer:
    """What is said of a claim; nothing of it is looked at one by one that can be no answer."""
    if len(one.devices) > MOST_DEVICES or one.ByteSize() > 4 * LONGEST_ANSWER:
        return ClaimAnswer(error=f"the driver names more than {MOST_DEVICES} devices, or says too much of them")
    return ClaimAnswer(_devices(one.devices), one.error)


def _devices(devices: Sequence[messages.Device]) -> tuple[PreparedDevice, ...]:
    return tuple(
        PreparedDevice(
            one.pool_name,
            one.device_name,
            tuple(one.request_names),
            tuple(one.cdi_device_ids),
            one.share_id if one.HasField("share_id") else None,
        )
        for one in devices
    )


def _metric_code(code: grpc.StatusCode) -> str:
    """As Go names it: `DeadlineExceeded` for DEADLINE_EXCEEDED."""
    if code in (grpc.StatusCode.OK, grpc.StatusCode.CANCELLED):
        return "OK" if code is grpc.StatusCode.OK else "Canceled"
    return str(code.name).title().replace("_", "")

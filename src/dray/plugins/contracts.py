"""The methods of the plugin services: full names on the wire, message types, and how versions are negotiated.

A plugin advertises versions such as `v1.DRAPlugin`; the gRPC service behind that has a longer name (`DRA_SERVICES`).
The messages of v1 and v1beta1 are the same bytes but for `share_id`, which v1beta1 does not have; so both sides use the
types of v1 with either version, and a server leaves `share_id` out of answers in v1beta1.

    answer = await contracts.call(channel, contracts.PREPARE["v1.DRAPlugin"], request, timeout=45.0)
    server.add_generic_rpc_handlers(contracts.services(contracts.answer(contracts.GET_INFO, get_info), ...))
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import grpc
import grpc.aio
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from dray.plugins.entries import LONG, TooManyEntries, check_depths, check_entries
from dray.plugins.generated import dra_v1_pb2 as dra
from dray.plugins.generated import health_v1_pb2 as health
from dray.plugins.generated import registration_pb2 as registration

Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=Message)

PLUGIN_TYPE: Final = "DRAPlugin"
SEED_PLUGIN_TYPE: Final = "ResourcePlugin"
PLUGIN_TYPES: Final = (PLUGIN_TYPE, SEED_PLUGIN_TYPE)
"""What `PluginInfo.type` may be: the shipped name, and the one of the proposal (SVS-54)."""

CALL_SECONDS: Final = 45.0
"""How long a node waits for an answer to prepare or unprepare."""
HEALTH_SECONDS: Final = 30.0
"""How long a health report counts that does not say so itself."""


class Stream(Generic[A]):
    """Answers as they come."""

    def __init__(self, method: Method[Any, A], answers: Any) -> None:
        self._method = method
        self._answers = answers

    async def __aiter__(self) -> AsyncIterator[A]:
        """One after the other."""
        async for data in self._answers:
            yield await self._method.receive(data)

    def cancel(self) -> bool:
        """Ends the call."""
        return bool(self._answers.cancel())


class Handler(NamedTuple):
    """What answers one method of a server."""

    method: Method[Any, Any]
    handler: grpc.RpcMethodHandler


class Method(Generic[Q, A]):
    """One method. `service` and `name` make up its path on the wire."""

    def __init__(self, service: str, name: str, request: type[Q], answer: type[A]) -> None:
        self.service = service
        self.name = name
        self.request = request
        self.answer = answer

    @property
    def path(self) -> str:
        """As HTTP/2 has it in `:path`."""
        return f"/{self.service}/{self.name}"

    def read_answer(self, data: bytes) -> A:
        """What a plugin said. Raises TooManyEntries or DecodeError."""
        check_entries(data)
        return self.answer.FromString(data)

    async def receive(self, data: bytes) -> A:
        """What a plugin said; what cannot be read is None, in spite of the type, as with gRPC itself."""
        try:
            if len(data) > LONG:
                await asyncio.to_thread(check_depths, data, cast(Descriptor, self.answer.DESCRIPTOR))
            return self.read_answer(data)
        except (TooManyEntries, DecodeError):
            return cast(A, None)


def _prepare(service: str) -> Method[dra.NodePrepareResourcesRequest, dra.NodePrepareResourcesResponse]:
    return Method(service, "NodePrepareResources", dra.NodePrepareResourcesRequest, dra.NodePrepareResourcesResponse)


def _unprepare(service: str) -> Method[dra.NodeUnprepareResourcesRequest, dra.NodeUnprepareResourcesResponse]:
    return Method(
        service, "NodeUnprepareResources", dra.NodeUnprepareResourcesRequest, dra.NodeUnprepareResourcesResponse
    )


def _watch_health(service: str) -> Method[health.NodeWatchResourcesRequest, health.NodeWatchResourcesResponse]:
    return Method(service, "NodeWatchResources", health.NodeWatchResourcesRequest, health.NodeWatchResourcesResponse)


_REGISTRATION: Final = "pluginregistration.Registration"
GET_INFO: Final = Method(_REGISTRATION, "GetInfo", registration.InfoRequest, registration.PluginInfo)
NOTIFY: Final = Method(
    _REGISTRATION,
    "NotifyRegistrationStatus",
    registration.RegistrationStatus,
    registration.RegistrationStatusResponse,
)

DRA_SERVICES: Final = {
    "v1.DRAPlugin": "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
    "v1beta1.DRAPlugin": "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
}
"""The service of each version that a plugin may advertise. The plugin's order decides which one a node uses."""
HEALTH_SERVICES: Final = {
    "v1.DRAResourceHealth": "v1.DRAResourceHealth",
    "v1alpha1.DRAResourceHealth": "v1alpha1.DRAResourceHealth",
}
"""The health services, the one that a node prefers first."""

PREPARE: Final = {version: _prepare(service) for version, service in DRA_SERVICES.items()}
UNPREPARE: Final = {version: _unprepare(service) for version, service in DRA_SERVICES.items()}
WATCH_HEALTH: Final = {version: _watch_health(service) for version, service in HEALTH_SERVICES.items()}


def choose_dra_version(supported: tuple[str, ...]) -> str | None:
    """The first version of a plugin's list that is known; None if there is none."""
    return next((version for version in supported if version in DRA_SERVICES), None)


def choose_health_version(supported: tuple[str, ...]) -> str | None:
    """The newest health service that a plugin has; None if it has none."""
    return next((version for version in HEALTH_SERVICES if version in supported), None)


async def call(channel: grpc.aio.Channel, method: Method[Q, A], request: Q, *, timeout: float) -> A:
    """One call and its answer. Raises grpc.aio.AioRpcError (DEADLINE_EXCEEDED after `timeout` seconds)."""
    invoke = channel.unary_unary(method.path, request_serializer=method.request.SerializeToString)
    return await method.receive(await invoke(request, timeout=timeout))


def stream(channel: grpc.aio.Channel, method: Method[Q, A], request: Q) -> Stream[A]:
    """A call with answers without end. Iterating raises grpc.aio.AioRpcError."""
    invoke = channel.unary_stream(method.path, request_serializer=method.request.SerializeToString)
    return Stream(method, invoke(request))


def answer(method: Method[Q, A], function: Callable[[Q, grpc.aio.ServicerContext], Awaitable[A]]) -> Handler:
    """Answers every call with what a coroutine function returns."""
    return Handler(
        method,
        grpc.unary_unary_rpc_method_handler(
            function,
            request_deserializer=method.request.FromString,
            response_serializer=method.answer.SerializeToString,
        ),
    )


def answer_stream(method: Method[Q, A], function: Callable[[Q, grpc.aio.ServicerContext], AsyncIterator[A]]) -> Handler:
    """Answers every call with what an asynchronous generator yields."""
    return Handler(
        method,
        grpc.unary_stream_rpc_method_handler(
            function,
            request_deserializer=method.request.FromString,
            response_serializer=method.answer.SerializeToString,
        ),
    )


def services(*handlers: Handler) -> tuple[grpc.GenericRpcHandler, ...]:
    """The services that handlers make up, for `Server.add_generic_rpc_handlers`."""
    grouped: dict[str, dict[str, grpc.RpcMethodHandler]] = {}
    for handler in handlers:
        grouped.setdefault(handler.method.service, {})[handler.method.name] = handler.handler
    return tuple(grpc.method_handlers_generic_handler(service, methods) for service, methods in grouped.items())

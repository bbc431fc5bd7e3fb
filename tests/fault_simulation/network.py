"""Between components and the API server: calls that fail, get lost, come late; watches that break and lag.

component ─▶ Connection ─▶ on its way ─▶ server ─▶ on its way back ─▶ component
                              │ refused     │ carried out, but the answer is lost
                              └ the caller gives up, or dies; the request arrives all the same, later
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, TypeVar, cast

import msgspec

from dray.api.generated.core import Event, Pod
from dray.api.kinds import PODS
from dray.api.meta import DeleteOptions, Object
from dray.api.pods import binding_of
from dray.api.registry import Kind, by_kind
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.client import PatchFormat, WatchExpired
from dray.client.interface import ObjectList, WatchEvent
from dray.server.local import LocalClient
from fault_simulation.api_server import ApiServer
from fault_simulation.server_group import ServerGroup

T = TypeVar("T", bound=Object)
R = TypeVar("R")
Call = Callable[[LocalClient], Awaitable[R]]

PATIENCE = 5.0
"""Seconds after which a caller whose request is stuck gives up."""
LATEST = 15.0
"""Seconds that a request may be stuck before it arrives."""
SLOWEST = 1.0
LONGEST_STALL = 6.0
USUAL = 0.004


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """How often things go wrong: shares of calls, of watches, and of their events."""

    refuse: float = 0.0
    lose: float = 0.0
    delay: float = 0.0
    conflict: float = 0.0
    slow: float = 0.0
    expire: float = 0.0
    drop: float = 0.0
    stall: float = 0.0


CALM = Faults()


class Request(msgspec.Struct, frozen=True):
    """A write that a component asks for."""

    process: str
    account: str
    verb: str
    kind: Kind
    namespace: str
    name: str
    subresource: str = ""
    content: Any = None
    """The object, patch, or options that come with it."""


Listener = Callable[[Request], None]


class Network:
    """Carries all calls of a simulation. `faults` may change at any time."""

    def __init__(self, server: ApiServer | ServerGroup, randomness: random.Random) -> None:
        self.server = server
        self.random = randomness
        self.faults = CALM
        self.on_sent: list[Listener] = []
        """Hear of a write when its component asks for it."""
        self.on_arrival: list[Listener] = []
        """Hear of a write when it reaches the server, which may be later, and more than once if it is repeated."""
        self.on_fault: list[Callable[[str], None]] = []
        """Hear of what goes wrong, by the names that `coverage.FAULTS` has."""
        self._late: set[asyncio.Task[None]] = set()

    async def call(self, account: str, call: Call[R], request: Request | None) -> R:
        """Makes a call; `request` describes it if it is a write. Raises what the component gets to hear."""
        fate, faults = self.random.random(), self.faults
        if request is not None:
            for listener in self.on_sent:
                listener(request)
        await self._travel(account, call, request)
        if self._falls(fate, faults.refuse):
            self._tell("refused")
            raise self._failure()
        if request is not None:
            if self._falls(fate - faults.refuse, faults.delay):
                self._tell("stuck")
                self._arrive_later(account, call, request)
                await asyncio.sleep(PATIENCE)
                raise TimeoutError("no answer")
            if request.verb in ("update", "patch") and self._falls(
                fate - faults.refuse - faults.delay, faults.conflict
            ):
                self._tell("conflict")
                raise ApiError(409, "Conflict", "somebody else was faster")
        answer = await self._arrive(account, call, request)
        if self._falls(1 - fate, faults.lose):
            self._tell("answer lost")
            await asyncio.sleep(self.random.uniform(0, PATIENCE))
            raise TimeoutError("the answer was lost")
        return answer

    def _tell(self, fault: str) -> None:
        for listener in self.on_fault:
            listener(fault)

    async def _travel(self, account: str, call: Call[R], request: Request | None) -> None:
        seconds = self.random.uniform(0, USUAL)
        if self._falls(self.random.random(), self.faults.slow):
            self._tell("slow")
            seconds = self.random.uniform(0, SLOWEST)
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            if request is not None and self.random.random() < 0.5:
                self._arrive_later(account, call, request)  # sent before its sender died
            raise

    async def _arrive(self, account: str, call: Call[R], request: Request | None) -> R:
        client = self.server.connect(account)
        if request is not None:
            for listener in self.on_arrival:
                listener(request)
        try:
            return await call(client)
        except asyncio.CancelledError:
            if _is_ending():
                raise
            raise ConnectionResetError("the server has died") from None

    def _arrive_later(self, account: str, call: Call[Any], request: Request) -> None:
        delay = self.random.uniform(0, LATEST)

        async def arrive() -> None:
            await asyncio.sleep(delay)
            with suppress(ApiError, OSError):  # nobody is there to hear of it
                await self._arrive(account, call, request)

        task = asyncio.get_running_loop().create_task(arrive())
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    def _failure(self) -> Exception:
        failures: list[Exception] = [
            ConnectionResetError("connection reset"),
            ApiError(503, "ServiceUnavailable", "the server is busy"),
            ApiError(429, "TooManyRequests", "too many requests"),
            ApiError(500, "InternalError", "something is wrong"),
        ]
        return self.random.choice(failures)

    @staticmethod
    def _falls(fate: float, share: float) -> bool:
        return 0 <= fate < share

    async def watch(
        self, account: str, follow: Callable[[LocalClient], AsyncIterator[WatchEvent]]
    ) -> AsyncIterator[WatchEvent]:
        """Events in order, late now and then, until the watch breaks."""
        if self._falls(self.random.random(), self.faults.expire):
            self._tell("watch expired")
            raise WatchExpired("too old a revision")
        async with aclosing(cast(Any, follow(self.server.connect(account)))) as events:
            async for event in events:
                fate = self.random.random()
                if self._falls(fate, self.faults.drop):
                    self._tell("watch dropped")
                    raise ConnectionResetError("connection reset")
                if self._falls(1 - fate, self.faults.stall):
                    self._tell("watch stalled")
                    await asyncio.sleep(self.random.uniform(0, LONGEST_STALL))
                yield event


def _is_ending() -> bool:
    """Whether the caller was told to end: a server that dies ends what it does for others with the same."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class Connection:
    """A client as one component uses it. When its process has died, it does nothing any more."""

    def __init__(self, network: Network, account: str, process: str, is_alive: Callable[[], bool]) -> None:
        self._network = network
        self._account = account
        self._process = process
        self._is_alive = is_alive

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        return await self._call(lambda client: client.get(kind, namespace, name))

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> ObjectList:
        return await self._call(lambda client: client.list(kind, namespace, labels=labels, fields=fields))

    async def watch(
        self, kind: Kind, namespace: str = "", *, revision: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent]:
        def follow(client: LocalClient) -> AsyncIterator[WatchEvent]:
            return client.watch(kind, namespace, revision=revision, labels=labels, fields=fields)

        async with aclosing(cast(Any, self._network.watch(self._account, follow))) as events:
            async for event in events:
                self._check_alive()
                yield event

    async def create(self, obj: T) -> T:
        request = self._request("create", obj, content=obj)
        return await self._call(lambda client: client.create(obj), request)

    async def update(self, obj: T, subresource: str = "") -> T:
        request = self._request("update", obj, subresource, obj)
        return await self._call(lambda client: client.update(obj, subresource), request)

    async def update_with_status(self, obj: T) -> T:
        request = self._request("update", obj, content=obj)
        return await self._call(lambda client: client.update_with_status(obj), request)

    async def bind_with_claims(
        self, pod: Pod, node: str, claims: Sequence[ResourceClaim]
    ) -> Sequence[ResourceClaim] | None:
        request = Request(
            self._process, self._account, "post", PODS, pod.metadata.namespace, pod.metadata.name, "binding",
            binding_of(pod, node),
        )  # fmt: skip
        return await self._call(lambda client: client.bind_with_claims(pod, node, claims), request)

    async def create_events(self, events: Sequence[Event]) -> Sequence[Event] | None:
        request = self._request("create", events[0], content=events[0])
        return await self._call(lambda client: client.create_events(events), request)

    async def create_claims(self, pod: Pod, claims: Mapping[str, ResourceClaim]) -> Sequence[ResourceClaim] | None:
        request = self._request("update", pod, "status", pod)
        return await self._call(lambda client: client.create_claims(pod, claims), request)

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Any,
        *,
        format: PatchFormat = PatchFormat.MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        def send(client: LocalClient) -> Awaitable[Object]:
            return client.patch(
                kind, namespace, name, patch,
                format=format, subresource=subresource, field_manager=field_manager, force=force,
            )  # fmt: skip

        request = Request(self._process, self._account, "patch", kind, namespace, name, subresource, patch)
        return await self._call(send, request)

    async def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None) -> None:
        request = Request(self._process, self._account, "delete", kind, namespace, name, "", options)
        await self._call(lambda client: client.delete(kind, namespace, name, options), request)

    async def delete_collection(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> None:
        for obj in (await self.list(kind, namespace, labels=labels, fields=fields)).items:
            await self.delete(kind, obj.metadata.namespace, obj.metadata.name)

    async def post(
        self, kind: Kind, namespace: str, name: str, subresource: str, body: Mapping[str, Any] | Object
    ) -> dict[str, Any]:
        request = Request(self._process, self._account, "post", kind, namespace, name, subresource, body)
        return await self._call(lambda client: client.post(kind, namespace, name, subresource, body), request)

    def _request(self, verb: str, obj: Object, subresource: str = "", content: Any = None) -> Request:
        kind, meta = by_kind(obj.api_version, obj.kind), obj.metadata
        return Request(self._process, self._account, verb, kind, meta.namespace, meta.name, subresource, content)

    async def _call(self, call: Call[R], request: Request | None = None) -> R:
        self._check_alive()
        answer = await self._network.call(self._account, call, request)
        self._check_alive()
        return answer

    def _check_alive(self) -> None:
        if not self._is_alive():
            raise asyncio.CancelledError("the process has died")

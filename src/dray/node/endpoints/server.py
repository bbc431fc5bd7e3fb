"""The node's HTTPS server: one table from path to what is done."""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
import time
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from dray.api import codec
from dray.api.generated.core import Pod
from dray.api.pods import containers_of
from dray.api.status import ApiError
from dray.api.times import Time
from dray.client import Informer
from dray.node.endpoints import commands, ports, serving_certificate
from dray.node.endpoints.callers import Callers
from dray.node.endpoints.serving_certificate import Serving
from dray.node.runtime.console import Console, NotThere
from dray.node.runtime.log_reader import LogOptions
from dray.process.health import TEXT
from dray.process.http import Answer, Limits, Listener, Request, Response, Server, Stream
from dray.streams import port_forward, remote_command
from dray.streams.sessions import Session

log = logging.getLogger(__name__)

DEFAULT_PORT: Final = 10250
MOST_CONNECTIONS: Final = 1000
MOST: Final = 2**63 - 1
"""As a number in a query, which has 64 bits with clients."""
PROXY: Final = "proxy"
_SUBRESOURCES: Final = {"pods": "pods", "healthz": "healthz"}
"""What is asked about some paths; all others are `nodes/proxy`."""
_CONVERSATIONS: Final = ("exec", "attach", "portForward")
"""WebSockets begin with a GET, but who may only read must not type: these need `create`."""
_VERBS: Final = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class EndpointSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to serve. Without a `port` it is a kubelet's if that is free, else any; without a certificate, an own one."""

    port: int | None = None
    authority: bytes | None = None
    """Who signs the certificates of clients, PEM."""
    certificate: Path | None = None
    key: Path | None = None


async def serve(
    settings: EndpointSettings,
    pods: Informer[Pod],
    console: Console | None,
    callers: Callers,
    address: str,
    root: Path,
) -> Endpoints:
    """Endpoints that listen. Raises CertificateMissing or OSError."""
    if settings.certificate is not None and settings.key is not None:
        serving = Serving(settings.certificate, settings.key)
    else:
        serving = await asyncio.to_thread(serving_certificate.ensure, root, callers.node, address)
    endpoints = Endpoints(pods, console, callers)
    endpoints.fingerprint = serving.fingerprint
    endpoints.port = await endpoints.start(address, settings.port, serving.context(settings.authority))
    return endpoints


class Endpoints:
    """Serves from `start` to `stop`."""

    def __init__(self, pods: Informer[Pod], console: Console | None, callers: Callers) -> None:
        self.port = 0
        self.fingerprint = ""
        self._pods = pods
        self._console = console
        self._callers = callers
        self._server: Server | None = None

    async def start(self, address: str, port: int | None, context: ssl.SSLContext) -> int:
        """Listens, and returns the port. Without one, it is a kubelet's if that is free. Raises OSError."""
        self._server = Server(self._answer, Limits(connections=MOST_CONNECTIONS))
        try:
            return await self._listen(address, DEFAULT_PORT if port is None else port, context)
        except OSError as error:
            if port is not None or error.errno != errno.EADDRINUSE:
                raise
            return await self._listen(address, 0, context)

    async def stop(self) -> None:
        """Ends all conversations."""
        if self._server is not None:
            await self._server.stop(patience=0.5)

    async def _listen(self, address: str, port: int, context: ssl.SSLContext) -> int:
        """On the node's own address, or on all if this machine does not know that one."""
        assert self._server is not None
        try:
            return await self._server.listen(Listener(address, port, context))
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            return await self._server.listen(Listener("0.0.0.0", port, context))  # as a kubelet does

    async def _answer(self, request: Request) -> Answer:
        first, *rest = request.path.strip("/").split("/")
        try:
            caller = await self._callers.identify(request)
            if caller is None:
                return Response(401, b"Unauthorized", TEXT)
            subresource = _SUBRESOURCES.get(first, PROXY)
            verb = "create" if first in _CONVERSATIONS else _VERBS.get(request.method, request.method.lower())
            if not await self._callers.may(caller, verb, subresource):
                why = f"Forbidden (user={caller.user}, verb={verb}, resource=nodes, subresource={subresource})"
                return Response(403, why.encode(), TEXT)
        except (ApiError, OSError, TimeoutError) as error:
            log.warning("cannot find out who asks for %s: %s", request.path, error)
            return Response(503, b"the API server cannot be asked who you are", TEXT)
        try:
            return await self._dispatch(request, first, rest)
        except NotThere as error:
            return Response(404, str(error).encode(), TEXT)
        except ValueError as error:
            return Response(400, str(error).encode(), TEXT)
        except OSError as error:  # no file to spare, or a disk that fails
            return Response(500, str(error).encode(), TEXT)

    async def _dispatch(self, request: Request, first: str, rest: list[str]) -> Answer:
        """Raises NotThere or ValueError."""
        if first == "healthz" and not rest:
            return Response(200, b"ok", TEXT)
        if first == "pods" and not rest:
            return self._list()
        if first == "containerLogs" and len(rest) == 3:
            return self._logs(request, *rest)
        if first in ("exec", "attach") and len(rest) in (3, 4):
            return self._command(request, first, rest)
        if first == "portForward" and len(rest) in (2, 3):
            pod = self._pod(*rest)
            connect = partial(ports.connect, self._needed_console(), pod.metadata.uid)
            return port_forward.answer(request, _values(request, "port") or _values(request, "ports"), connect)
        return Response(404, b"404 page not found", TEXT)

    def _list(self) -> Response:
        items = b",".join(codec.encode(pod) for pod in self._pods)
        return Response(200, b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[%b]}' % items)

    def _logs(self, request: Request, namespace: str, name: str, container: str) -> Answer:
        pod = self._pod(namespace, name)
        _check_container(pod, container)
        options = log_options(request.query, time.time())
        try:
            chunks = self._needed_console().log(pod.metadata.uid, container, options)
        except NotThere:
            what = f'previous terminated container "{container}" in pod "{name}" not found'
            waits = f'container "{container}" in pod "{name}" is waiting to start: {_waiting_reason(pod, container)}'
            return Response(400, (what if options.previous else waits).encode(), TEXT)
        return Stream(chunks, TEXT)

    def _command(self, request: Request, what: str, rest: list[str]) -> Answer:
        pod, container = self._pod(rest[0], rest[1], *rest[2:-1]), rest[-1]
        _check_container(pod, container)
        wanted = remote_command.wanted_by(request.query)
        console, uid = self._needed_console(), pod.metadata.uid
        command = tuple(_values(request, "command"))
        if what == "exec" and not command:
            raise ValueError("you must specify at least one command for the container")

        async def serve(session: Session) -> None:
            if what == "exec":
                await commands.execute(console, uid, container, command, wanted, session)
            else:
                await commands.attach(console, uid, container, wanted, session)

        return remote_command.answer(request, wanted, serve)

    def _pod(self, namespace: str, name: str, uid: str = "") -> Pod:
        found = self._pods.get(namespace, name)
        if found is None or (uid and found.metadata.uid != uid):
            raise NotThere("pod does not exist")
        return found

    def _needed_console(self) -> Console:
        if self._console is None:
            raise NotThere("this node runs no containers (--runtime none): there is nothing to look at")
        return self._console


def log_options(query: dict[str, str], now: float) -> LogOptions:
    """What a query wants of a log. Raises ValueError."""
    tail, limit = _number(query, "tailLines", 0), _number(query, "limitBytes", 1)
    seconds, moment = _number(query, "sinceSeconds", 1), query.get("sinceTime", "")
    if seconds is not None and moment:
        raise ValueError("at most one of sinceTime or sinceSeconds may be specified")
    since = now - seconds if seconds is not None else Time.parse(moment).datetime().timestamp() if moment else None
    return LogOptions(
        follow=_is_true(query, "follow"),
        previous=_is_true(query, "previous"),
        timestamps=_is_true(query, "timestamps"),
        tail_lines=tail,
        limit_bytes=limit,
        since=since,
    )


def _is_true(query: dict[str, str], name: str) -> bool:
    return query.get(name, "").lower() in ("1", "true")


def _number(query: dict[str, str], name: str, least: int) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{name}: {text[:64]!r} is not a number") from None
    if not least <= number <= MOST:
        raise ValueError(f"{name}: must be {least} to {MOST}")
    return number


def _values(request: Request, name: str) -> list[str]:
    """All values of a parameter."""
    query = request.uri.partition("?")[2]
    return [value for key, value in parse_qsl(query, keep_blank_values=True) if key == name]


def _check_container(pod: Pod, container: str) -> None:
    if all(one.name != container for one in containers_of(pod.spec)):
        raise NotThere(f'container "{container}" not found in pod "{pod.metadata.name}"')


def _waiting_reason(pod: Pod, container: str) -> str:
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if status.name == container and status.state.waiting is not None:
            return status.state.waiting.reason or "ContainerCreating"
    return "ContainerCreating"

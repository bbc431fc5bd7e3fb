"""Leads a request about a pod to its kubelet, and the answer back."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

from dray.api.generated.core import Node, Pod
from dray.api.kinds import NODES, PODS
from dray.api.nodes import is_simulated
from dray.process.health import TEXT
from dray.process.http import Answer, Duplex, Request, Response, Stream, Upgrade, relay
from dray.server import errors
from dray.server.engine import Engine
from dray.server.kubelets import simulated, translation
from dray.server.kubelets.connection import Conversation, KubeletTrust, ask
from dray.server.kubelets.questions import ATTACH, EXEC, LOG, PORT_FORWARD, Kubelet, Question, kubelet_of, question
from dray.server.routes import Route
from dray.streams import remote_command
from dray.streams.remote_command import VERSION_HEADER

_PASSED_ON: Final = (
    "upgrade",
    "connection",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-protocol",
    "sec-websocket-extensions",
)
_PASSED_BACK: Final = ("sec-websocket-accept", "sec-websocket-protocol", VERSION_HEADER)


class Kubelets(Protocol):
    """Answers what only a kubelet can."""

    async def answer(self, engine: Engine, route: Route, request: Request) -> Answer:
        """Raises ApiError."""
        ...


class NoKubelets:
    """A server that reaches none."""

    async def answer(self, _engine: Engine, route: Route, _request: Request) -> Answer:
        """Says so."""
        raise errors.no_containers(route.kind, route.name, route.subresource)


class KubeletProxy:
    """Leads to the kubelets of all nodes."""

    def __init__(self, trust: Callable[[], KubeletTrust]) -> None:
        """`trust` is asked for each connection: certificates are renewed."""
        self._trust = trust

    async def answer(self, engine: Engine, route: Route, request: Request) -> Answer:
        """Raises ApiError."""
        what = route.subresource
        if route.kind != PODS or what not in (LOG, EXEC, ATTACH, PORT_FORWARD):
            raise errors.no_containers(route.kind, route.name, what)
        pod = engine.get(PODS.resource, route.namespace, route.name)
        if not isinstance(pod, Pod):
            raise errors.not_found(PODS, route.name)
        asked = question(pod, what, request.uri)
        if not pod.spec.node_name:
            if what == LOG:
                return Response(200, b"", TEXT)  # nothing was written yet
            raise errors.bad_request(f"pod {route.name} does not have a host assigned")
        node = engine.get(NODES.resource, "", pod.spec.node_name)
        if not isinstance(node, Node):
            raise errors.not_found(NODES, pod.spec.node_name)
        if is_simulated(node):
            if what == LOG:
                return simulated.log(pod, asked.path.rpartition("/")[2])
            raise simulated.refused(pod, what)
        if what == LOG:
            return await self._log(kubelet_of(node), asked)
        return await self._upgrade(kubelet_of(node), what, asked, request)

    async def _log(self, kubelet: Kubelet, asked: Question) -> Answer:
        conversation = await ask(kubelet, self._trust(), "GET", asked.uri, (("Connection", "close"),))
        if conversation.code != 200:
            raise await _refused(conversation)

        async def chunks() -> AsyncIterator[bytes]:
            try:
                async for piece in conversation.body():
                    yield piece
            finally:
                conversation.close()

        return Stream(chunks(), TEXT)

    async def _upgrade(self, kubelet: Kubelet, what: str, asked: Question, request: Request) -> Answer:
        """Whatever protocol the client wants to speak with the kubelet, if that speaks it."""

        async def open_with(headers: tuple[tuple[str, str], ...]) -> Conversation:
            method = "POST" if request.method == "POST" else "GET"
            conversation = await ask(kubelet, self._trust(), method, asked.uri, headers)
            if conversation.code != 101:
                raise await _refused(conversation)
            return conversation

        if not request.header("upgrade"):
            raise errors.bad_request("Upgrade request required")
        if not kubelet.websockets:
            if what == PORT_FORWARD and translation.is_tunnel(request):
                return await translation.tunnel(request, open_with)
            if what != PORT_FORWARD and translation.is_newest_command(request):
                return await translation.command(request, remote_command.wanted_by(dict(asked.query)), open_with)
        conversation = await open_with(_headers(request))

        async def converse(duplex: Duplex) -> None:
            await relay(duplex, conversation.duplex())

        back = tuple((name, value) for name, value in conversation.headers if name.lower() in _PASSED_BACK)
        return Upgrade(conversation.header("upgrade"), converse, back)


def _headers(request: Request) -> tuple[tuple[str, str], ...]:
    """Those of the request that say which protocol is wanted; none that says who asks."""
    passed = [(name.title(), request.header(name)) for name in _PASSED_ON if request.header(name)]
    # Kubelets look at each of these headers, and not into them.
    versions = [one.strip() for one in request.header(VERSION_HEADER).split(",") if one.strip()]
    return (*passed, *(("X-Stream-Protocol-Version", one) for one in versions))


async def _refused(conversation: Conversation) -> errors.ApiError:
    """What a kubelet answered instead, as the API tells it."""
    body = b""
    try:
        with contextlib.suppress(OSError):
            body = await conversation.refusal()
    finally:
        conversation.close()
    text = body.decode(errors="replace").strip()
    if conversation.code == 400:
        return errors.bad_request(text)
    if conversation.code == 404:
        return errors.ApiError(404, "NotFound", text or "the kubelet knows nothing of it")
    return errors.internal(f"the kubelet answered {conversation.code}: {text}")

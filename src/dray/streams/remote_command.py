"""Exec and attach: standard streams, window sizes and the outcome of a command, as clients want to have them.

    WebSocket   one byte in front of each message says which channel it is of; v5 can also say that a channel has ended
    SPDY        a stream per channel, named in its headers

`answer` looks at what the client asks for and gives the conversation, whichever it is, to `serve` as a `Session`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dray.process.http import Answer, Duplex, Request, Response, Upgrade
from dray.streams import spdy, websocket
from dray.streams.sessions import ChannelSession, Serve, StreamSession, WantedStreams
from dray.streams.spdy import SpdyConnection
from dray.streams.websocket import WebSocket

VERSION_HEADER: Final = "x-stream-protocol-version"

WEBSOCKET_PROTOCOLS: Final = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
)
SPDY_PROTOCOLS: Final = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")


def wanted_by(query: dict[str, str]) -> WantedStreams:
    """What a query to a kubelet asks for. Raises ValueError."""
    stdin, stdout, stderr, tty = (query.get(name) in ("1", "true") for name in ("input", "output", "error", "tty"))
    if tty and stderr:
        stderr = False  # a terminal has one output
    if not (stdin or stdout or stderr):
        raise ValueError("you must specify at least 1 of stdin, stdout, stderr")
    return WantedStreams(stdin, stdout, stderr, tty)


def answer(request: Request, wanted: WantedStreams, serve: Serve) -> Answer:
    """The answer to a request for exec or attach: another protocol, or why there is none."""
    if websocket.is_asked_for(request):
        return _websocket_answer(request, wanted, serve)
    if request.header("upgrade").upper() == spdy.UPGRADE:
        return _spdy_answer(request, wanted, serve)
    return refusal("upgrade request required")


def refusal(message: str, code: int = 400) -> Response:
    """Why there is no conversation."""
    reason = {400: "BadRequest", 403: "Forbidden", 404: "NotFound", 500: "InternalError"}.get(code, "")
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return Response(code, msgspec.json.encode({**status, "message": message, "reason": reason, "code": code}))


def success() -> dict[str, Any]:
    """A command that ended well."""
    return {"metadata": {}, "status": "Success"}


def exited(code: int) -> dict[str, Any]:
    """A command that ended with an exit code."""
    if code == 0:
        return success()
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def failed(message: str) -> dict[str, Any]:
    """A command that did not run, or was not seen to end."""
    return {"metadata": {}, "status": "Failure", "reason": "InternalError", "message": message, "code": 500}


def _websocket_answer(request: Request, wanted: WantedStreams, serve: Serve) -> Answer:
    protocol = websocket.choose(request, WEBSOCKET_PROTOCOLS)
    if protocol is None:
        return refusal(f"none of the WebSocket protocols is known; {', '.join(WEBSOCKET_PROTOCOLS)} are")
    headers = websocket.accept_headers(request, protocol)
    if headers is None:
        return refusal("not a WebSocket handshake of version 13")

    async def converse(duplex: Duplex) -> None:
        session = ChannelSession(WebSocket(duplex), protocol, wanted)
        await session.run(serve)

    return Upgrade(websocket.UPGRADE, converse, headers)


def _spdy_answer(request: Request, wanted: WantedStreams, serve: Serve) -> Answer:
    offers = [one.strip() for one in request.header(VERSION_HEADER).split(",") if one.strip()]
    protocol = next((one for one in offers if one in SPDY_PROTOCOLS), "" if not offers else None)
    if protocol is None:
        return refusal(f"none of the stream protocols is known; {', '.join(SPDY_PROTOCOLS)} are", 403)

    async def converse(duplex: Duplex) -> None:
        session = StreamSession(SpdyConnection(duplex), protocol, wanted)
        await session.run(serve)

    headers = (("X-Stream-Protocol-Version", protocol),) if protocol else ()
    return Upgrade(spdy.UPGRADE, converse, headers)

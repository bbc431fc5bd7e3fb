"""HTTP/1.1 on asyncio: bytes in, `Request` out; `Response`, `Stream` or `Upgrade` in, bytes out.

    bytes → connection (httptools) → admission (by the head alone) → body → application → answer → bytes

Our own small protocol over httptools, because it is the fastest at hand, shows the client's certificate to the
application, and never buffers for a reader that does not read. What a client may cost is bounded: bytes of headers
while they arrive, bytes of bodies of all clients and of each caller, time to send them, connections, and the time that
a reader who stands still is waited for. Before a body is read, the application has seen the head and let it in.
An `Upgrade` takes the connection over: from then on it is a `Duplex`, bytes both ways.
"""

from dray.process.http.duplex import Duplex, SocketDuplex, relay
from dray.process.http.messages import (
    JSON,
    MAX_BODY_BYTES,
    MAX_HEADER_BYTES,
    Answer,
    Limits,
    Listener,
    LongResponse,
    Peer,
    Request,
    Response,
    Stream,
    Upgrade,
    failure,
)
from dray.process.http.server import Application, Server

__all__ = [
    "JSON",
    "MAX_BODY_BYTES",
    "MAX_HEADER_BYTES",
    "Answer",
    "Application",
    "Duplex",
    "Limits",
    "Listener",
    "LongResponse",
    "Peer",
    "Request",
    "Response",
    "Server",
    "SocketDuplex",
    "Stream",
    "Upgrade",
    "failure",
    "relay",
]

"""Heads that come again: a client sends the same headers with every request, and only the first line is another.

    request ─▶ parsed ─▶ its headers are remembered, byte by byte, with what the parser made of them
    next    ─▶ a plain first line, those very bytes, and a body as long as they say? ─▶ nothing is parsed again
               else ─▶ the parser

The parser decides what headers mean; here bytes are compared alone. Whatever is not plain is left to it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dray.process.http.messages import Request

LONGEST_BLOCK: Final = 4096
"""Bytes of headers that are remembered of a connection."""

_LINE: Final = re.compile(rb"(GET|HEAD|POST|PUT|PATCH|DELETE) (/[A-Za-z0-9/._~%?&=+:,-]{0,1000}) HTTP/1\.1\r\n")
_SPECIAL: Final = frozenset({"transfer-encoding", "upgrade", "expect"})
"""Headers that change what the bytes after them are."""


class Told(NamedTuple):
    """What a request says that needed no parser."""

    method: str
    uri: str
    body: bytes


class RepeatedHead(NamedTuple):
    """The headers of a request, up to and with the empty line that ends them."""

    block: bytes
    headers: dict[str, str]
    """What the parser made of it. Nobody changes it: requests share it."""
    length: int
    """Bytes of the body."""

    def read(self, data: bytes) -> Told | None:
        """The request that some bytes are, all of them; None if they are to be parsed."""
        line = _LINE.match(data)
        if line is None or not data.startswith(self.block, line.end()):
            return None
        start = line.end() + len(self.block)
        if len(data) != start + self.length:
            return None
        return Told(line[1].decode(), line[2].decode(), data[start:])


def remember(piece: bytes, request: Request) -> RepeatedHead | None:
    """The head of a request that was just parsed, if all of it, and nothing else, was in one piece."""
    line, end = _LINE.match(piece), piece.find(b"\r\n\r\n") + 4
    if line is None or end - line.end() > LONGEST_BLOCK or not _SPECIAL.isdisjoint(request.headers):
        return None
    length = len(piece) - end
    if length != int(request.headers.get("content-length") or 0):
        return None
    if request.headers.get("connection", "keep-alive").lower() != "keep-alive":
        return None
    return RepeatedHead(piece[line.end() : end], request.headers, length)

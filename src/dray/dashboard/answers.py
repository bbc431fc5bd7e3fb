"""What every answer of the dashboard has: headers that let nothing in from elsewhere, and failures as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from dray.api.struct import encode_value
from dray.process.http import Response, Stream

NDJSON: Final = "application/x-ndjson"
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS: Final = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
)
AT_ONCE: Final = 200
"""Entries of a list that are encoded at a time."""
NO_STORE: Final = (("Cache-Control", "no-store"),)


def encode(value: Any) -> bytes:
    """JSON."""
    return msgspec.json.encode(value, enc_hook=encode_value)


def encode_in_parts(value: Any) -> bytes:
    """JSON of what may be long, for a thread: of lists some entries at a time, for nobody else gets the interpreter
    while something is encoded."""
    return b"".join(_parts(value))


def _parts(value: Any) -> Iterator[bytes]:
    if not isinstance(value, dict):
        yield encode(value)
        return
    separator = b"{"
    for name, one in value.items():
        yield separator + encode(name) + b":"
        separator = b","
        yield from _parts_of_list(one) if isinstance(one, list) and len(one) > AT_ONCE else _parts(one)
    yield b"}" if value else b"{}"


def _parts_of_list(value: list[Any]) -> Iterator[bytes]:
    separator = b"["
    for start in range(0, len(value), AT_ONCE):
        yield separator + encode(value[start : start + AT_ONCE])[1:-1]
        separator = b","
    yield b"]"


async def long_document(make: Callable[[], Any]) -> Response:
    """What `make` gives, made and encoded beside the loop."""
    return _answer(200, await asyncio.to_thread(lambda: encode_in_parts(make())))


def document(value: Any, *, code: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """An answer that is nobody else's, and is not kept."""
    return _answer(code, encode(value), headers)


def _answer(code: int, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    return Response(code, body, headers=(*HEADERS, *NO_STORE, *headers))


def refusal(code: int, message: str) -> Response:
    """Why there is no answer."""
    return document({"error": message, "code": code}, code=code)


def stream(chunks: Any, ended: Any) -> Stream:
    """Lines of JSON that go on."""
    return Stream(chunks, NDJSON, (*HEADERS, *NO_STORE), ended)

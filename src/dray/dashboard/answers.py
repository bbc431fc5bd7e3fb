"""What every answer of the dashboard has: headers that let nothing in from elsewhere, and failures as JSON."""

from __future__ import annotations

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
NO_STORE: Final = (("Cache-Control", "no-store"),)


def encode(value: Any) -> bytes:
    """JSON."""
    return msgspec.json.encode(value, enc_hook=encode_value)


def document(value: Any, *, code: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """An answer that is nobody else's, and is not kept."""
    return Response(code, encode(value), headers=(*HEADERS, *NO_STORE, *headers))


def refusal(code: int, message: str) -> Response:
    """Why there is no answer."""
    return document({"error": message, "code": code}, code=code)


def stream(chunks: Any, ended: Any) -> Stream:
    """Lines of JSON that go on."""
    return Stream(chunks, NDJSON, (*HEADERS, *NO_STORE), ended)

"""Failures as answers: a Status object, with the headers that clients wait by."""

from __future__ import annotations

from dray.api import codec
from dray.process.http import Response
from dray.server.errors import ApiError, NotServed


def failure(error: ApiError) -> Response:
    """A failure as an answer."""
    if isinstance(error, NotServed):
        return Response(404, str(error).encode(), "text/plain; charset=utf-8")
    headers: tuple[tuple[str, str], ...] = ()
    details = error.status.details
    if details is not None and details.retry_after_seconds:
        headers = (("Retry-After", str(details.retry_after_seconds)),)
    return Response(error.code, codec.encode(error.status), headers=headers)

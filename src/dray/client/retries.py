"""Which failed requests are worth another try, and when."""

from __future__ import annotations

from collections.abc import Mapping

from dray.api.backoff import Backoff

ATTEMPTS = 6
BACKOFF = Backoff(first=0.1, longest=30.0)

_BUSY = frozenset({429, 503})
_UNWELL = frozenset({429, 500, 502, 503, 504})


def pause_before_retry(attempt: int, code: int, headers: Mapping[str, str], *, reads: bool) -> float | None:
    """Seconds to wait before trying again after attempt number `attempt` (from 1); None to give up.

    A server that says when to come back has not done anything, so writes are sent again, too. Without that only reads
    are: nobody knows what became of a write.
    """
    if attempt >= ATTEMPTS:
        return None
    after = _retry_after(headers)
    if code in _BUSY and after is not None:
        return min(after, BACKOFF.longest)
    if reads and code in _UNWELL:
        return BACKOFF.after(attempt)
    return None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The number of seconds in `Retry-After`; the form with a date is not what API servers send."""
    text = headers.get("Retry-After", "").strip()
    return float(text) if text.isascii() and text.isdigit() else None

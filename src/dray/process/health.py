"""`/livez`, `/readyz`, `/healthz`: `ok`, or which check fails and why.

`/readyz?verbose` lists every check in any case, `?exclude=NAME` leaves one out, `/readyz/NAME` is one check alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dray.api.meta import StatusDetails
from dray.api.status import ApiError
from dray.process.http import Answer, Request, Response

TEXT = "text/plain; charset=utf-8"

Check = Callable[[], str]
"""Returns what is wrong, empty if nothing is."""


def no_such_page() -> ApiError:
    """Nothing is served at the path."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", StatusDetails())


class Health:
    """The page of one health path and of the checks below it."""

    def __init__(self, path: str, checks: Mapping[str, Check]) -> None:
        """`path` is where the page is, such as `/readyz`."""
        self.path = path
        self._checks = checks

    async def page(self, request: Request) -> Answer:
        """Answers the path itself and those below it. Raises ApiError for a check that there is not."""
        name = request.path.removeprefix(self.path).strip("/")
        if name:
            return self._one(name)
        excluded = set(request.query.get("exclude", "").split(","))
        results = {name: check() for name, check in self._checks.items() if name not in excluded}
        failed = any(results.values())
        if not failed and "verbose" not in request.query:
            return Response(200, b"ok", TEXT)
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in results.items()]
        lines.append(f"{self.path.strip('/')} check {'failed' if failed else 'passed'}")
        return Response(500 if failed else 200, "\n".join(lines).encode() + b"\n", TEXT)

    def _one(self, name: str) -> Response:
        check = self._checks.get(name)
        if check is None:
            raise no_such_page()
        why = check()
        return Response(500, f"{name} failed: {why}\n".encode(), TEXT) if why else Response(200, b"ok", TEXT)

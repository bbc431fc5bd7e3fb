"""The pages of the server that are no resources: discovery, version, and those that are handed in."""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import msgspec

from dray import __version__
from dray.api.well_known import OWN_SERVER
from dray.process.http import Answer, Request, Response
from dray.server.discovery.groups import AGGREGATED, Discovery, etag, wants_aggregated
from dray.server.security.identity import Identity

Page = Callable[[Request, Identity], Coroutine[Any, Any, Answer]]
KUBERNETES_MINOR = 37


def version() -> dict[str, str]:
    """`/version`: the Kubernetes version whose behaviour is served, and dray's own."""
    return {
        "major": "1",
        "minor": str(KUBERNETES_MINOR),
        "gitVersion": f"v1.{KUBERNETES_MINOR}.0{OWN_SERVER}-{__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"linux/{platform.machine()}",
    }


def _json(value: Any) -> Response:
    return Response(200, msgspec.json.encode(value))


def _constant(make: Callable[[], Any]) -> Page:
    async def page(_request: Request, _caller: Identity) -> Answer:
        return _json(make())

    return page


def anybody(answer: Callable[[Request], Awaitable[Answer]]) -> Page:
    """A page that is the same whoever asks for it."""

    async def page(request: Request, _caller: Identity) -> Answer:
        return await answer(request)

    return page


class Pages:
    """Every page, by path."""

    def __init__(self, discovery: Discovery, exact: Mapping[str, Page], prefixes: Mapping[str, Page]) -> None:
        """`exact` are served at just their path, `prefixes` at everything below theirs."""
        self._discovery = discovery
        self._prefixes = prefixes
        self._exact: dict[str, Page] = {
            "/api": self._groups(discovery.api, core=True),
            "/apis": self._groups(discovery.apis, core=False),
            "/version": _constant(version),
            **exact,
        }

    def find(self, path: str) -> Page | None:
        """The page at a path, None if there is none."""
        if path.count("/") > 4 and path.startswith(("/api/", "/apis/")):
            return None  # deeper than discovery goes: a resource, as almost every request is
        page = self._exact.get(path) or self._exact.get(path.rstrip("/"))
        if page is not None:
            return page
        for prefix, found in self._prefixes.items():
            if path.startswith(prefix):
                return found
        return self._resources(path.strip("/").split("/"))

    def _resources(self, parts: list[str]) -> Page | None:
        """Discovery of one group or version: `/api/v1`, `/apis/apps`, `/apis/apps/v1`."""
        match parts:
            case ["api", version_]:
                found = self._discovery.resources("", version_)
            case ["apis", group]:
                found = self._discovery.group(group)
            case ["apis", group, version_]:
                found = self._discovery.resources(group, version_)
            case _:
                return None
        return None if found is None else _constant(lambda: found)

    def _groups(self, plain: Callable[[], Any], *, core: bool) -> Page:
        async def page(request: Request, _caller: Identity) -> Answer:
            if not wants_aggregated(request.header("accept")):
                return _json(plain())
            document = self._discovery.aggregated(core=core)
            tag = etag(document)
            if request.header("if-none-match") == tag:
                return Response(304, b"", AGGREGATED, (("ETag", tag),))
            headers = (("ETag", tag), ("Vary", "Accept"), ("Cache-Control", "public"))
            return Response(200, msgspec.json.encode(document), AGGREGATED, headers)

        return page

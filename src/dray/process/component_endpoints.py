"""The HTTP face of a component that is no API server: `/healthz`, `/livez`, `/readyz` and `/metrics`.

Plain HTTP without authentication, as for a scraper or a prober on the same machine; whoever listens on another address
than loopback does so on purpose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from dray.api.status import ApiError
from dray.process.health import TEXT, Health, no_such_page
from dray.process.http import Answer, Limits, Listener, Request, Response, Server

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Problems = Callable[[], Mapping[str, str]]
"""By part of the component, why it does not work now; an empty text if it does."""


class _Collected(Collector):
    """What collectors gave, for who writes it down."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        """The same again."""
        return self._families


async def metric_page(registries: Sequence[CollectorRegistry]) -> bytes:
    """The numbers of some registries as Prometheus reads them. They are read on the loop, and written beside it."""
    pages: list[CollectorRegistry] = []
    for registry in registries:
        pages.append(page := CollectorRegistry())
        page.register(_Collected(list(registry.collect())))
    return await asyncio.to_thread(lambda: b"".join(map(generate_latest, pages)))


class ComponentEndpoints:
    """Listens from `start` to `stop`."""

    def __init__(self, registry: CollectorRegistry, problems: Problems) -> None:
        """`problems` decide about readiness; a component that answers at all is alive."""
        self._registry = registry
        self._problems = problems
        self._server: Server | None = None
        ProcessCollector(registry=registry)

    async def start(self, bind: str, port: int) -> int:
        """The port that it listens on. Raises OSError if it is taken."""
        self._server = Server(self._answer, Limits(connections=100))
        return await self._server.listen(Listener(bind, port))

    async def stop(self) -> None:
        """Ends all connections."""
        if self._server is not None:
            await self._server.stop(patience=0.5)

    async def _answer(self, request: Request) -> Answer:
        if request.method != "GET":
            return Response(405, b"only GET\n", TEXT)
        if request.path == "/metrics":
            return Response(200, await metric_page((self._registry,)), CONTENT_TYPE)
        first = f"/{request.path.strip('/').partition('/')[0]}"
        alive = {"ping": lambda: ""}
        ready = {name: (lambda why=why: why) for name, why in self._problems().items()}
        pages = {"/livez": alive, "/healthz": alive, "/readyz": {**alive, **ready}}
        try:
            if first not in pages:
                raise no_such_page()
            return await Health(first, pages[first]).page(request)
        except ApiError as error:
            return Response(error.code, f"{error}\n".encode(), TEXT)

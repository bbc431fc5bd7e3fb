"""A drain goes on where it was when its server comes back; what does not pass ends it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import builders
from dray.api.generated.core import Pod
from dray.api.status import ApiError
from dray.controllers.eviction.drainer import AWAY_SECONDS, Drainer
from dray.eviction.drain import Drain, DrainTerms
from dray.process.clock import VirtualClock


class Server:
    """Evicts at once, unless something is wrong with it."""

    def __init__(self, trouble: Exception | None) -> None:
        self.trouble = trouble
        self.evicted: list[str] = []
        self.asked = 0

    async def post(self, _kind: Any, _namespace: str, name: str, *_: Any) -> None:
        self.asked += 1
        if self.trouble is not None:
            raise self.trouble
        self.evicted.append(name)


class Progress:
    """Two pods are to leave."""

    stands_still = False

    def __init__(self, server: Server) -> None:
        self.drain: Any = None
        self.trouble = ""
        self.changed = asyncio.Event()
        self.pods = self
        self._server = server
        self._pods = [builders.typed(builders.pod(name), Pod) for name in ("a", "b")]

    def on_change(self, _: Any) -> None:
        """Nothing changes."""

    async def ready(self) -> None:
        """It is."""

    looked_for_stop = ready

    def due(self) -> list[tuple[Pod, float]]:
        return [(pod, 0.0) for pod in self._pods if pod.metadata.name not in self._server.evicted]


def _begin(trouble: Exception) -> tuple[Server, Any, VirtualClock, asyncio.Task[None]]:
    server, clock = Server(trouble), VirtualClock()
    progress: Any = Progress(server)
    client: Any = server
    drainer = Drainer(client, clock, progress, Drain(DrainTerms()))
    return server, progress, clock, asyncio.ensure_future(drainer.run())


@pytest.mark.parametrize(
    "trouble", [ConnectionError("connection refused"), TimeoutError("no answer"), ApiError(503, "Unavailable", "later")]
)
async def test_a_server_that_is_away_for_a_while_is_waited_for(trouble: Exception) -> None:
    server, progress, clock, task = _begin(trouble)
    await clock.advance(100.0)
    assert progress.trouble == f"the server cannot be asked now ({trouble}); it is asked again"
    assert 5 < server.asked < 20
    server.trouble = None
    await clock.advance(10.0)
    assert (server.evicted, progress.trouble) == (["a", "b"], "")
    server.trouble = trouble
    task.cancel()


@pytest.mark.parametrize(
    ("trouble", "seconds"),
    [(ConnectionError("connection refused"), AWAY_SECONDS + 15.0), (ApiError(403, "Forbidden", "you may not"), 1.0)],
)
async def test_what_does_not_pass_ends_it(trouble: Exception, seconds: float) -> None:
    _, _, clock, task = _begin(trouble)
    await clock.advance(seconds)
    assert task.done()
    with pytest.raises(type(trouble)):
        await task

"""A replay to look at: a history on a server with the dashboard, on a clock that runs as fast as one likes.

The server has a directory that is gone afterwards, and serves plain HTTP on loopback: everything in it is made up.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dray.all_in_one.dashboards import admin_link
from dray.all_in_one.local_access import LocalAccess
from dray.api import kinds
from dray.api.generated.core import Pod
from dray.dashboard.app import PREFIX, Dashboard
from dray.process.tasks import cancel_all
from dray.replay.changes import Changes
from dray.replay.control_plane import DISABLED_PLUGINS, ControlPlane, client_of
from dray.replay.history import History
from dray.replay.new_nodes import NewNodes
from dray.replay.player import Player
from dray.server.instance import Instance, ServerSettings, decode_stored
from dray.store import LocalStore, MemoryBackend, Store


class FastClock:
    """The system's clock, from another start and so many times as fast, until it is stopped.

    It never goes beyond the end: a second in which the machine does something else may be an hour, after which all that
    happened would be long ago.
    """

    def __init__(self, start: float, end: float, speed: float) -> None:
        self._start = start
        self._length = end - start
        self._speed = speed
        self._began = time.monotonic()
        self._stopped: float | None = None

    def stop(self) -> None:
        """From now on it is always now, and whoever goes to sleep does not wake."""
        self._stopped = self.monotonic()

    def now(self) -> float:
        """Seconds since 1970, as they were recorded."""
        return self._start + self.monotonic()

    def monotonic(self) -> float:
        """Seconds of the replay."""
        if self._stopped is not None:
            return self._stopped
        return min((time.monotonic() - self._began) * self._speed, self._length)

    async def sleep(self, seconds: float) -> None:
        """Returns after so many seconds of the replay."""
        if self._stopped is not None:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(max(seconds, 0.0) / self._speed)


class _Onlooker:
    """For those who look on: it is as late as in the replay, and waiting takes as long as anywhere."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self, clock: FastClock) -> None:
        self.now = clock.now

    async def sleep(self, seconds: float) -> None:
        """Returns after so many seconds of the system."""
        await asyncio.sleep(max(seconds, 0.0))


class Stage:
    """A replay that can be looked at at `link`; `run` plays it to its end."""

    def __init__(self, link: str, play: asyncio.Task[None]) -> None:
        self.link = link
        self._play = play

    async def run(self) -> None:
        """Returns when the history is over. Everything stays as it is then, and can be looked at."""
        await asyncio.shield(self._play)


@asynccontextmanager
async def stage(history: History, changes: Changes, speed: float, port: int) -> AsyncIterator[Stage]:
    """Begins to play a history. Raises OSError if it cannot listen, and SettingsError."""
    with tempfile.TemporaryDirectory(prefix="dray-replay-") as directory:
        clock = FastClock(history.start, history.end, speed)
        settings = ServerSettings(
            directory=Path(directory) / "state", port=port, tls=False, disabled_plugins=DISABLED_PLUGINS
        )
        instance = Instance(settings, open_store=_in_memory, clock=clock)
        dashboard = Dashboard(LocalAccess(instance), _Onlooker(clock), is_encrypted=False)
        instance.mount(PREFIX, dashboard)
        try:
            await instance.start()
            async with _playing(instance, clock, history, changes) as play:
                yield Stage(admin_link(dashboard, instance), play)
        finally:
            await dashboard.close()
            await instance.stop()


def _in_memory(_settings: ServerSettings) -> Store:
    return LocalStore(MemoryBackend(), decode_stored)


@asynccontextmanager
async def _playing(
    instance: Instance, clock: FastClock, history: History, changes: Changes
) -> AsyncIterator[asyncio.Task[None]]:
    client = client_of(instance)
    control = ControlPlane(client, clock, changes.settings)
    player = Player(client, clock, history, changes.objects)
    control.informers.of(kinds.PODS, Pod).on_change(player.on_pod)
    new_nodes = NewNodes(player, clock, control.informers, changes.groups)
    await player.set_up()
    await control.follow()
    await control.start()
    growing = asyncio.create_task(new_nodes.run())

    async def play_to_the_end() -> None:
        await player.run(history.end)
        clock.stop()

    play = asyncio.create_task(play_to_the_end())
    try:
        yield play
    finally:
        await cancel_all([play, growing])
        await player.close()
        await control.stop()

"""Watches the registry directory: sockets that appear are registered, those that go are unregistered.

The directory is looked at twice a second, which costs a few microseconds and misses nothing: a socket that a restarted
driver has made anew under the same name is another file.
"""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from dray.api.backoff import Backoff
from dray.files import Directory, UnsafeFile
from dray.node import registration
from dray.node.drivers import Drivers, Instance, RegistrationRefused
from dray.node.registration import RegistrationFailed
from dray.process.tasks import cancel_all
from dray.reconcile import Clock

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.5
RETRY: Final = Backoff(first=0.5, longest=122.0)
DEEPEST: Final = 8
AT_ONCE: Final = 8
"""So many plugins are asked at the same time who they are."""
MOST: Final = 256
"""So many sockets are known at a time. A driver that makes thousands of them takes no files and no time from others."""
_PASSED_OVER: Final = (FileNotFoundError, NotADirectoryError, PermissionError, UnsafeFile)


class SocketFile(msgspec.Struct, frozen=True):
    """A socket in the registry directory; one that was made anew is not equal."""

    path: Path
    inode: int
    born: int


def find_sockets(path: Path) -> Iterator[SocketFile]:
    """The sockets in a directory and below, where only trusted users can put them.

    Hidden names, links and other files are passed over, as are unreadable places. Raises OSError if nobody can tell
    now, because the machine has no file to spare, for one.
    """
    try:
        with Directory.open(path) as directory:
            yield from _sockets(directory, 0)
    except _PASSED_OVER:
        return


def _sockets(directory: Directory, depth: int) -> Iterator[SocketFile]:
    for name in directory.names():
        if name.startswith("."):
            continue
        try:
            found = directory.status(name)
            if found is not None and stat.S_ISSOCK(found.st_mode):
                yield SocketFile(directory.path / name, found.st_ino, found.st_ctime_ns)
            elif found is not None and stat.S_ISDIR(found.st_mode) and depth < DEEPEST:
                with directory.child(name) as below:
                    yield from _sockets(below, depth + 1)
        except _PASSED_OVER:
            continue


class PluginWatch:
    """The loop. Each socket has a task of its own, so that one that hangs holds up no other."""

    def __init__(self, directory: Path, drivers: Drivers, clock: Clock) -> None:
        self._directory = directory
        self._drivers = drivers
        self._clock = clock
        self._tasks: dict[SocketFile, asyncio.Task[None]] = {}
        self._registered: dict[SocketFile, Instance] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._is_crowded = False

    async def run(self) -> None:
        """Watches until cancelled. Raises OSError if the directory cannot be made."""
        self._directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            while True:
                await self.look()
                await self._clock.sleep(LOOK_SECONDS)
        finally:
            await cancel_all(self._tasks.values())

    async def look(self) -> None:
        """Compares the directory with what is known. New sockets are taken in the order in which they were made."""
        try:
            there = await asyncio.to_thread(lambda: set(find_sockets(self._directory)))
        except OSError as error:  # whoever is registered is not gone for that
            log.warning("cannot look for plugins in %s: %s", self._directory, error)
            return
        for socket in [one for one in self._tasks if one not in there]:
            await self._forget(socket)
        new = sorted(there - self._tasks.keys(), key=lambda one: one.born)
        room = MOST - len(self._tasks)
        self._tell(len(new) > room)
        for socket in new[:room]:
            self._tasks[socket] = asyncio.get_running_loop().create_task(self._register(socket))

    def _tell(self, is_crowded: bool) -> None:
        """Says once that there are too many."""
        if is_crowded and not self._is_crowded:
            log.warning("there are more than %d sockets in %s: the others are not registered", MOST, self._directory)
        self._is_crowded = is_crowded

    async def _register(self, socket: SocketFile) -> None:
        pauses = RETRY.pauses()
        while True:
            try:
                async with self._turns:
                    self._registered[socket] = await registration.register(socket.path, self._drivers)
                return
            except (RegistrationRefused, RegistrationFailed) as error:
                log.warning("plugin %s is not registered: %s", socket.path, error)
            await self._clock.sleep(pauses.next())

    async def _forget(self, socket: SocketFile) -> None:
        task = self._tasks.pop(socket)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        instance = self._registered.pop(socket, None)
        if instance is not None:
            await self._drivers.remove(instance)

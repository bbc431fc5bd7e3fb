"""A pipe or terminal of a child, read and written on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from typing import Final

CHUNK: Final = 64 * 1024


class Descriptor:
    """One end of a pipe, or the master of a terminal. Implements `Duplex`; closes itself when nobody needs it."""

    def __init__(self, number: int) -> None:
        self._number = number
        os.set_blocking(number, False)

    @property
    def number(self) -> int:
        """For calls that need it; -1 if it is closed."""
        return self._number

    async def read(self) -> bytes:
        """What has come; nothing if nothing will."""
        while self._number >= 0:
            try:
                return os.read(self._number, CHUNK)
            except BlockingIOError:
                await self._wait(reading=True)
            except OSError as error:
                if error.errno == errno.EIO:  # a terminal that nobody has open any more
                    return b""
                raise
        return b""

    async def write(self, data: bytes) -> None:
        """Writes all of it; waits while nobody reads. Raises OSError if nobody ever will."""
        view = memoryview(data)
        while view:
            if self._number < 0:
                raise BrokenPipeError(errno.EPIPE, "it is closed")
            try:
                view = view[os.write(self._number, view) :]
            except BlockingIOError:
                await self._wait(reading=False)

    async def write_end(self) -> None:
        """Nothing more will be written."""
        self.close()

    def close(self) -> None:
        """Gives the descriptor back."""
        number, self._number = self._number, -1
        if number >= 0:
            with contextlib.suppress(RuntimeError):  # there may be no loop any more
                loop = asyncio.get_running_loop()
                loop.remove_reader(number)
                loop.remove_writer(number)
            os.close(number)

    def __del__(self) -> None:
        self.close()

    async def _wait(self, *, reading: bool) -> None:
        loop, number = asyncio.get_running_loop(), self._number
        ready: asyncio.Future[None] = loop.create_future()
        watch, forget = (loop.add_reader, loop.remove_reader) if reading else (loop.add_writer, loop.remove_writer)
        watch(number, wake, ready)
        try:
            await ready
        finally:
            if self._number == number:
                forget(number)


def wake(ready: asyncio.Future[None]) -> None:
    """What the loop calls when a descriptor is ready."""
    if not ready.done():
        ready.set_result(None)

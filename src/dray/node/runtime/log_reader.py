"""Reading the log of a container: from where, how much, with times or without, and on while it grows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Final

import msgspec

from dray.node.runtime.attempt import Attempt
from dray.node.runtime.log_times import KEPT, Times

CHUNK: Final = 64 * 1024
LONGEST_LINE: Final = 256 * 1024
"""A line that is longer is handed on in pieces."""
LOOK_SECONDS: Final = 0.1


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What of a log is wanted. `since` is in seconds of the epoch, `start` is a place in it."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: float | None = None
    start: int = 0
    look_seconds: float = LOOK_SECONDS


async def read_log(
    attempt: Attempt,
    options: LogOptions,
    has_ended: Callable[[], bool],
    now: Callable[[], float],
    *,
    to_complete: bool = False,
) -> AsyncIterator[bytes]:
    """The log in pieces, of whole lines while there are any; with `follow` until the container has ended.

    A log `to_complete` is read when the last of it is written, which may be a little after the container's end.
    """
    while to_complete and not has_ended():
        await asyncio.sleep(options.look_seconds)
    descriptor = await asyncio.to_thread(attempt.open_log)
    try:
        reader = _Reader(Times(attempt), descriptor, options, now)
        await asyncio.to_thread(reader.begin)
        left = options.limit_bytes
        while left is None or left > 0:
            ended = has_ended()  # looked at before reading: what it wrote last is read, too
            data = await asyncio.to_thread(reader.read, last=ended or not options.follow)
            if data:
                yield data if left is None else data[:left]
                left = None if left is None else left - len(data)
            elif ended or not options.follow:
                return
            else:
                await asyncio.sleep(options.look_seconds)
    finally:
        os.close(descriptor)


class _Reader:
    """Where in a log one is. Does file I/O: for threads."""

    def __init__(self, times: Times, descriptor: int, options: LogOptions, now: Callable[[], float]) -> None:
        self._times = times
        self._descriptor = descriptor
        self._options = options
        self._now = now
        self._at = 0
        self._rest = b""
        self._continues = False

    def begin(self) -> None:
        """Goes to where reading begins."""
        options = self._options
        size = os.fstat(self._descriptor).st_size
        self._at = max(self._start(size), options.start)
        if options.since is not None:
            self._times.read_on()
            self._at = self._line_start(self._times.place_at(options.since))
        if options.tail_lines is not None:
            self._at = self._tail(size, options.tail_lines)

    def read(self, *, last: bool) -> bytes:
        """What comes next; nothing if there is nothing yet. The `last` line needs no end."""
        data = os.pread(self._descriptor, CHUNK, self._at)
        self._at += len(data)
        if not self._options.timestamps:
            return data
        text = self._rest + data
        end = len(text) if (last and not data) or len(text) > LONGEST_LINE else text.rfind(b"\n") + 1
        self._rest = text[end:]
        if not end:
            return b"" if not data else self.read(last=last)
        return self._stamped(text[:end])

    def _stamped(self, text: bytes) -> bytes:
        self._times.read_on()
        at = self._at - len(self._rest) - len(text)
        made = []
        for line in _lines(text):
            at += len(line)
            if not self._continues:
                made.append(_time(self._times.time_of(at, self._now())))
            made.append(line)
            self._continues = not line.endswith(b"\n")
        return b"".join(made)

    def _start(self, size: int) -> int:
        """Where the log begins: what was there before may have been given back to the disk.

        A container can write wherever it likes in its log, and make it as long as it likes: no more of it is looked
        through than is kept.
        """
        try:
            first = os.lseek(self._descriptor, max(0, size - 2 * KEPT), os.SEEK_DATA) if size else 0
        except OSError:  # there is nothing but a hole
            return size
        if first == 0:
            return 0
        return first + os.pread(self._descriptor, CHUNK, first).find(b"\n") + 1

    def _line_start(self, place: int) -> int:
        """The start of the line that a place is in, not before where reading begins."""
        while place > self._at:
            begin = max(self._at, place - CHUNK)
            found = os.pread(self._descriptor, place - begin, begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            place = begin
        return self._at

    def _tail(self, size: int, lines: int) -> int:
        """Where the last lines begin, not before where reading begins. A line without an end counts as one."""
        if lines <= 0:
            return size
        place, wanted = size, lines
        if size and os.pread(self._descriptor, 1, size - 1) == b"\n":
            wanted += 1
        while place > self._at:
            begin = max(self._at, place - CHUNK)
            block = os.pread(self._descriptor, place - begin, begin)
            found = block.count(b"\n")
            if found >= wanted:
                at = len(block)
                for _ in range(wanted):
                    at = block.rfind(b"\n", 0, at)
                return begin + at + 1
            wanted -= found
            place = begin
        return self._at


def _lines(text: bytes) -> list[bytes]:
    """Lines by their newlines alone."""
    parts = text.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _time(seconds: float) -> bytes:
    """As Kubernetes writes it in front of a line."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f000Z ").encode()

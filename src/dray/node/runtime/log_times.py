"""When containers wrote what: the sizes of their logs over time.

Containers write to their logs themselves, so that nothing stands between them and the disk, and nothing is lost when
the agent ends. In exchange, lines have no time of their own. The kernel tells the agent when a log has grown; it notes
the size and the time, four times a second at most. What was written while no agent was there has the time of the last
of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

from dray.node.runtime.attempt import Attempt
from dray.reconcile import Clock

PAUSE: Final = 0.25
AT_ONCE: Final = 50
KEPT: Final = 50 * 1024 * 1024
KEPT_TIMES: Final = 16 * 1024 * 1024
"""Bytes of notes: a million."""
BLOCK: Final = 4096
SECTOR: Final = 512
"""Bytes of a block as the kernel counts how much a file takes."""
CHUNK: Final = 64 * 1024

_RECORD: Final = struct.Struct(">Qd")
_EVENT: Final = struct.Struct("iIII")
_MODIFIED: Final = 2
_PUNCH_HOLE: Final = 3
_FLAGS: Final = os.O_NONBLOCK | os.O_CLOEXEC


class Times:
    """The sizes of one log over time, as they were noted. `read_on` reads what has been noted since it was called."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._at = 0
        self._sizes = array("Q")
        self._times = array("d")

    def read_on(self) -> None:
        """Looks for new notes. What is not there, or was given back to the disk, is not known."""
        with contextlib.suppress(OSError), open(self._attempt.open_times(), "rb", buffering=0) as file:
            self._at = max(self._at, os.lseek(file.fileno(), self._at, os.SEEK_DATA))
            while data := os.pread(file.fileno(), CHUNK, self._at):
                whole = len(data) // _RECORD.size * _RECORD.size
                for size, time in _RECORD.iter_unpack(data[:whole]):
                    self._sizes.append(size)
                    self._times.append(time)
                self._at += whole
                if whole < CHUNK:
                    return

    def time_of(self, end: int, now: float) -> float:
        """When what ends at a place was there; `now` if that was not noted yet."""
        at = bisect_left(self._sizes, end)
        return self._times[at] if at < len(self._times) else now

    def place_at(self, time: float) -> int:
        """The place from which on all was written after a time."""
        at = bisect_right(self._times, time)
        return self._sizes[at - 1] if at else 0


class _Followed(NamedTuple):
    attempt: Attempt
    log: int


class LogTimes:
    """Follows the logs of running containers."""

    def __init__(self, clock: Clock, kept: int = KEPT) -> None:
        """Of each log, at least so many bytes are `kept`; twice as many are never on the disk for long."""
        self._clock = clock
        self._kept = kept
        self._inotify = -1
        self._followed: dict[int, _Followed] = {}
        self._sizes: dict[int, int] = {}
        self._due: set[int] = set()

    def follow(self, attempt: Attempt) -> None:
        """A container runs. What it wrote before is as old as the file."""
        if self._inotify < 0:
            self._start()
        with contextlib.suppress(OSError):
            log = attempt.open_log()
            watch = _libc.inotify_add_watch(self._inotify, f"/proc/self/fd/{log}".encode(), _MODIFIED)
            if watch < 0:
                os.close(log)
                return
            self._followed[watch] = _Followed(attempt, log)
            if os.fstat(log).st_size:
                self._note(watch, os.fstat(log).st_mtime)

    def stop(self, attempt: Attempt) -> None:
        """A container has ended."""
        for watch, followed in list(self._followed.items()):
            if followed.attempt is attempt:
                self._note(watch, self._clock.now())
                self._forget(watch)

    def close(self) -> None:
        """The agent ends."""
        for watch in list(self._followed):
            self._note(watch, self._clock.now())
            self._forget(watch)
        if self._inotify >= 0:
            asyncio.get_running_loop().remove_reader(self._inotify)
            os.close(self._inotify)
            self._inotify = -1

    def _start(self) -> None:
        self._inotify = _libc.inotify_init1(_FLAGS)
        if self._inotify >= 0:
            asyncio.get_running_loop().add_reader(self._inotify, self._grown)

    def _grown(self) -> None:
        """Some logs have grown: they are noted after a pause, in which they may grow further."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._inotify, 64 * 1024)
            at = 0
            while at + _EVENT.size <= len(data):
                watch, _, _, length = _EVENT.unpack_from(data, at)
                self._due.add(watch)
                at += _EVENT.size + length
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._inotify)
        loop.call_later(PAUSE, self._note_all)
        self._note_all(again=False)

    def _note_all(self, *, again: bool = True) -> None:
        if self._inotify < 0:
            return
        now, loop = self._clock.now(), asyncio.get_running_loop()
        for _ in range(min(len(self._due), AT_ONCE)):
            self._note(self._due.pop(), now)
        if self._due:  # others go on in between
            loop.call_soon(lambda: self._note_all(again=again))
        elif again:
            loop.add_reader(self._inotify, self._grown)

    def _note(self, watch: int, now: float) -> None:
        followed = self._followed.get(watch)
        if followed is None:
            return
        with contextlib.suppress(OSError):
            status = os.fstat(followed.log)
            if status.st_size != self._sizes.get(watch):
                self._sizes[watch] = status.st_size
                _note_size(followed.attempt, status.st_size, now)
            if _taken(status) > 2 * self._kept:
                self._free(followed, status.st_size - self._kept)

    def _free(self, followed: _Followed, end: int) -> None:
        """Gives the disk back what a log begins with, and when that was. Places stay what they are, after a hole.

        So a container that writes on and on goes on writing to the same file, and needs to know nothing of this. It is
        what the log takes of the disk that counts: a container can write where the hole is, and take room behind the
        end, which is given back by an end where it is already.
        """
        log = followed.attempt.open_log(to_write=True)
        try:
            _punch(log, end)
            status = os.fstat(log)
            if _taken(status) > 2 * self._kept:
                os.ftruncate(log, status.st_size)
        finally:
            os.close(log)
        with open(followed.attempt.open_times(), "rb", buffering=0) as file:
            count = os.fstat(file.fileno()).st_size // _RECORD.size
            useless = bisect_left(range(count), end, key=lambda index: _noted_size(file.fileno(), index))
        _punch_and_close(followed.attempt.open_times(to_write=True), useless * _RECORD.size)

    def _forget(self, watch: int) -> None:
        followed = self._followed.pop(watch)
        self._sizes.pop(watch, None)
        if self._inotify >= 0:
            _libc.inotify_rm_watch(self._inotify, watch)
        os.close(followed.log)


def _note_size(attempt: Attempt, size: int, now: float) -> None:
    """Writes down which size a log has. The oldest notes go: a log that shrinks and grows has no end of them."""
    times = attempt.open_times(to_write=True)
    try:
        os.write(times, _RECORD.pack(size, now))
        status = os.fstat(times)
        if _taken(status) > 2 * KEPT_TIMES:
            _punch(times, status.st_size - KEPT_TIMES)
    finally:
        os.close(times)


def _taken(status: os.stat_result) -> int:
    """What a file takes of the disk, whatever its size is."""
    return status.st_blocks * SECTOR


def _noted_size(times: int, index: int) -> int:
    size, _ = _RECORD.unpack(os.pread(times, _RECORD.size, index * _RECORD.size))
    return int(size)


def _punch(descriptor: int, end: int) -> None:
    """Gives the disk back whole blocks from the start of a file."""
    if end >= BLOCK:
        _libc.fallocate(descriptor, _PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(end - end % BLOCK))


def _punch_and_close(descriptor: int, end: int) -> None:
    try:
        _punch(descriptor, end)
    finally:
        os.close(descriptor)


_libc: Final = ctypes.CDLL(None, use_errno=True)

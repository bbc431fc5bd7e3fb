"""Logs as they are read: where they begin and end, when lines were written, and what is kept of them."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import struct
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.node.endpoints.server import log_options
from dray.node.runtime import log_times
from dray.node.runtime.attempt import Attempt, Attempts
from dray.node.runtime.console import DRAIN_SECONDS, Console
from dray.node.runtime.launch import Launch
from dray.node.runtime.log_reader import LogOptions, read_log
from dray.node.runtime.log_times import LogTimes, Times
from dray.node.runtime.rights import Rights
from patience import PATIENCE, eventually_async

KEEP_SIZE = 1
_libc = ctypes.CDLL(None)
LAUNCH = Launch(command=("true",), environment={}, rights=Rights(user=0, group=0))


class HandClock:
    """A wall clock that tests move."""

    def __init__(self) -> None:
        self.time = 1_000_000.0
        self.asked = 0

    def now(self) -> float:
        self.asked += 1
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(f"nobody sleeps here: {seconds}")


class Log:
    """A log that a test writes as a container does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.attempt: Attempt = Attempts(root).of("uid", "main", 0)
        with self.attempt.fresh(LAUNCH) as (standard, _):
            self._output = os.dup(standard.output)

    def write(self, text: bytes) -> None:
        os.write(self._output, text)

    def lock(self) -> None:
        """As who holds a terminal does."""
        fcntl.flock(self._output, fcntl.LOCK_EX)

    def close(self) -> None:
        if self._output >= 0:
            os.close(self._output)
        self._output = -1


@pytest.fixture
def log() -> Iterator[Log]:
    with tempfile.TemporaryDirectory(prefix="logs-") as directory:
        made = Log(Path(directory))
        yield made
        made.close()


def noted(log: Log, size: int) -> float:
    """When the log had a size, as far as that is noted."""
    times = Times(log.attempt)
    times.read_on()
    return times.time_of(size, 0.0)


async def read(log: Log, ended: Callable[[], bool] = lambda: True, **options: object) -> bytes:
    chunks: AsyncIterator[bytes] = read_log(log.attempt, LogOptions(**options), ended, lambda: 2_000_000.0)  # type: ignore[arg-type]
    return b"".join([chunk async for chunk in chunks])


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b".")), max_size=12), st.integers(0, 14))
def test_the_last_lines_are_the_last_lines(lines: list[bytes], tail: int) -> None:
    with tempfile.TemporaryDirectory(prefix="logs-") as directory:
        log = Log(Path(directory))
        log.write(b"\n".join(lines))
        whole = b"\n".join(lines)
        found = asyncio.run(read(log, tail_lines=tail))
        *complete, rest = whole.split(b"\n")
        expected = [line + b"\n" for line in complete] + ([rest] if rest else [])
        assert found == b"".join(expected[-tail:] if tail else [])
        log.close()


async def test_bytes_are_counted_with_their_times(log: Log) -> None:
    log.write(b"one\ntwo\n")
    assert await read(log, limit_bytes=5) == b"one\nt"
    assert await read(log, limit_bytes=0) == b""
    stamped = await read(log, timestamps=True)
    assert stamped == b"1970-01-24T03:33:20.000000000Z one\n1970-01-24T03:33:20.000000000Z two\n"
    assert await read(log, timestamps=True, limit_bytes=10) == stamped[:10]


async def test_lines_have_the_time_at_which_the_log_grew(log: Log) -> None:
    clock = HandClock()
    times = LogTimes(clock)
    times.follow(log.attempt)
    for moment, text in ((1_000_010.0, b"first\n"), (1_000_020.0, b"second\nthi"), (1_000_030.0, b"rd\n")):
        clock.time = moment
        log.write(text)
        size = os.fstat(log._output).st_size
        await eventually_async(lambda size=size: noted(log, size))  # type: ignore[misc]
    times.stop(log.attempt)
    times.close()
    found = (await read(log, timestamps=True)).splitlines()
    moments = [datetime.fromisoformat(line.split()[0].decode()[:26] + "+00:00").timestamp() for line in found]
    assert moments == [1_000_010.0, 1_000_020.0, 1_000_030.0]
    assert await read(log, since=1_000_010.0) == b"second\nthird\n"
    assert await read(log, since=1_000_025.0) == b"third\n"
    assert await read(log, since=1_000_030.0) == b""
    assert await read(log, since=1_000_005.0, tail_lines=1) == b"third\n"


async def test_what_was_written_while_nobody_looked_is_as_old_as_the_last_of_it(log: Log) -> None:
    log.write(b"unseen\n")
    os.utime(log._output, (0, 900_000.0))
    times = LogTimes(HandClock())
    times.follow(log.attempt)
    times.close()
    assert noted(log, 7) == 900_000.0


async def test_a_log_that_is_followed_ends_with_its_container(log: Log) -> None:
    over = False
    chunks = read_log(log.attempt, LogOptions(follow=True), lambda: over, lambda: 0.0)
    log.write(b"one\n")
    assert await anext(chunks) == b"one\n"
    waiting = asyncio.ensure_future(anext(chunks))
    log.write(b"two\n")
    assert await waiting == b"two\n"
    log.write(b"last")
    over = True
    assert await anext(chunks) == b"last"
    with pytest.raises(StopAsyncIteration):
        await anext(chunks)


def followed(log: Log, clock: HandClock, *, follow: bool = True, tail: int | None = None) -> AsyncIterator[bytes]:
    """The log of a container that has ended, as somebody sees it who is attached, or who only looks."""
    console = Console(Attempts(log.root), None, None, clock.now)  # type: ignore[arg-type]  # not needed to read
    return console.log("uid", "main", LogOptions(follow=follow, tail_lines=tail, look_seconds=0.0))


async def until_looked(clock: HandClock, waiting: asyncio.Future[bytes]) -> None:
    """Until it was looked some times whether there is more, and nothing came of it."""
    while clock.asked < 6:
        assert not waiting.done(), "it was not waited for"
        await asyncio.sleep(0)


async def test_what_a_terminal_showed_last_is_waited_for(log: Log) -> None:
    """Who holds the terminal of a container writes it down beside it, and may be slower than its end."""
    log.lock()
    clock = HandClock()
    chunks = followed(log, clock)
    waiting = asyncio.ensure_future(anext(chunks))
    await until_looked(clock, waiting)
    log.write(b"last")
    assert await waiting == b"last"
    log.close()
    with pytest.raises(StopAsyncIteration):
        await anext(chunks)


@pytest.mark.parametrize(("tail", "seen"), [(None, b"first\nlast"), (1, b"last")])
async def test_who_only_looks_sees_what_a_terminal_showed_last(log: Log, tail: int | None, seen: bytes) -> None:
    log.lock()
    log.write(b"first\n")
    clock = HandClock()
    waiting = asyncio.ensure_future(anext(followed(log, clock, follow=False, tail=tail)))
    await until_looked(clock, waiting)
    log.write(b"last")
    log.close()
    assert await waiting == seen


async def test_what_a_container_left_behind_with_its_terminal_is_not_waited_for(log: Log) -> None:
    log.lock()
    clock = HandClock()
    waiting = asyncio.ensure_future(anext(followed(log, clock)))
    await until_looked(clock, waiting)
    clock.time += DRAIN_SECONDS
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_of_a_log_that_goes_on_and_on_the_newest_part_is_kept(log: Log) -> None:
    clock = HandClock()
    times = LogTimes(clock, kept=64 * 1024)
    times.follow(log.attempt)
    written = b""
    for number in range(6):
        text = b"".join(b"%d %06d\n" % (number, line) for line in range(8000))
        written += text
        log.write(text)
        size = len(written)
        await eventually_async(lambda size=size: noted(log, size))  # type: ignore[misc]
    times.close()
    left = await read(log)
    assert written.endswith(left)
    assert left.startswith(b"5 ")
    assert 64 * 1024 - 4096 <= len(left) <= 192 * 1024
    assert os.fstat(log._output).st_blocks * 512 < 4 * 64 * 1024
    assert await read(log, tail_lines=2) == written[-18:]
    assert await read(log, tail_lines=10**9) == left
    assert await read(log, since=1.0) == left


async def test_whatever_a_container_does_to_its_log_takes_no_more_of_the_disk(log: Log) -> None:
    """It may write where the hole is, and take room behind the end: none of it makes the log longer."""
    kept = 64 * 1024
    taken = 16 * kept
    times = LogTimes(HandClock(), kept=kept)
    times.follow(log.attempt)
    fcntl.fcntl(log._output, fcntl.F_SETFL, os.O_WRONLY)
    try:
        os.ftruncate(log._output, taken)
        await eventually_async(lambda: noted(log, taken))
        for take in (
            lambda: os.pwrite(log._output, b"x" * taken, 0),
            lambda: os.posix_fallocate(log._output, 0, taken),
            lambda: _libc.fallocate(log._output, KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(2 * taken)),
        ):
            take()
            await eventually_async(lambda: os.fstat(log._output).st_blocks * 512 <= 2 * kept)
            assert os.fstat(log._output).st_size == taken, "places in the log stay what they are"
    finally:
        times.close()


async def test_the_sizes_of_a_log_that_shrinks_and_grows_take_no_more_of_the_disk(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_times, "KEPT_TIMES", 8192)
    times = LogTimes(HandClock())
    times.follow(log.attempt)
    try:
        for number in range(4000):
            os.ftruncate(log._output, 1 + number % 2)
            times._note(next(iter(times._followed)), float(number))
        file = log.attempt.open_times()
        assert os.fstat(file).st_blocks * 512 <= 3 * 8192
        os.close(file)
    finally:
        times.close()
    found = Times(log.attempt)
    found.read_on()
    assert found._times[-1] == 3999.0


async def test_what_was_given_back_is_not_looked_through(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container that has written for months has a hole of terabytes before its log."""
    os.ftruncate(log._output, 2**40)
    log.write(b"one\ntwo\nthree\n")
    read_at: list[int] = []
    pread = os.pread

    def noting(file: int, size: int, at: int) -> bytes:
        read_at.append(at)
        return pread(file, size, at)

    monkeypatch.setattr(os, "pread", noting)
    for options in ({"tail_lines": 100}, {"since": 5.0}, {"tail_lines": 100, "timestamps": True}):
        assert (await read(log, **options)).endswith(b"two\nthree\n" if "timestamps" not in options else b" three\n")
    assert len(read_at) < 20


async def test_a_container_that_makes_its_log_endless_holds_up_nobody_who_reads_it(log: Log) -> None:
    """It may write anywhere in the file: here at its start, long after that was given back to the disk."""
    fcntl.fcntl(log._output, fcntl.F_SETFL, os.O_WRONLY)
    os.pwrite(log._output, b"first\n", 0)
    os.ftruncate(log._output, 2**42)
    os.pwrite(log._output, b"one\ntwo\n", 2**42)
    async with asyncio.timeout(PATIENCE):
        assert (await read(log, tail_lines=100)).endswith(b"two\n")
        assert (await read(log, since=5.0)).endswith(b"two\n")


def test_of_earlier_attempts_the_previous_one_is_kept(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path)
    for number in (0, 1, 2, 3, 11, 12, 12):
        with attempts.of("uid", "main", number).fresh(LAUNCH):
            pass
    left = {path.name for path in (tmp_path / "pods" / "uid" / "main").iterdir()}
    assert {name.partition(".")[0] for name in left} == {"11", "12"}
    assert {"11.log", "12.log"} <= left


def test_notes_are_read_as_they_come_and_garbage_is_none(log: Log) -> None:
    times = Times(log.attempt)
    times.read_on()
    assert (times.time_of(1, 5.0), times.place_at(1.0)) == (5.0, 0)
    with open(log.attempt.open_times(to_write=True), "ab") as file:
        file.write(struct.pack(">Qd", 10, 100.0) + b"half")
    times.read_on()
    assert (times.time_of(10, 5.0), times.time_of(11, 5.0), times.place_at(100.0)) == (100.0, 5.0, 10)
    times.read_on()
    assert len(times._sizes) == 1


@pytest.mark.parametrize("name", ["tailLines", "limitBytes", "sinceSeconds"])
@pytest.mark.parametrize("text", ["-1", "x", str(2**63), "9" * 400, "9" * 5000])
def test_numbers_of_a_query_that_are_none(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=name):
        log_options({name: text}, 1e9)

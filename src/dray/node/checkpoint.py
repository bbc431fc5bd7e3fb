"""The agent's memory on disk: the claims of this node, with a checksum, written whole or not at all.

    ROOT/dra_manager_state            the newest
    ROOT/dra_manager_state.previous   the one before it, for when the newest turns out to be damaged

Both are enough to converge: what they say too much is unprepared, which drivers must take more than once; what they
say too little is prepared again, which they must, too (4381-163, 172).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from dray.files import Directory
from dray.node.claim_record import ClaimRecord

FILE: Final = "dra_manager_state"
PREVIOUS: Final = f"{FILE}.previous"
VERSION: Final = "dray/v1"
MAX_BYTES: Final = 1024 * 1024 * 1024
"""More than what all drivers together may say (`answers.MOST_OF_DRIVER`): what was written can be read again."""


class CheckpointError(Exception):
    """The state cannot be written, or nothing of what is there can be read. The message names the file."""


class State(msgspec.Struct, frozen=True):
    """Everything that a restart needs. `boot` is that of the machine when it was written."""

    boot: str
    claims: tuple[ClaimRecord, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """What was there at start, and what was wrong with it (empty if nothing)."""

    state: State
    problem: str = ""


class _File(msgspec.Struct, frozen=True):
    version: str
    checksum: str
    data: msgspec.Raw


def encode(state: State) -> bytes:
    """The content of the file."""
    data = msgspec.json.encode(state)
    return msgspec.json.encode(_File(VERSION, _checksum(data), msgspec.Raw(data)))


def decode(content: bytes) -> State:
    """The state in a file. Raises ValueError for anything but what `encode` made."""
    file = msgspec.json.decode(content, type=_File)
    if file.version != VERSION:
        raise ValueError(f"version {file.version!r} is not {VERSION!r}")
    if _checksum(bytes(file.data)) != file.checksum:
        raise ValueError("its checksum does not fit its content")
    return msgspec.json.decode(file.data, type=State)


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def load(root: Path, boot: str) -> Found:
    """The newest readable state. A damaged file is set aside, never deleted. Raises CheckpointError if it cannot be."""
    try:
        with Directory.open(root) as directory:
            return _load(directory, boot)
    except OSError as error:
        raise CheckpointError(f"cannot read {root}: {error.strerror}. Repair it, or give another --root.") from None


def _load(root: Directory, boot: str) -> Found:
    problem = ""
    for name in (FILE, PREVIOUS):
        path = root.path / name
        try:
            return Found(decode(_read(root, name)), problem)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CheckpointError(f"cannot read {path}: {error.strerror}. Repair it, or give another --root.") from None
        except (ValueError, msgspec.DecodeError, RecursionError) as error:
            aside = _set_aside(root, name)
            problem = problem or f"{path} is damaged ({error}); it was set aside as {aside}"
    return Found(State(boot), problem)


def _read(root: Directory, name: str) -> bytes:
    content = root.read(name, MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"larger than {MAX_BYTES} bytes")
    return content


def _set_aside(root: Directory, name: str) -> str:
    number = 1
    while root.status(aside := f"{name}.damaged-{number}") is not None:
        number += 1
    try:
        root.rename(name, aside)
    except OSError as error:
        raise CheckpointError(f"{root.path / name} is damaged and cannot be set aside: {error.strerror}") from None
    return aside


class Checkpoint:
    """Writes the state. Saves that come together share one write, so that many pods can start at once."""

    def __init__(self, root: Path, current: Callable[[], State]) -> None:
        """`current` gives the state as of now. Raises OSError."""
        self._root = Directory.open(root)
        self._current = current
        self._waiting: list[asyncio.Future[None]] = []
        self._writer: asyncio.Task[None] | None = None
        self.writes = 0

    async def save(self) -> None:
        """Returns when the state as of this call, or a later one, is on disk. Raises CheckpointError."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write())
        await future

    async def close(self) -> None:
        """Returns when nothing is being written any more."""
        if self._writer is not None:
            await asyncio.gather(self._writer, return_exceptions=True)

    async def _write(self) -> None:
        while self._waiting:
            served, self._waiting = self._waiting, []
            problem: CheckpointError | None = None
            try:
                await asyncio.to_thread(_replace, self._root, self._current())
                self.writes += 1
            except OSError as error:
                problem = CheckpointError(f"cannot write {self._root.path / FILE}: {error.strerror or error}")
            for future in served:
                if future.done():
                    continue
                if problem is None:
                    future.set_result(None)
                else:
                    future.set_exception(problem)
        self._writer = None


def _replace(root: Directory, state: State) -> None:
    """Old content or new, on disk when this returns; the old one stays as the previous."""
    fresh = f"{FILE}.new"
    root.replace(fresh, encode(state), sync=True)
    if root.status(FILE) is not None:
        root.rename(FILE, PREVIOUS)
    root.rename(fresh, FILE)

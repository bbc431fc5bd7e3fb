"""The driver under test, from outside: how it is started and ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from dray.driver_test.stage import Places

OUTPUT_BYTES: Final = 8192
OUTPUT_LINES: Final = 20
CANNOT_START: Final = (126, 127)
"""How shells end if the command that they are given is not there, or is no program."""
LOOK_SECONDS: Final = 0.02
LAST_WORDS_SECONDS: Final = 2.0
"""How long what a driver said is waited for after it ended: others that it started may keep the pipe open for ever."""
_PLACES: Final = "node, kubeconfig, registry, plugins, plugin, cdi"


class SubjectError(Exception):
    """The driver cannot be run at all. The message says what to change."""


class Subject(Protocol):
    """A driver. `can_restart` says whether the kit may start and end it."""

    can_restart: bool

    async def start(self, places: Places, extra: Mapping[str, str]) -> None:
        """Starts it, with more environment variables. Raises SubjectError if that is impossible."""
        ...

    def problem(self) -> str:
        """Why it does not run any more; empty while it does."""
        ...

    def said(self) -> tuple[str, ...]:
        """The last lines of what it wrote."""
        ...

    def check_start(self, *, registered: bool) -> None:
        """Raises SubjectError if it ended because it could not be started at all."""
        ...

    async def kill(self) -> None:
        """Ends it at once, with no chance to tidy up."""
        ...

    async def stop(self, patience: float) -> bool:
        """Asks it to end; whether it did within so many seconds. It is gone in any case."""
        ...


class RunningSubject:
    """A driver that runs already; the kit only talks to it."""

    can_restart = False

    def __init__(self, path: Path) -> None:
        """`path`: its registration socket."""
        self._path = path
        self._has_listened = False

    async def start(self, places: Places, extra: Mapping[str, str]) -> None:
        """Nothing to do."""
        del places, extra

    def problem(self) -> str:
        """Whether nobody listens any more, once somebody did."""
        listens = self._listens()
        self._has_listened = self._has_listened or listens
        return "" if listens or not self._has_listened else f"nobody listens on {self._path} any more"

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            try:
                probe.connect(str(self._path))
            except BlockingIOError:
                return True  # it is busy
            except OSError:
                return False
        return True

    def said(self) -> tuple[str, ...]:
        """Not known."""
        return ()

    def check_start(self, *, registered: bool) -> None:
        """It runs."""

    async def kill(self) -> None:
        """Left alone."""

    async def stop(self, patience: float) -> bool:
        """Left alone."""
        del patience
        return True


class CommandSubject:
    """A driver that the kit starts, as often as it needs to.

    In the command, {node}, {kubeconfig}, {registry}, {plugins}, {plugin} and {cdi} stand for where things are; the same
    is in the environment (NODE_NAME, KUBECONFIG, REGISTRY_DIR, PLUGIN_DIR, CDI_DIR), where drivers made with
    `dray.driver` find it.
    """

    can_restart = True

    def __init__(self, command: str) -> None:
        """Raises SubjectError for a command that is no command."""
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise SubjectError(f"the command cannot be read: {error}") from None
        if not self._words:
            raise SubjectError("the command is empty")
        self._process: asyncio.subprocess.Process | None = None
        self._running: asyncio.Task[None] | None = None
        self._said = b""

    async def start(self, places: Places, extra: Mapping[str, str]) -> None:
        """Starts the command in a process group of its own."""
        self._said = b""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._filled(places),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, **_environment(places), **extra},
                start_new_session=True,
            )
        except OSError as error:
            raise SubjectError(f"cannot run {self._words[0]}: {error.strerror}") from None
        self._running = asyncio.create_task(self._run(self._process))

    def problem(self) -> str:
        """How it ended, and the last that it said."""
        if self._process is None or self._process.returncode is None:
            return ""
        if self._running is not None and not self._running.done():
            return ""  # its last words are on their way
        code = self._process.returncode
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return f"the driver {how}: {' | '.join(self.said()[-3:]) or 'it said nothing'}"

    def said(self) -> tuple[str, ...]:
        """Of standard output and standard error, as they came."""
        return tuple(self._said.decode(errors="replace").strip().splitlines()[-OUTPUT_LINES:])

    def check_start(self, *, registered: bool) -> None:
        """A shell started, but not what it was to start."""
        code = self._process.returncode if self._process is not None else None
        if code in CANNOT_START and not registered:
            raise SubjectError(f"the command cannot be started: {' | '.join(self.said()[-1:]) or f'code {code}'}")

    async def kill(self) -> None:
        """SIGKILL for the whole group."""
        self._signal(signal.SIGKILL)
        await self._ended()

    async def stop(self, patience: float) -> bool:
        """SIGTERM, and SIGKILL if that does not help."""
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._ended(), patience)
        except TimeoutError:
            await self.kill()
            return False
        return True

    def _filled(self, places: Places) -> list[str]:
        values = places.by_name()
        try:
            return [word.format_map(values) for word in self._words]
        except (KeyError, ValueError, IndexError):
            raise SubjectError(f"the command has braces that stand for nothing; known are {_PLACES}") from None

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def _ended(self) -> None:
        if self._running is not None:
            await asyncio.shield(self._running)

    async def _run(self, process: asyncio.subprocess.Process) -> None:
        """Until the driver has ended and was heard out. Whoever it leaves behind is ended with it."""
        assert process.stdout is not None
        reading = asyncio.create_task(self._read(process.stdout))
        while process.returncode is None:  # `wait` of Python 3.11 waits for all who have its output, too
            await asyncio.sleep(LOOK_SECONDS)
        done, _ = await asyncio.wait([reading], timeout=LAST_WORDS_SECONDS)
        if not done:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.wait([reading], timeout=LAST_WORDS_SECONDS)
            reading.cancel()

    async def _read(self, output: asyncio.StreamReader) -> None:
        """Keeps the end of what the driver says; a driver must not block on a full pipe."""
        while data := await output.read(OUTPUT_BYTES):
            self._said = (self._said + data)[-OUTPUT_BYTES:]


def _environment(places: Places) -> dict[str, str]:
    return {
        "NODE_NAME": places.node,
        "KUBECONFIG": str(places.kubeconfig),
        "REGISTRY_DIR": str(places.registry),
        "PLUGIN_DIR": str(places.plugin),
        "CDI_DIR": str(places.cdi),
    }

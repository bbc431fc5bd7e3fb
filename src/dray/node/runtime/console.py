"""What people do with containers that run: read their logs, run commands in them, type into them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from socket import socket, socketpair
from typing import Final

from msgspec.structs import replace

from dray.node.runtime import launch, terminals
from dray.node.runtime.attempt import Attempt, Attempts
from dray.node.runtime.descriptor import Descriptor, wake
from dray.node.runtime.held_inputs import HeldInputs
from dray.node.runtime.launch import Standard
from dray.node.runtime.log_reader import LogOptions, read_log
from dray.node.runtime.machine import Machine
from dray.process.own_thread import on_own_thread

TERMINAL: Final = "xterm"
DRAIN_SECONDS: Final = 10.0
"""So long what a container showed last may take to its log; usually it is there at once."""


class NotThere(LookupError):
    """There is no such container, or it does not run. The message says which."""


class Execution:
    """A command that runs in a container. With a terminal, `output` is all that it shows."""

    def __init__(self, pid: int, standard: dict[str, Descriptor], terminal: Descriptor | None) -> None:
        self._pid = pid
        self._terminal = terminal
        self._ended = False
        self.input = terminal or standard.get("input")
        self.output = terminal or standard.get("output")
        self.errors = standard.get("errors")

    async def wait(self) -> int:
        """Its exit code, when it has ended."""
        loop = asyncio.get_running_loop()
        handle = os.pidfd_open(self._pid)
        over: asyncio.Future[None] = loop.create_future()
        loop.add_reader(handle, wake, over)
        try:
            await over
        finally:
            loop.remove_reader(handle)
            os.close(handle)
        return self.reap()

    def reap(self) -> int:
        """Its exit code, of one that has ended or is about to."""
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        self._ended = True
        return 128 - code if code < 0 else code

    def kill(self) -> None:
        """Ends it, and what it has started, at once."""
        if not self._ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)

    def resize(self, width: int, height: int) -> None:
        """The window has another size."""
        if self._terminal is not None and self._terminal.number >= 0:
            with contextlib.suppress(OSError):
                terminals.set_size(self._terminal.number, width, height)

    def close(self) -> None:
        """Nobody reads or writes any more."""
        for one in (self.input, self.output, self.errors):
            if one is not None:
                one.close()


class Console:
    """The containers of the process runtime, as people get at them."""

    def __init__(self, attempts: Attempts, machine: Machine, inputs: HeldInputs, now: Callable[[], float]) -> None:
        self._attempts = attempts
        self._machine = machine
        self._inputs = inputs
        self._now = now

    def log(self, uid: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """The log of a container, or of the attempt before. Raises NotThere or OSError; iterating raises OSError."""
        attempt = self._find(uid, container, previous=options.previous)
        is_past = not options.follow and self._has_ended(attempt)
        return read_log(attempt, options, self._end_of(attempt), self._now, to_complete=is_past)

    async def execute(
        self, uid: str, container: str, command: tuple[str, ...], *, terminal: bool, has_input: bool
    ) -> Execution:
        """Starts a command beside a container's own. Raises NotThere, LaunchFailed or OSError.

        What is in the container decides how long that takes: a program is not run while somebody holds it with a lease.
        """
        attempt = self._find(uid, container)
        starting = asyncio.ensure_future(
            on_own_thread(self._execute, attempt, command, terminal=terminal, has_input=has_input)
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:  # the client is gone already: what was begun is not left behind
            starting.add_done_callback(_end_unwanted)
            raise

    def log_size(self, uid: str, container: str) -> int:
        """How much a container has written. Raises NotThere or OSError."""
        log = self._find(uid, container).open_log()
        try:
            return os.fstat(log).st_size
        finally:
            os.close(log)

    def open_input(self, uid: str, container: str) -> Descriptor:
        """To type into a container with. Raises NotThere or OSError."""
        attempt = self._find(uid, container)
        try:
            return Descriptor(attempt.open_input())
        except OSError:
            raise NotThere(f"container {container} does not read its input (stdin: true)") from None

    def end_input(self, uid: str, container: str) -> None:
        """What a container reads ends, if that is to end with the first who types (`stdinOnce`)."""
        with contextlib.suppress(OSError, NotThere):
            self._inputs.release(self._find(uid, container).identity)

    def resize(self, uid: str, container: str, width: int, height: int) -> None:
        """The window of somebody who is attached to a container with a terminal has another size."""
        with contextlib.suppress(OSError, NotThere):
            attempt = self._find(uid, container)
            terminals.resize(self._running(attempt), width, height)

    def network(self, uid: str) -> int | None:
        """A descriptor of the network namespace in which the containers of a pod run; None if that is the machine's.

        Raises NotThere if none of them runs: who asks for a port of theirs must not get one of the machine's. Raises
        OSError if nobody can tell now.
        """
        for attempts in self._attempts.of_pod(uid).values():
            with contextlib.suppress(OSError, ValueError, NotThere):
                attempt = attempts[-1]
                self._running(attempt)
                return self._open_network(attempt) if attempt.launched().rights.own_network else None
        raise NotThere("no container of the pod runs")

    def _open_network(self, attempt: Attempt) -> int:
        """Raises NotThere or OSError."""
        opened = os.open(f"/proc/{self._running(attempt)}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._running(attempt)  # and it was of no other one that had its number meanwhile
        except BaseException:
            os.close(opened)
            raise
        return opened

    def _find(self, uid: str, container: str, *, previous: bool = False) -> Attempt:
        made = self._attempts.of_pod(uid).get(container, [])
        wanted = made[-2:-1] if previous else made[-1:]
        if not wanted:
            raise NotThere(f"container {container} was not started{' before' if previous else ' yet'}")
        return wanted[0]

    def _end_of(self, attempt: Attempt) -> Callable[[], bool]:
        """Tells whether nothing comes any more: a container has ended, and what its terminal showed is written down.

        What it left behind may hold the terminal open: nobody waits for that for long.
        """
        noticed: float | None = None

        def is_over() -> bool:
            nonlocal noticed
            if not self._has_ended(attempt):
                return False
            noticed = self._now() if noticed is None else noticed
            return self._now() - noticed >= DRAIN_SECONDS or not attempt.is_written()

        return is_over

    def _has_ended(self, attempt: Attempt) -> bool:
        started = attempt.started()
        return started is None or attempt.exit() is not None or not attempt.is_of(started[0])

    def _running(self, attempt: Attempt) -> int:
        started = attempt.started()
        if started is None or attempt.exit() is not None or not attempt.is_of(started[0]):
            raise NotThere(f"container {attempt.container} does not run")
        return started[0]

    def _execute(self, attempt: Attempt, command: tuple[str, ...], *, terminal: bool, has_input: bool) -> Execution:
        pid = self._running(attempt)
        with contextlib.ExitStack() as stack:
            handle = os.pidfd_open(pid)
            stack.callback(os.close, handle)
            self._running(attempt)  # and it was no other one that the handle is of
            wanted = replace(attempt.launched(), command=command)
            if terminal:
                wanted = replace(wanted, environment={"TERM": TERMINAL, **wanted.environment})
            if terminal:
                holder, given = (stack.enter_context(one) for one in socketpair())
                child = launch.enter(wanted, self._machine, handle, Standard(), terminal=given.fileno())
                return Execution(child, {}, _terminal_of(child, holder))
            ends, standard = _pipes(stack, has_input=has_input)
            return Execution(launch.enter(wanted, self._machine, handle, standard), ends, None)


def _terminal_of(child: int, holder: socket) -> Descriptor:
    """Our end of the terminal of a command. Raises OSError, with nothing left running."""
    try:
        return Descriptor(terminals.received(holder))
    except OSError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


def _end_unwanted(starting: asyncio.Future[Execution]) -> None:
    """Ends a command whose client went while it was started."""
    if not starting.cancelled() and starting.exception() is None:
        execution = starting.result()
        execution.kill()
        execution.close()
        threading.Thread(target=execution.reap, name="reap", daemon=True).start()


def _pipes(stack: contextlib.ExitStack, *, has_input: bool) -> tuple[dict[str, Descriptor], Standard]:
    """Our ends, and theirs, which are closed when the stack is."""
    ours, theirs = {}, {}
    for name in (*(("input",) if has_input else ()), "output", "errors"):
        reading, writing = os.pipe()
        mine, yours = (writing, reading) if name == "input" else (reading, writing)
        ours[name], theirs[name] = Descriptor(mine), yours
        stack.callback(os.close, yours)
    return ours, Standard(**theirs)

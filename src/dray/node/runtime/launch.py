"""Starting a process with given rights, through `launcher.py`: as a new container, or inside of one that runs."""

from __future__ import annotations

import contextlib
import errno
import marshal
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from dray.node.runtime import seccomp
from dray.node.runtime.edits import Bind
from dray.node.runtime.machine import INTERPRETER, LAUNCHER, Machine, process_facts
from dray.node.runtime.rights import Rights

SHELL: Final = "/bin/sh"
NEW_MOUNTS, NEW_HOST_NAME, NEW_IPC, NEW_PROCESSES, NEW_NETWORK = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
LONGEST_HOST_NAME: Final = 63
LONGEST_REPORT: Final = 4096
LOOK_MILLISECONDS: Final = 100
"""Between two looks at a launcher that says nothing."""
MOST_LOOKS: Final = 600
"""At one that does not get to its end: it may wait for a file or directory that is in the hand of its container."""
KILL_MILLISECONDS: Final = 2000
STOPPED: Final = b"0 another process of the container stopped it before it could start"
STUCK: Final = b"0 it took more than a minute to start: something keeps its program or its working directory from it"

_KEEP: Final = 'trap : TERM INT HUP QUIT; (exec "$@" 8>&- 9>&-); code=$?; echo $code >&9; exit $code'
"""Stays around the container's process to note its exit code, even if nobody else is there to see. It has the rights of
the container, and of the agent's files nothing but a descriptor of the one that the code goes into, and of the pipe
that is the container's input, so that this does not end when somebody who was attached goes."""


class LaunchFailed(Exception):
    """The process did not start; the message says why. `is_missing`: there is no such file."""

    def __init__(self, why: str, number: int = 0) -> None:
        super().__init__(why)
        self.is_missing = number == errno.ENOENT


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A process to start: what, as whom, where, and what it sees."""

    command: tuple[str, ...]
    environment: dict[str, str]
    rights: Rights
    directory: str = "/"
    host_name: str = ""
    binds: tuple[Bind, ...] = ()
    memory_score: int = 0
    """How soon it is ended when memory runs short."""
    control_group: str = ""
    """The name of the group in which processes are counted, where the machine has such groups."""


class Traces(msgspec.Struct, frozen=True):
    """Descriptors of files into which a container's number, birth and exit code are written."""

    pid: int
    born: int
    exit: int


class Standard(msgspec.Struct, frozen=True):
    """Descriptors of what a process reads from and writes to; `held` is kept open around it."""

    input: int = subprocess.DEVNULL
    output: int = subprocess.DEVNULL
    errors: int = subprocess.DEVNULL
    held: int = -1


class Around(msgspec.Struct, frozen=True):
    """What a container is started with that others do not have: the name that process listings show, where it leaves
    its traces, which run of the machine this is, and, if its standard streams are to be a terminal, the socket through
    which somebody gets the other end of that."""

    name: str
    traces: Traces
    boot: str
    terminal: int = -1


def start(launch: Launch, machine: Machine, standard: Standard, around: Around) -> int:
    """Starts a container and returns the number of its process group, whose leader is a child of this process.

    Raises LaunchFailed or OSError, with nothing left running.
    """
    traces = around.traces
    plan = _plan(launch, machine) | {
        "command": [SHELL, "-c", _KEEP, around.name, *launch.command],
        "terminal": around.terminal,
        "pid": traces.pid,
        "born": traces.born,
        "exit": traces.exit,
        "held": standard.held,
        "boot": around.boot,
    }
    return _run(plan, (traces.pid, traces.born, traces.exit), standard)


def enter(launch: Launch, machine: Machine, container: int, standard: Standard, *, terminal: int = -1) -> int:
    """Starts another process in a container (by pidfd), with the same rights. Returns its number; it is a child.

    Raises LaunchFailed or OSError, with nothing left running.
    """
    return _run(_plan(launch, machine) | {"enter": container, "terminal": terminal}, (container,), standard)


def namespaces(rights: Rights, *, mounts: bool) -> int:
    """The namespaces that are a container's own, as the kernel counts them."""
    flags = NEW_PROCESSES if rights.own_processes else 0
    flags |= NEW_IPC if rights.own_ipc else 0
    flags |= NEW_HOST_NAME if rights.own_host_name else 0
    flags |= NEW_NETWORK if rights.own_network else 0
    return flags | NEW_MOUNTS if mounts or rights.own_processes or rights.own_ipc else flags


def _plan(launch: Launch, machine: Machine) -> dict[str, Any]:
    """What the launcher reads: only what `marshal` can carry."""
    rights = launch.rights
    mounts = bool(launch.binds) or rights.read_only_files or rights.masked_proc
    return {
        "enter": -1,
        "namespaces": namespaces(rights, mounts=mounts),
        "terminal": -1,
        "pid": -1,
        "born": -1,
        "exit": -1,
        "held": -1,
        "boot": "",
        "host_name": launch.host_name[:LONGEST_HOST_NAME],
        "read_only_files": rights.read_only_files,
        "masked": rights.masked_proc,
        "binds": [(one.source, one.target, one.read_only) for one in launch.binds],
        "changes_user": machine.is_root,
        "user": rights.user,
        "group": rights.group,
        "groups": list(rights.groups),
        "capabilities": rights.capabilities,
        "no_new_privileges": rights.no_new_privileges,
        "seccomp": seccomp.default_filter(machine.architecture, rights.capabilities) if rights.seccomp else b"",
        "open_files": machine.open_files,
        "control_group": str(Path(machine.control_groups, launch.control_group)) if machine.control_groups else "",
        "processes": machine.most_processes,
        "memory_score": launch.memory_score,
        "directory": launch.directory,
        "command": list(launch.command),
        "environment": dict(launch.environment),
    }


def _run(plan: Mapping[str, Any], hidden: Iterable[int], standard: Standard) -> int:
    """Runs the launcher until it has become what the plan says. Raises LaunchFailed or OSError."""
    hidden = tuple(one for one in (*hidden, plan["held"], plan["terminal"]) if one >= 0)
    with contextlib.ExitStack() as stack:
        reading, writing = os.pipe()
        stack.enter_context(_closing(reading))
        descriptor = stack.enter_context(_closing(os.memfd_create("launch", os.MFD_CLOEXEC)))
        with _closing(writing):
            with open(os.dup(descriptor), "wb") as file:
                marshal.dump({**plan, "report": writing, "hidden": (writing, *hidden)}, file)
            os.lseek(descriptor, 0, os.SEEK_SET)
            child = subprocess.Popen(
                [*INTERPRETER, str(LAUNCHER), str(descriptor)],
                pass_fds=(descriptor, writing, *hidden),
                cwd="/",
                stdin=standard.input,
                stdout=standard.output,
                stderr=standard.errors,
            )
        said = _report(reading, child)
    pid = _noted(said)
    problem = said if pid is None else said.partition(b"\n")[2]
    if pid == child.pid or _is_reaped(child.pid):
        _let_go(child)
    if pid is None or problem:
        if pid is not None:
            _is_reaped(pid)
        number, _, why = problem.decode(errors="replace").partition(" ")
        raise LaunchFailed(why or "the launcher ended without a word", int(number) if number.isdecimal() else 0)
    return pid


def _report(reading: int, child: subprocess.Popen[bytes]) -> bytes:
    """What the launcher says until it is the program that was asked for.

    Once it has their user, processes of its container may stop it, or keep from it what it needs, and whoever waits
    would do so for ever: it is ended.
    """
    said, looks = b"", 0
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    while len(said) < LONGEST_REPORT:
        if poll.poll(LOOK_MILLISECONDS):
            part = os.read(reading, LONGEST_REPORT)
            if not part:
                break
            said += part
            continue
        looks += 1
        begun = [pid for pid in (child.pid, _noted(said)) if pid is not None]
        is_stopped = any(_is_stopped(pid) for pid in begun)
        if is_stopped or looks >= MOST_LOOKS:
            for pid in begun:
                os.kill(pid, signal.SIGKILL)
            return said + (STOPPED if is_stopped else STUCK)
    return said


def _is_reaped(pid: int) -> bool:
    """Waits for a child that has ended or is about to. One that the kernel does not let go, because a file system of
    its container does not answer, is left to it."""
    for _ in range(KILL_MILLISECONDS):
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(0.001)
    return False


def _noted(said: bytes) -> int | None:
    """The number of the process that is becoming what was asked for, once the launcher has said it."""
    noted, ended, _ = said.partition(b"\n")
    return int(noted[4:]) if ended and noted.startswith(b"pid ") else None


def _is_stopped(pid: int) -> bool:
    """Whether a child that was not waited for yet does not go on by itself."""
    with contextlib.suppress(OSError):
        return process_facts(pid)[0] in ("T", "t")
    return False


@contextlib.contextmanager
def _closing(descriptor: int) -> Any:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _let_go(child: subprocess.Popen[bytes]) -> None:
    """It is waited for by number, if at all: Python shall not ask for its end."""
    if child.returncode is None:
        child.returncode = 0

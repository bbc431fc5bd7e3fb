"""What is kept on disk of every attempt to run a container, in directories that only the agent can enter.

    ROOT/pods/UID/CONTAINER/ATTEMPT.log     what the container writes
    ROOT/pods/UID/CONTAINER/ATTEMPT.pid     its process group
    ROOT/pods/UID/CONTAINER/ATTEMPT.born    when that began, in the kernel's time, and in which run of the machine
    ROOT/pods/UID/CONTAINER/ATTEMPT.exit    its exit code, once it has ended
    ROOT/pods/UID/CONTAINER/ATTEMPT.launch  what it was started with, for other processes that are to run beside it
    ROOT/pods/UID/CONTAINER/ATTEMPT.times   when its log had which size
    ROOT/pods/UID/CONTAINER/ATTEMPT.input   a pipe to its input, if it has one

A container gets descriptors of its log and, through the shell around it, of the exit file; it reaches none by name.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from dray.files import Directory, UnsafeFile
from dray.node.runtime.interface import Exit
from dray.node.runtime.launch import Launch, Standard, Traces
from dray.node.runtime.machine import process_facts

PODS: Final = "pods"
LOG_MODE: Final = 0o640
SMALL: Final = 256
LARGEST_LAUNCH: Final = 16 * 1024 * 1024
SUFFIXES: Final = (".log", ".pid", ".born", ".exit", ".launch", ".times", ".input")


class Attempt:
    """One attempt, by the uid of its pod, the name of its container and its number."""

    def __init__(self, pods: Directory, uid: str, container: str, number: int) -> None:
        self._pods = pods
        self.uid = uid
        self.container = container
        self.number = number
        self.identity = f"{uid}/{container}/{number}"
        self.directory = pods.path / uid / container

    @contextlib.contextmanager
    def fresh(self, launch: Launch, *, has_input: bool = False) -> Iterator[tuple[Standard, Traces]]:
        """Descriptors of a new log, pipe and traces, to start a container with. Raises OSError."""
        with contextlib.ExitStack() as stack:
            pod = stack.enter_context(self._pods.child(self.uid, create=0o700))
            directory = stack.enter_context(pod.child(self.container, create=0o700))
            self._make_room(directory)
            directory.replace(f"{self.number}.launch", msgspec.json.encode(launch))

            def create(suffix: str, mode: int, more: int = 0) -> int:
                made = directory.create(f"{self.number}{suffix}", mode, flags=os.O_WRONLY | more)
                stack.callback(os.close, made)
                return made

            traces = Traces(*(create(suffix, 0o600) for suffix in (".pid", ".born", ".exit")))
            log = create(".log", LOG_MODE, os.O_APPEND)
            if not has_input:
                yield Standard(output=log, errors=log), traces
                return
            directory.make_pipe(f"{self.number}.input")
            # Opened for both ways, a pipe waits for nobody; and as long as this end is held, the other one goes on.
            held = directory.open_pipe(f"{self.number}.input", os.O_RDWR)
            stack.callback(os.close, held)
            reading = directory.open_pipe(f"{self.number}.input", os.O_RDONLY)
            stack.callback(os.close, reading)
            yield Standard(input=reading, output=log, errors=log, held=held), traces

    def _make_room(self, directory: Directory) -> None:
        """Removes what is left of an attempt with this number that failed, and of all before the previous one."""
        for name in directory.names():
            number = name.partition(".")[0]
            if number.isascii() and number.isdigit() and int(number) != self.number - 1:
                directory.remove(name)

    def forget(self) -> None:
        """Nothing was started: nobody shall look for it."""
        with contextlib.suppress(OSError), self._open() as directory:
            for suffix in SUFFIXES:
                directory.remove(f"{self.number}{suffix}")

    def forget_launch(self) -> None:
        """It has ended: nothing is to run beside it any more, and its variables, which may be secrets, are not kept."""
        with contextlib.suppress(OSError), self._open() as directory:
            directory.remove(f"{self.number}.launch")

    def launched(self) -> Launch:
        """What it was started with. Raises OSError, or ValueError if that cannot be read."""
        with self._open() as directory:
            return msgspec.json.decode(directory.read(f"{self.number}.launch", LARGEST_LAUNCH), type=Launch)

    def open_log(self, *, to_write: bool = False) -> int:
        """A descriptor of the log. Raises OSError."""
        with self._open() as directory:
            return directory.open_file(f"{self.number}.log", os.O_WRONLY if to_write else os.O_RDONLY)

    def is_written(self) -> bool:
        """Whether somebody holds its terminal, and may not have written down yet what it showed last."""
        try:
            log = self.open_log()
        except OSError:
            return False
        try:
            fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(log)
        return False

    def open_input(self) -> int:
        """A descriptor to write to its input with. Raises OSError if it has none, or has ended."""
        with self._open() as directory:
            return directory.open_pipe(f"{self.number}.input", os.O_WRONLY)

    def open_times(self, *, to_write: bool = False) -> int:
        """A descriptor of the sizes of the log over time. Raises OSError."""
        name = f"{self.number}.times"
        with self._open() as directory:
            if to_write and directory.status(name) is None:
                return directory.create(name, flags=os.O_WRONLY | os.O_APPEND)
            return directory.open_file(name, os.O_WRONLY | os.O_APPEND if to_write else os.O_RDONLY)

    def started(self) -> tuple[int, float] | None:
        """The process group and when it began; None if it did not. Raises OSError if nobody can tell now."""
        with _nothing_there(), self._open() as directory:
            status = directory.status(f"{self.number}.pid")
            if status is not None:
                return int(directory.read(f"{self.number}.pid", SMALL)), status.st_mtime
        return None

    def exit(self) -> Exit | None:
        """How it ended, if the shell around it got to say so. Raises OSError if nobody can tell now."""
        with _nothing_there(), self._open() as directory:
            status = directory.status(f"{self.number}.exit")
            if status is not None:
                return Exit(int(directory.read(f"{self.number}.exit", SMALL)) & 0xFF, status.st_mtime)
        return None

    def is_of(self, pid: int) -> bool:
        """Whether a process is the one that was started, and not another that got the same number later.

        Raises OSError if nobody can tell now.
        """
        with _nothing_there(), self._open() as directory:
            noted = directory.read(f"{self.number}.born", SMALL).split()
            return noted == [_birth(pid).encode(), boot_id().encode()]
        return False

    def _open(self) -> Directory:
        with self._pods.child(self.uid) as pod:
            return pod.child(self.container)


class Attempts:
    """All attempts of all pods of a node."""

    def __init__(self, root: Path) -> None:
        """Raises OSError if the directory cannot be had for the agent alone."""
        with Directory.open(root, create=0o755, tighten=True) as directory:
            self._pods = directory.child(PODS, create=0o700)
        os.fchmod(self._pods.descriptor, 0o700)

    def of(self, uid: str, container: str, number: int) -> Attempt:
        """One of them, made or not."""
        return Attempt(self._pods, uid, container, number)

    def of_pod(self, uid: str) -> dict[str, list[Attempt]]:
        """The attempts that were made to run each container of a pod, in order. Raises OSError if nobody can tell."""
        found: dict[str, list[Attempt]] = {}
        with _nothing_there(), self._pods.child(uid) as pod:
            for container in pod.names():
                with _nothing_there(), pod.child(container) as directory:
                    numbers = [name.removesuffix(".pid") for name in directory.names() if name.endswith(".pid")]
                    made = sorted(int(number) for number in numbers if number.isascii() and number.isdigit())
                    if made:
                        found[container] = [self.of(uid, container, number) for number in made]
        return found

    def pods(self) -> set[str]:
        """The pods of which something is left."""
        return set(self._pods.names())

    def clean(self, uid: str) -> None:
        """Removes all that is left of a pod, logs and all."""
        self._pods.remove_tree(uid)


@contextlib.contextmanager
def _nothing_there() -> Iterator[None]:
    """What is missing, or was not made by the agent, is nothing. What only cannot be read now, because the machine has
    no file to spare or its disk fails, is there all the same: a container that runs must not be started once more."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError, UnsafeFile, ValueError):
        return


def boot_id() -> str:
    """Another one after every start of the machine. Raises OSError if nobody can tell now."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except FileNotFoundError:
        return ""


def _birth(pid: int) -> str:
    """When a process began, in clock ticks since the machine did."""
    return process_facts(pid)[19]

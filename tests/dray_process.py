"""`dray` as a process of its own, started in a fraction of the time.

Most of what a start costs is importing. So one process for all tests of a worker imports everything once, and each
`dray` that tests start is forked from it: a real process, with arguments, environment, streams, signals and an exit
code of its own. What the program itself does until it knows its command (its file, what it imports, its terminal) is
tried by tests that start `DRAY`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, NamedTuple

from patience import PATIENCE

_HERE = Path(__file__).parent
DRAY = str(Path(sys.executable).with_name("dray"))
"""The program as people start it."""
Stream = int | IO[str] | IO[bytes] | None
"""As `subprocess.Popen` takes it: a file, PIPE, STDOUT or DEVNULL, or None for that of the tests."""


class DrayProcess:
    """A `dray` command that goes on; what tests use of `subprocess.Popen`."""

    def __init__(
        self,
        *arguments: str | Path,
        stdin: Stream = None,
        stdout: Stream = None,
        stderr: Stream = None,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        self.returncode: int | None = None
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        self._ended, report = os.pipe()
        with contextlib.ExitStack() as given:
            given.callback(os.close, report)
            streams = [self._stream(given, 0, stdin), self._stream(given, 1, stdout)]
            streams.append(streams[1] if stderr == subprocess.STDOUT else self._stream(given, 2, stderr))
            request = json.dumps([[str(it) for it in arguments], dict(env), os.getcwd()]).encode()
            requests = _origin(env.get("PYTHONPATH")).requests
            socket.send_fds(requests, [request], [*streams, report])
            self.pid = int(requests.recv(64))

    def _stream(self, given: contextlib.ExitStack, number: int, wanted: Stream) -> int:
        """The child's end of a stream; ours is kept."""
        if wanted == subprocess.PIPE:
            reads, writes = os.pipe()
            theirs, ours = (reads, writes) if number == 0 else (writes, reads)
            stream = os.fdopen(ours, "w" if number == 0 else "r")
            setattr(self, ("stdin", "stdout", "stderr")[number], stream)
            given.callback(os.close, theirs)
            return theirs
        if wanted == subprocess.DEVNULL:
            return given.enter_context(open(os.devnull, "r+b", buffering=0)).fileno()
        return number if wanted is None else wanted if isinstance(wanted, int) else wanted.fileno()

    def poll(self) -> int | None:
        """The exit code, once it has ended."""
        return self._look(0)

    def wait(self, timeout: float = PATIENCE) -> int:
        """The exit code, when it has ended. Raises subprocess.TimeoutExpired."""
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("dray", timeout)
        return code

    def _look(self, timeout: float) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], timeout)[0]:
            said = os.read(self._ended, 64)
            os.close(self._ended)
            self.returncode = os.waitstatus_to_exitcode(int(said)) if said else -signal.SIGKILL
        return self.returncode

    def communicate(self, timeout: float = PATIENCE) -> tuple[str, str]:
        """What is left of its output when it has ended: no more than a pipe holds, or it waits for ever to end."""
        self.wait(timeout)
        out, err = (it.read() if it is not None else "" for it in (self.stdout, self.stderr))
        self._close()
        return out, err

    def send_signal(self, number: int) -> None:
        """Nothing, if it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Asks it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> DrayProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        self.wait()

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()


def run_dray(
    *arguments: str | Path, timeout: float = PATIENCE, stdin: str = "", env: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """A `dray` command, run to its end."""
    with contextlib.ExitStack() as files:
        given, out, err = (files.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3))
        given.write(stdin)
        given.seek(0)
        process = DrayProcess(*arguments, stdin=given, stdout=out, stderr=err, env=env)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(["dray", *map(str, arguments)], code, out.read(), err.read())


def forked_dray() -> str:
    """The folder of a program `dray` that has one forked: for shells and programs, which find it by PATH."""
    return _origin(os.environ.get("PYTHONPATH")).folder


class _Origin(NamedTuple):
    """The process that others are forked from."""

    requests: socket.socket
    folder: str
    """Where a program `dray` is that has one forked."""


@functools.cache
def _origin(path: str | None) -> _Origin:
    """One for each place that modules come from."""
    variables = {"PYTHONPATH": path} if path is not None else {}
    folder = tempfile.TemporaryDirectory(prefix="dray")  # sockets want short paths
    door = os.path.join(folder.name, "door")
    program = Path(folder.name, "dray")
    words = shlex.join([sys.executable, "-IS", str(_HERE / "forked_dray.py"), door])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(door)
        listener.listen()
        given = (theirs.fileno(), listener.fileno())
        command = [sys.executable, str(_HERE / "dray_forks.py"), *map(str, given)]
        process = subprocess.Popen(command, pass_fds=given, env={**os.environ, **variables})

    def end() -> None:
        ours.close()
        process.wait()
        folder.cleanup()

    atexit.register(end)
    return _Origin(ours, folder.name)

"""Terminals of containers: made by the agent, held by `terminal_keeper`, resized by whoever is attached."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dray.node.runtime.attempt import Attempt
from dray.node.runtime.launch import Standard
from dray.node.runtime.machine import INTERPRETER

KEEPER: Final = Path(__file__).with_name("terminal_keeper.py")
DIRECTORY: Final = "/dev/pts/"
MAJORS: Final = range(136, 144)
"""The device numbers of terminals that programs make."""


@contextlib.contextmanager
def kept(attempt: Attempt, standard: Standard, user: int | None) -> Iterator[Standard]:
    """A terminal as the standard streams of a container, for the time in which it is started.

    It belongs to `user`, if the agent can give it away. What is shown goes where `standard` does, and what comes from
    there is typed. Raises OSError.
    """
    master, slave = os.openpty()
    try:
        try:
            name = os.ttyname(slave)
            if user is not None:
                os.fchown(slave, user, -1)
            _start_keeper(master, standard)
        finally:
            os.close(master)
        attempt.note_terminal(name)
        yield Standard(slave, slave, slave)
    finally:
        os.close(slave)


def _start_keeper(master: int, standard: Standard) -> None:
    typed = standard.held
    given = [str(number) for number in (master, standard.output, typed)]
    done = subprocess.run(
        [*INTERPRETER, str(KEEPER), *given],
        pass_fds=tuple(one for one in (master, standard.output, typed) if one >= 0),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        check=False,
    )
    if done.returncode:
        raise OSError(5, "nobody could be found to hold the terminal")


def resize(name: str, width: int, height: int) -> None:
    """Gives a terminal another size. Raises OSError, also if that is no terminal."""
    if not name.startswith(DIRECTORY) or not name.removeprefix(DIRECTORY).isdigit():
        raise OSError(22, "it is not the name of a terminal", name)
    descriptor = os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISCHR(found.st_mode) and os.major(found.st_rdev) in MAJORS:
            set_size(descriptor, width, height)
    finally:
        os.close(descriptor)


def set_size(terminal: int, width: int, height: int) -> None:
    """Tells a terminal (by descriptor) how large the window is. Raises OSError."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height & 0xFFFF, width & 0xFFFF, 0, 0))

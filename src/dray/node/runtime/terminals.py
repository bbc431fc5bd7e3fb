"""Terminals of containers: made by `launcher`, held by `terminal_keeper`, resized by whoever is attached."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dray.node.runtime.launch import Standard
from dray.node.runtime.machine import INTERPRETER, process_facts

KEEPER: Final = Path(__file__).with_name("terminal_keeper.py")
MAJORS: Final = range(136, 144)
"""The device numbers of terminals that programs make."""


@contextlib.contextmanager
def kept(standard: Standard) -> Iterator[int]:
    """The socket for the other end of a terminal, of a container that is started meanwhile. Somebody waits for it.

    What is shown goes where `standard` does, and what comes from there is typed. Raises OSError.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        _start_keeper(ours.fileno(), standard)
        yield theirs.fileno()


def _start_keeper(holder: int, standard: Standard) -> None:
    typed = standard.held
    given = [str(number) for number in (holder, standard.output, typed)]
    done = subprocess.run(
        [*INTERPRETER, str(KEEPER), *given],
        pass_fds=tuple(one for one in (holder, standard.output, typed) if one >= 0),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        check=False,
    )
    if done.returncode:
        raise OSError(5, "nobody could be found to hold the terminal")


def received(holder: socket.socket) -> int:
    """The other end of a terminal that was made. Raises OSError if there is none."""
    _, found, _, _ = socket.recv_fds(holder, 1, 1, socket.MSG_DONTWAIT)
    if not found:
        raise OSError(5, "nobody made a terminal")
    return found[0]


def resize(process: int, width: int, height: int) -> None:
    """Gives the terminal of a process another size, as it is called there. Raises OSError, also if it has none."""
    device = int(process_facts(process)[4])
    if os.major(device) not in MAJORS:
        raise OSError(25, "it has no terminal")
    number = (os.major(device) - MAJORS.start) * 256 + os.minor(device)
    name = f"/proc/{process}/root/dev/pts/{number}"
    descriptor = os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISCHR(found.st_mode) and found.st_rdev == device:
            set_size(descriptor, width, height)
    finally:
        os.close(descriptor)


def set_size(terminal: int, width: int, height: int) -> None:
    """Tells a terminal (by descriptor) how large the window is. Raises OSError."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height & 0xFFFF, width & 0xFFFF, 0, 0))

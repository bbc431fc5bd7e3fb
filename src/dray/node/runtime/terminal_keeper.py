"""Holds the terminal of a container, also while no agent is there: `python -I -S terminal_keeper.py SOCKET LOG INPUT`.

What the container shows goes into its log; what comes through its pipe (INPUT, -1 for none) is what it reads. Ends when
nobody has the terminal open any more. The numbers are of descriptors that it is started with. The log is locked as long
as something may still come.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import sys

CHUNK = 65536


def main() -> None:
    """Lets the agent go, so that nobody has to wait for this process, and holds the terminal."""
    holder, log, typed = (int(number) for number in sys.argv[1:4])
    fcntl.flock(log, fcntl.LOCK_EX)
    if os.fork():
        os._exit(0)
    os.setsid()
    with socket.socket(fileno=holder) as given:
        _, found, _, _ = socket.recv_fds(given, 1, 1)
    if found:  # else the container did not start
        os.set_blocking(found[0], False)
        keep(found[0], log, typed)


def keep(master: int, log: int, typed: int) -> None:
    """Carries bytes both ways. Never waits for a container that does not read: it may be waiting to write."""
    pending = b""
    poll = select.poll()  # which takes descriptors of any number, as an agent with many containers has them
    while True:
        poll.register(master, select.POLLIN | (select.POLLOUT if pending else 0))
        if typed >= 0:
            poll.register(typed, select.POLLIN if len(pending) < CHUNK else 0)
        ready = dict(poll.poll())
        if ready.get(master, 0) & ~select.POLLOUT:
            try:
                data = os.read(master, CHUNK)
            except BlockingIOError:
                continue
            except OSError:  # the container has ended
                return
            try:
                while data:
                    data = data[os.write(log, data) :]
            except OSError:  # a full disk: what is shown is lost, and the container goes on
                continue
        if ready.get(typed, 0) & select.POLLIN:
            pending += os.read(typed, CHUNK)
        if ready.get(master, 0) & select.POLLOUT:
            try:
                pending = pending[os.write(master, pending) :]
            except BlockingIOError:
                continue


if __name__ == "__main__":
    main()

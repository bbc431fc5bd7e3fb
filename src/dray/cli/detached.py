"""Going on in the background: the user gets the prompt back once what was started is ready, or why it is not.

dray up --detach ── fork ──▶ child, in a session of its own ── ready ──▶ output goes to a log file
    └── shows what the child says until then, and ends as the child would have
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Final

READY: Final = b"\0"
"""What the child says last, before it goes on alone."""


class Background:
    """The child's side: what it prints is seen by the user until `ready`."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def ready(self, log: Path) -> None:
        """Lets the user go; from here on output goes to a file, which is private."""
        sys.stdout.flush()
        sys.stderr.flush()
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(self._pipe, READY)
        for stream in (1, 2):
            os.dup2(file, stream)
        os.close(file)
        os.close(self._pipe)


def detach() -> Background:
    """Goes on in a child process, which alone returns from here; call it before there are threads or a loop.

    The parent ends with 0 once the child is ready, else with the child's exit code.
    """
    sys.stdout.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        raise SystemExit(_show(reading, child))
    os.close(reading)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(writing, 1)
    return Background(writing)


def _show(pipe: int, child: int) -> int:
    """Passes on what the child prints; 0 once it is ready, else how it ended."""
    try:
        while said := os.read(pipe, 65536):
            os.write(1, said.removesuffix(READY))
            if said.endswith(READY):
                return 0
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)
        raise
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or 1

"""What reaches a terminal: nothing that came from objects, drivers or files moves its cursor or hides a word.

Programs that read what a command prints get every byte of it; people at a terminal get what does not print written out.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import IO, Any

from dray.api.visible import visible


def guard() -> None:
    """Puts a guard before standard output and standard error, where they are terminals.

    What is written is UTF-8 whatever the locale says, as with kubectl: else a dash could end a command. What cannot be,
    such as a file's name in another encoding, is written out. Through a pipe, too, each line is seen when it is
    printed: commands ask, wait and watch after that.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
        if stream is not None and stream.isatty():
            setattr(sys, name, TerminalGuard(stream))


def unguarded(stream: IO[str] | TerminalGuard) -> IO[str]:
    """A stream without its guard: for those who write control sequences of their own, and look after the rest."""
    return stream.raw_terminal if isinstance(stream, TerminalGuard) else stream


def read_by_nobody() -> None:
    """After a BrokenPipeError: what is still written to standard output, and what it holds back, goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def visible_lines(text: str) -> str:
    """Text in which only ends of lines and tabs do something."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


class TerminalGuard:
    """A terminal to which text is written as people may see it; all else is the terminal's own."""

    def __init__(self, terminal: IO[str]) -> None:
        self.raw_terminal = terminal

    def write(self, text: str) -> int:
        """Writes text."""
        self.raw_terminal.write(visible_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes texts, one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw_terminal, name)

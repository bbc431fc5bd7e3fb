"""A terminal as a screen: keys come one by one, pictures go out, and afterwards all is as it was."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Final

from dray.top import screen
from dray.top.keys import Keys
from dray.top.screen import Line

ENTER_SCREEN: Final = "\x1b[?1049h\x1b[?25l\x1b[2J"
LEAVE_SCREEN: Final = "\x1b[?25h\x1b[?1049l"
ESCAPE_SECONDS: Final = 0.05


class Terminal:
    """Use `opened` as a context manager, in a running event loop."""

    def __init__(self, stream: IO[str], *, colour: bool) -> None:
        self._out = stream
        self._in = sys.stdin.fileno()
        self._colour = colour
        self._keys = Keys()
        self._shown: Sequence[Line] = ()
        self._late: asyncio.TimerHandle | None = None
        self.size = shutil.get_terminal_size()

    @contextlib.contextmanager
    def opened(self, on_key: Callable[[str], None], on_size: Callable[[], None]) -> Iterator[None]:
        """Takes the terminal, whole."""
        loop = asyncio.get_running_loop()
        before = termios.tcgetattr(self._in)
        self._write(ENTER_SCREEN)

        def resized() -> None:
            self.forget()
            on_size()

        try:
            tty.setraw(self._in, termios.TCSADRAIN)
            loop.add_reader(self._in, self._read, on_key)
            loop.add_signal_handler(signal.SIGWINCH, resized)
            yield
        finally:
            loop.remove_reader(self._in)
            loop.remove_signal_handler(signal.SIGWINCH)
            termios.tcsetattr(self._in, termios.TCSADRAIN, before)
            self._write(LEAVE_SCREEN)

    def forget(self) -> None:
        """Whatever is on the screen, it is not what we think."""
        size = os.get_terminal_size(self._out.fileno())
        self.size = size if size.columns and size.lines else self.size
        self._shown = ()
        self._write("\x1b[2J")

    def show(self, lines: Sequence[Line]) -> None:
        """Writes what is different from what is there."""
        text = screen.update(self._shown, lines, colour=self._colour)
        self._shown = lines
        if text:
            self._write(text)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _read(self, on_key: Callable[[str], None]) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
        try:
            data = os.read(self._in, 1024)
        except OSError:
            data = b""
        if not data:  # nobody is there any more
            on_key("quit")
            return
        for key in self._keys.feed(data):
            on_key(key)
        if self._keys.is_halfway:
            self._late = asyncio.get_running_loop().call_later(ESCAPE_SECONDS, self._nothing_followed, on_key)

    def _nothing_followed(self, on_key: Callable[[str], None]) -> None:
        for key in self._keys.flush():
            on_key(key)

"""Bytes from a terminal as names of keys. Pure."""

from __future__ import annotations

import codecs
import re
from typing import Final

ESCAPE: Final = "escape"
ENTER: Final = "enter"
BACKSPACE: Final = "backspace"
TAB: Final = "tab"
QUIT: Final = "quit"
REDRAW: Final = "redraw"

_SEQUENCES: Final = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "H": "home",
    "F": "end",
    "Z": "backtab",
    "1~": "home",
    "7~": "home",
    "4~": "end",
    "8~": "end",
    "3~": "delete",
    "5~": "pageup",
    "6~": "pagedown",
}
_CONTROLS: Final = {
    "\r": ENTER,
    "\n": ENTER,
    "\t": TAB,
    "\x7f": BACKSPACE,
    "\x08": BACKSPACE,
    "\x03": QUIT,
    "\x04": "pagedown",
    "\x15": "clear",
    "\x0c": REDRAW,
}
_SEQUENCE: Final = re.compile(r"\x1b(?:\[|O)([0-9;]*)([A-Za-z~])")
_BEGUN: Final = re.compile(r"\x1b(?:[\[O][0-9;]*)?\Z")


class Keys:
    """Reads as bytes come, however they are cut."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""

    @property
    def is_halfway(self) -> bool:
        """Whether a sequence has begun; if nothing follows within a moment, it was Escape: call `flush`."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[str]:
        """The keys that these bytes complete: a character, or a name of several."""
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        found: list[str] = []
        position = 0
        while position < len(text):
            sequence = _SEQUENCE.match(text, position)
            if sequence is not None:
                position = sequence.end()
                parameters, last = sequence.groups()
                name = _SEQUENCES.get(f"{parameters.partition(';')[0]}~" if last == "~" else last)
                found += [name] if name else []
            elif _BEGUN.match(text, position):
                self._rest = text[position:]
                break
            else:
                found += _plain(text[position])
                position += 1
        return found

    def flush(self) -> list[str]:
        """Nothing followed."""
        rest, self._rest = self._rest, ""
        return [ESCAPE] if rest else []


def _plain(character: str) -> list[str]:
    if character == "\x1b":
        return [ESCAPE]
    if character in _CONTROLS:
        return [_CONTROLS[character]]
    return [character] if character.isprintable() else []

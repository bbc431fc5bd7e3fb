"""How large a regular expression becomes when it is compiled, told from its text, before anybody does it.

RE2 matches in linear time, and keeps the interpreter to itself while it compiles: `\\pL{1000}` has nine letters and
would take everybody else a tenth of a second. The size is about one for each letter that the text would have if its
repetitions were written out, and more for classes of Unicode, which have hundreds of ranges.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["LARGEST", "regex_size"]

LARGEST: Final = 10_000
"""About ten milliseconds to compile, and half a megabyte."""
UNICODE_CLASS: Final = 400
_REPETITION: Final = 3
_PART: Final = re.compile(
    r"\{(?P<least>[0-9]{1,9})(?:,(?P<most>[0-9]{0,9}))?\}"
    r"|(?P<class>\\[pP](?:\{\^?[A-Za-z_]{0,32}\}|.)?|\[(?:\^?\])?(?:\\.|\[:\^?[a-z]{0,16}:\]|[^\]\\])*+\]?)"
    r"|(?P<open>\()|(?P<close>\))"
    r"|(?P<repeat>[*+?])"
    r"|\\.|.",
    re.DOTALL,
)


def regex_size(pattern: str) -> int:
    """The size, at most one more than the largest."""
    if len(pattern) > LARGEST:
        return LARGEST + 1
    groups = [0]
    last = 0
    """Of what a repetition would repeat; it is part of the innermost group already."""
    for part in _PART.finditer(pattern):
        if part["least"] is not None:
            more = last * (max(int(part["least"]), int(part["most"] or 0), 1) - 1)
            last += more
            groups[-1] += more
        elif part["open"]:
            groups.append(1)
            last = 0
        elif part["close"] and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif part["repeat"]:
            last += _REPETITION
            groups[-1] += _REPETITION
        else:
            last = _of_one(part["class"] or "")
            groups[-1] += last
        if groups[-1] > LARGEST:
            return LARGEST + 1
    return min(sum(groups), LARGEST + 1)


def _of_one(characters: str) -> int:
    """Of one character, or one class of them."""
    has_unicode = "\\p" in characters or "\\P" in characters
    return 1 + len(characters) // 4 + (UNICODE_CLASS if has_unicode else 0)

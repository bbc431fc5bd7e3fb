"""Warnings in the headers of an answer: what the caller should be told, as much of it as clients can take."""

from __future__ import annotations

import re

from dray.process.http import Answer

MOST_WARNINGS = 80
"""Python's clients give up at a hundred headers."""
WARNINGS_TOGETHER = 4096
LONGEST_WARNING = 256
"""How many letters there may be in all warnings of an answer, and in one of them if they are too many."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def with_warnings(answer: Answer, warnings: list[str]) -> Answer:
    """The answer with what the caller should be told."""
    if not warnings:
        return answer
    for text in _shortened(list(dict.fromkeys(warnings))):
        one_line = _CONTROL.sub("?", text)  # names of unknown fields are quoted here, and may be anything
        quoted = one_line.replace("\\", "\\\\").replace('"', '\\"')
        answer.headers = (*answer.headers, ("Warning", f'299 - "{quoted}"'))
    return answer


def _shortened(warnings: list[str]) -> list[str]:
    """As many warnings as clients can take: all if they are short together, else the beginnings of the first ones."""
    kept = warnings[:MOST_WARNINGS]
    if sum(map(len, kept)) > WARNINGS_TOGETHER:
        room = WARNINGS_TOGETHER
        short, kept = [text[:LONGEST_WARNING] for text in kept], []
        for text in short:
            if room <= 0:
                break
            kept.append(text)
            room -= len(text)
    left_out = len(warnings) - MOST_WARNINGS
    return [*kept, f"and {left_out} more warnings like these"] if left_out > 0 else kept

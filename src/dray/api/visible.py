"""Text of others as people may see it: nothing in it moves a cursor, hides a word or begins another line. Pure."""

from __future__ import annotations


def visible(text: str) -> str:
    """The text with every character that does not print written out, as `\\n`, `\\x1b` or `\\u202e`.

    For whatever came from a driver, a container or a stranger, before it gets into an event, a status or a log.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def visible_start(text: str, most: int) -> str:
    """The same, cut off after so many characters."""
    made = visible(text[: most + 1])
    return made if len(made) <= most else f"{made[: most - 3]}..."


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")

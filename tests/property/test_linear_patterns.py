"""Every regular expression of dray is matched in time in proportion to the text: they see texts of strangers.

Python's `re` goes back and tries again, and keeps the interpreter meanwhile: `[0-9]+\\.?[0-9]*` on ten thousand digits
and an `x` stops every thread for seconds. Possessive repetitions (`++`) do not.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import dray
from dray.cel.library.regex_size import LARGEST, regex_size
from dray.cel.number_text import parse_double_text
from dray.custom.text_formats import TEXT_FORMATS

SOURCES = Path(dray.__file__).parent
LETTERS = 8_000
LIMIT = 0.25
"""Seconds of processor time for so many letters: what is linear takes a millisecond, what is quadratic a second."""
HEADS = ("", "0", "a", "-", "1.", "0x", '"')
REPEATED = ("0", "a", "A", ".", "-", "_", ":", "/", "\\", "'", '"', " ", "=", "a.", "a-", "0.", "0s", "1,", "é", "\n")
ENDS = ("!", "\x00")
HOSTILE = tuple(
    f"{head}{each * (LETTERS // len(each))}{end}" for head, each, end in itertools.product(HEADS, REPEATED, ENDS)
)


def _patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    for module in pkgutil.walk_packages(dray.__path__, "dray."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                yield f"{module.name}.{name}", value


def _slow(look: Callable[[str], object]) -> str:
    """The text, in short, that takes too long; empty if none does."""
    for text in HOSTILE:
        began = time.thread_time()
        look(text)
        if time.thread_time() - began > LIMIT:
            return f"{text[:4]!r}…{text[-2:]!r}"
    return ""


def test_patterns_are_matched_in_linear_time() -> None:
    found = dict(_patterns())
    assert len(found) > 80
    slow = {name: _slow(pattern.fullmatch) or _slow(pattern.match) for name, pattern in found.items()}
    assert {name: text for name, text in slow.items() if text} == {}


def test_patterns_are_found_in_linear_time() -> None:
    """Whoever looks for one anywhere in a text begins anew at each letter: repetitions need a bound, too."""
    looks = re.compile(r"\b([A-Z_]+)\.(?:findall|finditer|search|split|subn?)\(")
    sought = {
        f"{found.stem}.{name}": getattr(importlib.import_module(_module_of(found)), name, None)
        for found in SOURCES.rglob("*.py")
        for name in looks.findall(found.read_text())
    }
    patterns = {
        name: value
        for name, value in sought.items()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
    }
    assert len(patterns) > 20
    slow = {name: _slow(partial(_look_everywhere, pattern)) for name, pattern in patterns.items()}
    assert {name: text for name, text in slow.items() if text} == {}


def _look_everywhere(pattern: re.Pattern[str], text: str) -> None:
    deque(pattern.finditer(text), 0)


def _module_of(path: Path) -> str:
    return ".".join(("dray", *path.relative_to(SOURCES).with_suffix("").parts)).removesuffix(".__init__")


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_formats_of_schemas_are_checked_in_linear_time(name: str) -> None:
    assert _slow(TEXT_FORMATS[name]) == ""


def test_doubles_are_read_in_linear_time() -> None:
    assert _slow(parse_double_text) == ""


def test_sizes_of_regular_expressions_are_told_in_linear_time() -> None:
    assert _slow(regex_size) == ""
    assert all(regex_size(each * (LARGEST // len(each))) > 0 for each in ("[", "(", "[\\", "{1", "[[:", "a{9", "[[:a"))

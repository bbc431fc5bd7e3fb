"""Regular expressions are compiled if that takes a few milliseconds, and are otherwise refused, unseen by RE2."""

from __future__ import annotations

import time

import pytest

from dray import cel
from dray.cel.library.regex import RegexError, compile_regex
from dray.cel.library.regex_size import LARGEST, UNICODE_CLASS, regex_size
from dray.cel.selector import _CACHE_ENTRIES, _large_ones

TOO_LARGE = {
    "a class of Unicode, often": r"\pL{1000}",
    "one in brackets": r"[\pL\pN]{1,500}",
    "many classes": r"\pL" * 500,
    "repetitions of repetitions": "((x{90}){90}){90}",
    "many repetitions": "[a-z]{0,1000}" * 700,
    "options": "a?" * 5_000,
    "many letters": "a" * (LARGEST + 1),
}
FINE = (
    "", "^gpu-[0-9]+$", r"^\d{1,3}(\.\d{1,3}){3}$", "[a-z0-9]{1,63}", "[]a]{5}", r"\pL+", r"(?i)a|b", ".{1,255}",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "[[:alpha:]]{3}", "[à-ž]{1,200}",
)  # fmt: skip


@pytest.mark.parametrize("pattern", TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_would_take_long_is_refused_at_once(pattern: str) -> None:
    began = time.thread_time()
    with pytest.raises(RegexError, match="too large"):
        compile_regex(pattern)
    assert time.thread_time() - began < 0.1


@pytest.mark.parametrize("pattern", FINE)
def test_what_people_write_is_compiled(pattern: str) -> None:
    assert compile_regex(pattern) is not None


def test_sizes_are_those_of_the_text_written_out() -> None:
    assert regex_size("abc") == 3
    assert regex_size("a{10}") == regex_size("a{3,10}") == 10
    assert regex_size("x(ab){10}") == 31
    assert regex_size("((a{5}){5}){5}") > 125
    assert regex_size(r"\p{Greek}") > UNICODE_CLASS
    assert regex_size("(") > 0
    assert regex_size(")") > 0


def test_regular_expressions_of_one_expression_count_together() -> None:
    """A short text must not take as long as a hundred."""
    many = " || ".join(f"device.driver.matches('{number}.{{900}}')" for number in range(20))
    with pytest.raises(cel.CompileError, match="too large together"):
        cel.compile(many)


def test_selectors_with_large_regular_expressions_are_not_kept_in_thousands() -> None:
    def expression(number: int) -> str:
        return rf"device.driver.matches('\\pL{{2}}{number}')"

    first = cel.compile(expression(0))
    assert cel.compile(expression(0)) is first
    for number in range(1, 100):
        cel.compile(expression(number))
    assert len(_large_ones) < 100 < _CACHE_ENTRIES
    assert cel.compile(expression(0)) is not first

"""Text of others, made visible."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.api.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("device fell off the bus", "device fell off the bus"),
        ("grün · 温度", "grün · 温度"),
        ("\x1b[2J\x1b[31mall is well", "\\x1b[2J\\x1b[31mall is well"),
        ("one\r\ntwo\tthree", "one\\r\\ntwo\\tthree"),
        ("\x9b31m\x00\x7f", "\\x9b31m\\x00\\x7f"),
        ("\u202egnp.exe\u2028", "\\u202egnp.exe\\u2028"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_does_not_print_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_everything_prints_and_what_prints_stays(text: str) -> None:
    assert visible(text).isprintable()
    if text.isprintable():
        assert visible(text) is text

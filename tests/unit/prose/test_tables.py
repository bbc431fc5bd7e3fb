"""Tables keep to a width, headings stay whole, and nothing that differs is hidden."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dray.cli.tables import rich_table
from dray.prose.tables import lay_out

HEADER = ("pod", "owner", "priority", "disruption budget", "fits elsewhere")
NAMES = [f"ml/training-of-the-large-model-{number}-worker" for number in range(3)]
ROWS = [(name, f"StatefulSet ml/{name}", "0", "1 of 3 allowed", "yes: node-2, node-3") for name in NAMES]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140, None])
def test_names_that_differ_look_different_and_headings_are_whole(width: int | None) -> None:
    lines = lay_out([HEADER, *ROWS], width)
    text = "\n".join(lines)
    assert all(len(line) <= (width or 1000) for line in lines), text
    assert len({line.split()[0] for line in lines if re.match("  ml/", line)}) == len(NAMES), text
    flat = " ".join(text.split())
    assert all(title in flat for title in HEADER[1:]), text
    assert flat.count("yes: node-2, node-3") == 3, text


def test_a_table_that_fits_is_one_and_cuts_in_the_middle() -> None:
    rows = [("ml/notebook", "Job ml/notebook-of-a-long-name-indeed", "no"), ("ml/train-7", "Job ml/train", "yes")]
    assert lay_out([("pod", "owner", "fits"), *rows], 40) == [
        "  pod          owner                fits",
        "  ml/notebook  Job ml/no…me-indeed  no",
        "  ml/train-7   Job ml/train         yes",
    ]


def test_what_has_no_room_is_a_paragraph_without_what_there_is_nothing_to_say_of() -> None:
    assert lay_out([HEADER, ("ml/a", "–", "0", "", "yes: node-2")], 40) == [
        "  ml/a",
        "    priority: 0 · fits elsewhere: yes:",
        "    node-2",
    ]


cells = st.text("abc-/ ", max_size=40).map(str.strip)


@given(st.lists(st.tuples(st.text("ab-/", min_size=1, max_size=40), cells, cells), min_size=1, max_size=5), st.data())
def test_any_table_keeps_to_its_width(rows: list[tuple[str, ...]], data: st.DataObject) -> None:
    width = data.draw(st.integers(min_value=30, max_value=100))
    lines = lay_out([("name", "state", "what it is"), *rows], width)
    assert all(len(line) <= width for line in lines), "\n".join(lines)


@pytest.mark.parametrize("width", [40, 80])
def test_headings_on_a_narrow_terminal_are_not_broken(width: int) -> None:
    header = ("NODE", "STATE", "DEVICES", "FREE", "HELD", "BLOCKED", "TAINTED", "PODS", "BLOCKED BY")
    row = ("node-1", "ready", "40", "8", "4", "28", "0", "4", "28 counters used up (ml/late-gpu-dvrf2)")
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="standard")
    console.print(rich_table(header, [row], width))
    file = console.file
    assert isinstance(file, io.StringIO)
    coloured = file.getvalue()
    shown = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert all(len(line.rstrip()) <= width for line in shown.splitlines()), shown
    assert all(title in shown.upper() for title in header[1:]), shown
    assert "\x1b[32mready\x1b[0m" in coloured, "states have their colours in either form"

"""Draws `docs/pictures/growth.svg` from what `python -m bench growth` measured.

python -m tools.growth_picture
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dray.reports import svg
from dray.reports.shapes import ACCENT, FILLS, QUIET, Picture, Rect, Shape, Stroke, Text

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "pictures" / "growth.svg"
RESULTS = ROOT / "bench" / "results.json"

CHART, GAP, LEFT, TOP, HEIGHT = 230, 40, 20, 40, 150
DOT = 5
LINES = "#e8ebef"


class Line(NamedTuple):
    """One figure of the rows, and its colour."""

    key: str
    colour: str
    name: str = ""


class Chart(NamedTuple):
    """Lines over the numbers of nodes, from zero to the largest value."""

    title: str
    lines: tuple[Line, ...]


CHARTS = (
    Chart("Pods bound per second", (Line("pods_per_second", FILLS["held"]),)),
    Chart("Memory, MiB", (Line("memory_mib", FILLS["held"]),)),
    Chart(
        "A small GET meanwhile, ms",
        (Line("small_get_p50_ms", FILLS["held"], "median"), Line("small_get_p99_ms", ACCENT, "99 of 100")),
    ),
)


def render() -> str:
    """The picture of the results that there are."""
    measured = json.loads(RESULTS.read_text())["growth"]
    return draw(measured["rows"], measured["pods"]) + "\n"


def draw(rows: Sequence[dict[str, Any]], pods: int) -> str:
    """Charts beside each other, as SVG."""
    shapes = [
        shape for number, chart in enumerate(CHARTS) for shape in _chart(chart, rows, LEFT + number * (CHART + GAP))
    ]
    told = "; ".join(
        f"{chart.title}{f' ({line.name})' if line.name else ''}: "
        + ", ".join(f"{row[line.key]:g} with {row['nodes']:,} nodes" for row in rows)
        for chart in CHARTS
        for line in chart.lines
    )
    width = LEFT + len(CHARTS) * (CHART + GAP)
    return svg.draw(Picture(width, TOP + HEIGHT + 40, tuple(shapes), f"{pods:,} pods with a claim each. {told}"))


def _chart(chart: Chart, rows: Sequence[dict[str, Any]], left: int) -> Iterator[Shape]:
    top = max(row[line.key] for row in rows for line in chart.lines) or 1
    yield Text(left, 8, chart.title, bold=True)
    for part in range(5):
        y = TOP + HEIGHT * part // 4
        yield Stroke(left, y, left + CHART, y, LINES)
    xs = [left + CHART * (2 * number + 1) // (2 * len(rows)) for number in range(len(rows))]
    for x, row in zip(xs, rows, strict=True):
        yield Text(x - 14, TOP + HEIGHT + 6, f"{row['nodes']:,}", QUIET)
    yield Text(left, TOP + HEIGHT + 22, "nodes", QUIET)
    for line in chart.lines:
        points = [(x, TOP + HEIGHT - round(HEIGHT * row[line.key] / top)) for x, row in zip(xs, rows, strict=True)]
        for (x, y), (to_x, to_y) in itertools.pairwise(points):
            yield Stroke(x, y, to_x, to_y, line.colour)
        for (x, y), row in zip(points, rows, strict=True):
            yield Rect(x - DOT // 2, y - DOT // 2, DOT, DOT, line.colour)
            value = row[line.key]
            yield Text(x - 12, y - 16, f"{value:,.0f}" if value >= 10 else f"{value:.1f}", line.colour)
        if line.name:
            yield Text(points[0][0] - 12, points[0][1] - 30, line.name, line.colour)


if __name__ == "__main__":
    PICTURE.write_text(render())

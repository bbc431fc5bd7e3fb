"""Writes `docs/requirements.md`: every requirement with its id, what it says in a line, and where it is tested.

    python -m tools.requirements_page

The lines are written by hand in `docs/requirements/*.md`; where they are tested is read from the marks of the tests,
`@pytest.mark.req("5055-68")`. Tests check that the page is current and that every id that is cited exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "requirements.md"
TEXTS = ("5055", "4381", "5027", "3902", "OCM", "X", "SVS", "implied")
"""The files in `docs/requirements`, in the order of the page."""
ID = re.compile(rf"\b(?:{'|'.join(TEXTS)})-[0-9]{{1,3}}\b")
ROW = re.compile(rf"- ({ID.pattern}): (.+)")
MARK = re.compile(r"\bmark\.req\(([^()]*)\)")
TEXT = re.compile(r'"([^"]*)"')
INTRODUCTION = """\
# Requirements

What dray must do, and which tests prove it. The ids are those that sources and tests cite; they never change.
The first four groups come from enhancement proposals of Kubernetes, `OCM` from one of Open Cluster Management; `X` is
where two of them meet, `SVS` ("seed versus shipped") where real clusters differ from the proposals, and `implied` what
users expect without anybody having written it down.

Made by `make generate` from `docs/requirements/` and the marks of the tests; do not edit.
"""
UNTESTED = "nothing that a test could show"


class Requirement(NamedTuple):
    """One row."""

    id: str
    text: str


def requirements() -> dict[str, str]:
    """All of them: ids and texts."""
    return dict(row for name in TEXTS for row in map(_read_row, _source(name)) if row is not None)


@cache
def citations() -> dict[str, set[Path]]:
    """The ids that tests cite, and the files that do."""
    found: dict[str, set[Path]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for cited in _cited_in(file):
            found.setdefault(cited, set()).add(file)
    return found


def mentioned() -> dict[str, set[Path]]:
    """The ids in the texts of sources, examples, tools, measurements and pages, and the files that have them."""
    found: dict[str, set[Path]] = {}
    for folder, pattern in (("src", "*.py"), ("examples", "*"), ("tools", "*.py"), ("bench", "*.py"), ("docs", "*.md")):
        for file in (ROOT / folder).rglob(pattern):
            if file.is_file() and file != PAGE:
                for one in ID.findall(file.read_text(errors="replace")):
                    found.setdefault(one, set()).add(file)
    return found


def render_page() -> str:
    """The whole page."""
    tested = citations()
    lines = [INTRODUCTION]
    for name in TEXTS:
        is_open = False
        for line in _source(name):
            row = _read_row(line)
            if row is None:
                lines.append(f"#{line}" if line.startswith("#") else line)
                is_open = False
                continue
            if not is_open:
                lines += ["| Id | What | Tested in |", "|---|---|---|"]
                is_open = True
            lines.append(f"| {row.id} | {row.text} | {_links(tested.get(row.id, set()))} |")
    return "\n".join(lines) + "\n"


def _source(name: str) -> list[str]:
    return (ROOT / "docs" / "requirements" / f"{name}.md").read_text().splitlines()


def _read_row(line: str) -> Requirement | None:
    found = ROW.fullmatch(line)
    return None if found is None else Requirement(found[1], found[2])


def _links(files: set[Path]) -> str:
    paths = [file.relative_to(ROOT) for file in sorted(files)]
    return ", ".join(f"[{path.stem.removeprefix('test_')}](../{path})" for path in paths) or UNTESTED


def _cited_in(file: Path) -> Iterator[str]:
    """The arguments of every `pytest.mark.req(…)`, wherever it stands: on a test, a class, a parameter, a module."""
    for arguments in MARK.findall(file.read_text()):
        yield from TEXT.findall(arguments)


if __name__ == "__main__":
    PAGE.write_text(render_page())

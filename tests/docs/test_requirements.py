"""The list of requirements: the page is current, and whoever cites an id cites one that exists."""

from __future__ import annotations

import re
from pathlib import Path

from tools import requirements_page
from tools.requirements_page import ROOT

NOTHING_TO_SHOW = {"4381-148", "4381-242", "4381-245", "SVS-31", "SVS-65"}
"""Ideas that were not asked for, figures of others, risks that were accepted, what is internal: no test could fail."""
LINKS = re.compile(r"\]\(\.\./([^)]+)\)")


def test_the_page_of_requirements_is_true() -> None:
    """Who cites a requirement for the first time in a file need not make the page anew; who stops citing it must."""
    tested = {
        one: {str(file.relative_to(ROOT)) for file in files} for one, files in requirements_page.citations().items()
    }
    rows = [line.split(" | ") for line in requirements_page.PAGE.read_text().splitlines() if line.startswith("| ")]
    shown = {row[0].removeprefix("| "): (row[1], set(LINKS.findall(row[2]))) for row in rows if row[0] != "| Id"}
    assert {one: text for one, (text, _) in shown.items()} == requirements_page.requirements(), "run: make generate"
    false = {one: files - tested.get(one, set()) for one, (_, files) in shown.items() if files - tested.get(one, set())}
    assert not false, "run: make generate"


def test_every_id_that_is_cited_exists() -> None:
    known = requirements_page.requirements()
    cited = requirements_page.citations() | requirements_page.mentioned()
    unknown = {one: _names(files) for one, files in cited.items() if one not in known}
    assert not unknown


def test_every_requirement_has_a_text_of_its_own() -> None:
    texts = requirements_page.requirements()
    assert len(texts) == 573 + 81 + 20
    assert all(text.endswith(".") and len(text) < 140 for text in texts.values())


def test_every_requirement_is_tested_unless_there_is_nothing_to_show() -> None:
    untested = requirements_page.requirements().keys() - requirements_page.citations().keys()
    assert untested == NOTHING_TO_SHOW


def _names(files: set[Path]) -> list[str]:
    return sorted(str(file.relative_to(ROOT)) for file in files)

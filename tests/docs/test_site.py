"""The documentation as a site: it builds without a warning, and every page is somewhere in its contents."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from tools import site

PAGES = re.compile(r"(?:: |- )([\w/.-]+\.md)$", re.MULTILINE)


def test_every_page_is_in_the_contents_once(tmp_path: Path) -> None:
    site.assemble(tmp_path / "docs")
    there = {file.relative_to(tmp_path / "docs").as_posix() for file in (tmp_path / "docs").rglob("*.md")}
    assert Counter(PAGES.findall((site.ROOT / "docs" / "site.yml").read_text())) == Counter(there)


def test_the_site_is_built_strictly_and_can_be_searched(tmp_path: Path) -> None:
    built = site.build(tmp_path)
    found = json.loads((built / "search.json").read_text())
    assert any("ResourceSlicePatch" in str(item) for item in found["items"])
    text = (built / "dashboard.html").read_text()
    assert 'src="pictures/fleet.png"' in text
    assert (built / "pictures" / "fleet.png").exists()


def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(folder: Path) -> None:
        folder.mkdir()
        (folder / "index.md").write_text("# One\n\n[two](two.md)\n")

    monkeypatch.setattr(site, "assemble", wrong)
    with pytest.raises(site.SiteError, match="does not exist"):
        site.build(tmp_path)


def test_links_of_the_repository_become_links_of_the_site() -> None:
    pages = frozenset({"start.md", "node.md", "decisions/0001-lmdb.md"})
    text = "[a](docs/node.md#x) [b](tests/y.py) [`c`](tests/y.py) [d](https://e/f.md)\n```\n[g](h.md)\n```\n"
    wanted = "[a](node.md#x) b (`tests/y.py`) `c` [d](https://e/f.md)\n```\n[g](h.md)\n```\n"
    assert site.translate(text, "README.md", pages) == wanted
    assert site.translate("[a](../../README.md)", "docs/decisions/0001-lmdb.md", pages) == "[a](../start.md)"

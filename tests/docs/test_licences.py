"""What dray is installed with may be used as dray may."""

from __future__ import annotations

from tools.licences_page import PAGE, Package, packages


def test_every_package_is_listed_and_permissive() -> None:
    listed = PAGE.read_text()
    found = packages()
    assert len(found) > 14
    assert [package for package in found if f"| {package.name} |" not in listed] == []
    assert [package for package in found if not package.is_permissive] == []


def test_licences_that_ask_for_more_are_noticed() -> None:
    for licence in ("GPL-3.0-only", "MIT AND LGPL-2.1", "", "Apache-2.0, GNU Affero General Public License v3"):
        assert not Package("x", licence).is_permissive

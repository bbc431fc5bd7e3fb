"""The table of rooms in docs/architecture.md is the contract that import-linter checks, and names every package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"\| (\d+) \| `(dray\.\w+)` \| \S.* \| \S.* \|")


def _layers() -> list[set[str]]:
    """The packages of each layer, from the lowest to the highest."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [set(layer.split(" | ")) for layer in reversed(layers)]


def _table() -> list[set[str]]:
    """The same from the table, which must be sorted by number."""
    rows = ROW.findall((ROOT / "docs" / "architecture.md").read_text())
    numbers = [int(number) for number, _ in rows]
    assert numbers == sorted(numbers)
    return [{room for number, room in rows if int(number) == wanted} for wanted in dict.fromkeys(numbers)]


def test_the_table_of_rooms_is_the_contract_of_layers() -> None:
    assert _table() == _layers()


def test_every_package_is_a_room() -> None:
    packages = {f"dray.{found.parent.name}" for found in (ROOT / "src" / "dray").glob("*/__init__.py")}
    assert packages == set().union(*_table())


def test_every_room_says_what_it_is_for() -> None:
    for found in (ROOT / "src" / "dray").glob("*/__init__.py"):
        assert found.read_text().startswith('"""'), f"{found.parent.name} has no docstring"

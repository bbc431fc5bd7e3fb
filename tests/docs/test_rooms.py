"""The table of rooms in docs/architecture.md is the contract that import-linter checks, and names every package."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "dray"
ROW = re.compile(r"\| (\d+) \| `(dray\.\w+)` \| \S.* \| \S.* \|")
IMPORTS = re.compile(r"[Ii]mports? (?:only )?((?:`+dray\.\w+`+(?: \([^)]*\))?(?:, | and |)?)+)(below|what is below)?")
"""A sentence about what a package may import."""
LISTED = re.compile(r" {4}([a-z_]+(?:, [a-z_]+)*)/? {2,}\S")
"""A line about some modules, in a list of them."""


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


def _docstrings() -> Iterator[tuple[Path, str]]:
    """All packages that are written by hand, with what they say of themselves."""
    for found in sorted(SOURCES.rglob("__init__.py")):
        if not {"generated", "template"} & set(found.parts):
            yield found.parent, ast.get_docstring(ast.parse(found.read_text())) or ""


def _imported(package: Path) -> set[str]:
    """The rooms that the modules of a package import from."""
    found = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dray."):
                found.add(".".join((node.module or "").split(".")[:2]))
            elif isinstance(node, ast.ImportFrom) and node.module == "dray":
                found |= {f"dray.{name.name}" for name in node.names}
    return found


def test_rooms_import_from_where_they_say() -> None:
    layers = _layers()
    rooms = set().union(*layers)
    wrong = {}
    for package, text in _docstrings():
        said = IMPORTS.search(" ".join(text.split()))
        if package.parent != SOURCES or said is None:
            continue
        allowed = set(re.findall(r"dray\.\w+", said[1])) | {f"dray.{package.name}"}
        if said[2]:
            highest = max(number for number, layer in enumerate(layers) if layer & allowed - {f"dray.{package.name}"})
            allowed = allowed.union(*layers[:highest])
        if others := (_imported(package) & rooms) - allowed:
            wrong[package.name] = others
    assert wrong == {}


def test_modules_that_a_package_lists_are_there() -> None:
    gone = []
    for package, text in _docstrings():
        there = {found.stem for found in package.iterdir()} | set(
            re.findall(r"\w+", (package / "__init__.py").read_text().replace(text, ""))
        )
        for line in text.splitlines():
            if listed := LISTED.match(line):
                gone += [f"{package.name}: {name}" for name in listed[1].split(", ") if name not in there]
    assert gone == []


def test_every_folder_of_tests_is_told() -> None:
    told = set(re.findall(r"`tests/(\w+)`", (ROOT / "CONTRIBUTING.md").read_text()))
    folders = {found.relative_to(ROOT / "tests").parts[0] for found in (ROOT / "tests").glob("*/**/*.py")}
    assert told == folders

"""The committed facts and structs are what `tools/generate_api.py` makes; nothing was edited by hand."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("tools.generate_api")


def test_structs_are_current(generator: ModuleType) -> None:
    expected = dict(generator.struct_files())
    committed = {path.name: path.read_text("utf-8") for path in generator.GENERATED.glob("*.py")}
    del committed["__init__.py"]
    assert committed == expected


def test_facts_are_current(generator: ModuleType) -> None:
    schema: Path = generator.SCHEMA
    committed = {path.relative_to(schema).as_posix(): path.read_text("utf-8") for path in schema.rglob("*.json")}
    # Whoever has the documents proves that the facts come from them; the facts have their form in any case.
    if generator.OPENAPI.is_dir():
        assert committed == dict(generator.schema_files(generator.OPENAPI))
    for name, text in committed.items():
        if name != "kinds.json":
            assert text == generator.openapi_facts.render(json.loads(text)), name
    assert committed["kinds.json"] == generator.kind_facts.render(json.loads(committed["kinds.json"]))


def test_facts_hold_no_prose(generator: ModuleType) -> None:
    for path in (generator.SCHEMA / "definitions").glob("*.json"):
        # Some enum values have a few words ("code signing"); a sentence has more.
        prose = [text for text in _strings(json.loads(path.read_bytes())) if text.count(" ") > 2]
        assert prose == [], path.name


def test_wire_facts_name_fields_that_exist(generator: ModuleType) -> None:
    known = {full: facts for module in generator.module_contents().values() for full, facts in module.items()}
    for full, fields in json.loads(generator.WIRE_FACTS.read_bytes()).items():
        assert fields.keys() <= known[full]["properties"].keys(), full


def test_update_finds_stale_missing_and_surplus_files(generator: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "stale.py").write_text("old")
    (tmp_path / "surplus.py").write_text("")
    (tmp_path / "__init__.py").write_text("by hand")
    files = {"stale.py": "new", "missing.py": "x"}

    changed = generator.update(iter(files.items()), tmp_path, write=False)
    assert [path.name for path in changed] == ["missing.py", "stale.py", "surplus.py"]
    assert (tmp_path / "stale.py").read_text() == "old"

    generator.update(iter(files.items()), tmp_path, write=True)
    assert generator.update(iter(files.items()), tmp_path, write=False) == []
    assert (tmp_path / "__init__.py").read_text() == "by hand"


def test_check_from_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.generate_api", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)

"""A command brings in what it needs, and nothing else: most of the time of a short one is imports (issue 21)."""

from __future__ import annotations

import json
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from dray.cli.commands import COMMANDS
from dray.cli.main import app

CLAIM = Path(__file__).parents[3] / "examples" / "mistakes" / "claim.yaml"
SLOW = {"aiohttp", "asyncio", "cryptography", "grpc", "lmdb", "prometheus_client", "pydantic", "rich", "ssl", "uvloop"}
"""Packages that take long to import."""

_SCRIPT = """
import json, sys
from dray.cli.main import app
try:
    app(sys.argv[1:], prog_name="dray")
except SystemExit:
    print("\\n" + json.dumps(sorted(sys.modules)))
"""


def imported(*words: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", _SCRIPT, *words], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def rooms(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith("dray.") and name.count(".") == 1}


def test_help_imports_no_command() -> None:
    modules = imported("--help")
    assert modules & SLOW == set()
    assert rooms(modules) <= {"dray.api", "dray.cli", "dray.extras", "dray.files"}
    assert modules & {f"dray.cli.{command.home.partition(':')[0]}" for command in COMMANDS.values()} == set()
    assert len(modules) < 260


def test_validate_imports_what_judges_and_no_more() -> None:
    modules = imported("validate", str(CLAIM))
    assert modules & SLOW == set()
    assert {name for name in modules if name.startswith("dray.prose.")} == {"dray.prose.wording"}
    small = {"dray.extras", "dray.files", "dray.prose"}
    assert rooms(modules) - small == {"dray.api", "dray.cel", "dray.cli", "dray.snapshot", "dray.validation"}
    assert len(modules) < 400


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert list(commands) == list(COMMANDS)
    for name, command in COMMANDS.items():
        words = " ".join((commands[name].help or "").split())
        end = words.find(". ")
        assert command.sentence == (words if end < 0 else words[: end + 1]), name


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def _app(seen: list[Any]) -> typer.Typer:
    made = typer.Typer(add_completion=False)

    @made.command()
    def run(
        words: Annotated[list[str] | None, typer.Argument()] = None,
        colour: Annotated[Colour, typer.Option("--colour")] = Colour.RED,
        many: Annotated[list[Colour] | None, typer.Option("--many")] = None,
        count: Annotated[int, typer.Option("--count", min=0, max=9)] = 3,
        share: Annotated[float, typer.Option("--share")] = 0.5,
        path: Annotated[Path | None, typer.Option("--path")] = None,
        there: Annotated[Path | None, typer.Option("--there", exists=True)] = None,
    ) -> None:
        seen.append((words, colour, many, count, share, path, there))

    return made


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], (None, Colour.RED, None, 3, 0.5, None, None)),
        (["a", "b"], (["a", "b"], Colour.RED, None, 3, 0.5, None, None)),
        (["--colour", "blue"], (None, Colour.BLUE, None, 3, 0.5, None, None)),
        (["--many", "blue", "--many", "red"], (None, Colour.RED, [Colour.BLUE, Colour.RED], 3, 0.5, None, None)),
        (["--count", "9", "--share", "2"], (None, Colour.RED, None, 9, 2.0, None, None)),
        (["--path", "/nowhere"], (None, Colour.RED, None, 3, 0.5, Path("/nowhere"), None)),
        (["--there", "/"], (None, Colour.RED, None, 3, 0.5, None, Path("/"))),
    ],
)
def test_values_are_read_as_typer_reads_them(given: list[str], expected: tuple[Any, ...]) -> None:
    seen: list[Any] = []
    done = CliRunner().invoke(_app(seen), given)
    assert done.exit_code == 0, done.output
    [found] = seen
    assert found == expected
    assert [type(one) for one in found] == [type(one) for one in expected]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--colour", "green"], "'red', 'blue'"),
        (["--many", "red", "--many", "green"], "'red', 'blue'"),
        (["--count", "10"], "9"),
        (["--count", "-1"], "0"),
        (["--count", "two"], "integer"),
        (["--share", "x"], "number"),
        (["--there", "/nowhere"], "does not exist"),
    ],
)
def test_what_is_wrong_is_told_as_typer_tells_it(given: list[str], said: str) -> None:
    done = CliRunner().invoke(_app([]), given, env={"TERMINAL_WIDTH": "200"})
    assert done.exit_code == 2
    assert said in done.output

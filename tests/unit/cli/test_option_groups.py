"""Groups of options are one value for a command, and many options for who calls it."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.testing import CliRunner

from dray.cli.option_groups import OptionGroup, spread, spread_all


class Colours(OptionGroup, frozen=True):
    sky: Annotated[str, typer.Option(help="Of the sky.")] = "blue"


class Paint(Colours, frozen=True, kw_only=True):
    wall: Annotated[str, typer.Argument(metavar="WALL")]
    coats: Annotated[int, typer.Option("--coats", "-c", min=1)] = 2


def _app(seen: list[Any]) -> typer.Typer:
    made = typer.Typer(add_completion=False, rich_markup_mode=None)

    @made.command()
    def run(
        before: Annotated[str, typer.Option()] = "a", *, paint: Paint, after: Annotated[str, typer.Option()]
    ) -> None:
        """Paint it."""
        seen.append((before, paint, after))

    spread_all(made)
    spread_all(made)  # a command that is looked up twice
    return made


def _called(*words: str) -> Any:
    seen: list[Any] = []
    done = CliRunner().invoke(_app(seen), words)
    return seen or (done.exit_code, done.output)


def test_a_command_gets_a_group_as_one_value() -> None:
    assert _called("north", "--after", "b") == [("a", Paint(wall="north"), "b")]
    (found,) = _called("north", "-c", "3", "--sky", "grey", "--before", "x", "--after", "b")
    assert found == ("x", Paint(wall="north", coats=3, sky="grey"), "b")


def test_what_is_wrong_with_an_option_of_a_group_is_told_as_of_any_other() -> None:
    code, text = _called("north", "--after", "b", "-c", "0")
    assert (code, "--coats" in text) == (2, True)


def test_help_has_the_own_options_of_a_group_before_those_that_it_shares() -> None:
    _, text = _called("--help")
    places = [text.index(word) for word in ("Paint it.", "--before", "--coats", "--sky", "--after")]
    assert places == sorted(places)


def test_a_function_without_groups_stays_as_it_is() -> None:
    def plain(name: str) -> str:
        return name

    assert spread(plain) is plain

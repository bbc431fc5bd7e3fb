"""What is wrong with a part of a custom object, and where, before anybody has written down the path.

Checks are functions made once from a schema. They know their own place only as steps from where they stand; whoever
calls them puts the steps in front. So an object with nothing wrong in it costs no paths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from dray.api.field import FieldError

Steps: TypeAlias = tuple[str | int, ...]


class MapKey(str):
    """A step to an entry of a map, which paths have in brackets."""

    __slots__ = ()


class Problem(NamedTuple):
    """A check that failed. `steps` lead to the value whose check it is, `build` makes the error from its path.

    `is_transition`: it is about the change itself, so that it counts even where the value is as it was.
    """

    steps: Steps
    build: Callable[[str], FieldError]
    is_transition: bool = False

    def error(self) -> FieldError:
        """The problem as the API tells it."""
        return self.build(path_of(self.steps))


Check: TypeAlias = Callable[[Any], list[Problem] | None]
"""Judges a value; None if nothing is wrong."""


def path_of(steps: Steps) -> str:
    """`spec.list[0].name`, `spec.map[key]`."""
    text = "".join(f"[{step}]" if isinstance(step, int | MapKey) else f".{step}" for step in steps)
    return text.removeprefix(".")


def below(step: str | int, problems: list[Problem]) -> list[Problem]:
    """Problems of a part, as seen from what holds it."""
    return [Problem((step, *problem.steps), problem.build, problem.is_transition) for problem in problems]

"""Rules: how one is written, and the list of all of them."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Iterable
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from dray.driver_test.trial import Trial

MODULES: Final = ("registration", "slices", "prepare", "unprepare", "cdi_files", "restarts", "generations")
"""The modules in `rules/`, in the order in which a trial runs them."""


class Level(StrEnum):
    """How binding a rule is."""

    MUST = "must"
    SHOULD = "should"


class Broken(Exception):
    """The driver breaks the rule. The message says what it did, and what it should have done."""


class UnprepareFailed(Broken):
    """The driver does not unprepare what it has prepared."""


class NotApplicable(Exception):
    """The rule says nothing about this driver, or cannot be tried here. The message says why."""


class Rule(msgspec.Struct, frozen=True):
    """One rule: `check` returns if the driver keeps it, and raises otherwise."""

    name: str
    title: str
    check: Callable[[Trial], Awaitable[None]]
    level: Level = Level.MUST


_rules: dict[str, Rule] = {}


def rule(title: str, level: Level = Level.MUST) -> Callable[[Callable[[Trial], Awaitable[None]]], Rule]:
    """Makes a coroutine function a rule; its name, with dashes, is the rule's."""

    def register(check: Callable[[Trial], Awaitable[None]]) -> Rule:
        made = Rule(check.__name__.replace("_", "-"), title, check, level)
        _rules[made.name] = made
        return made

    return register


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order in which they run."""
    for module in MODULES:
        importlib.import_module(f"dray.driver_test.rules.{module}")
    return tuple(_rules.values())


def find_rules(names: Iterable[str]) -> tuple[Rule, ...]:
    """The rules with these names, all if there are none. Raises LookupError, listing what there is."""
    wanted = set(names)
    unknown = sorted(wanted - {known.name for known in all_rules()})
    if unknown:
        there = ", ".join(known.name for known in all_rules())
        raise LookupError(f'there is no rule "{unknown[0]}"; there are {there}')
    return tuple(known for known in all_rules() if not wanted or known.name in wanted)


def demand(holds: object, message: str) -> None:
    """Raises Broken unless something holds."""
    if not holds:
        raise Broken(message)

"""Devices of rows put into groups, and picked by CEL: by driver, pool, class, a label of their nodes, an attribute."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from dray import cel
from dray.api.names import qualified
from dray.api.resource import DeviceClass
from dray.api.text_memory import remember_texts
from dray.tracker.view import EffectiveDevice, PoolView
from dray.what_if.device_changes import attribute_text

LABEL: Final = "label:"
ATTRIBUTE: Final = "attribute:"
PLAIN: Final = ("none", "driver", "pool", "class", "node")
NOTHING: Final = "(none)"
MOST_VALUES: Final = 100
"""An attribute or label with more values than this groups nothing that people could look at."""
LOOKED_AT: Final = 400
TRUE: Final = "1"
FALSE: Final = "0"
FAILS: Final = "!"

Labels: TypeAlias = Mapping[str, Mapping[str, str]]
"""Of nodes, by name."""


class GroupingError(Exception):
    """There is no such way to group, or the expression is wrong. The message says which there are, or where."""


class Choice(msgspec.Struct, frozen=True):
    """A way to group, and how it is called."""

    by: str
    title: str


def choices(views: Iterable[PoolView], labels: Labels) -> list[Choice]:
    """What one can group by here."""
    found = [Choice("none", "nothing"), *(Choice(one, one) for one in PLAIN[1:])]
    values: dict[str, set[str]] = {}
    for of_node in list(labels.values())[:LOOKED_AT]:
        for name, value in of_node.items():
            values.setdefault(name, set()).add(value)
    found += [Choice(f"{LABEL}{name}", f"node label {name}") for name in _telling(values, len(labels))]
    names: dict[str, set[str]] = {}
    seen = 0
    for view in views:
        if seen >= LOOKED_AT:
            break
        for device in view.devices[:8]:
            seen += 1
            for name, attribute in device.device.attributes.items():
                names.setdefault(qualified(name, device.id.driver), set()).add(attribute_text(attribute))
    return found + [Choice(f"{ATTRIBUTE}{name}", f"attribute {name}") for name in _telling(names, seen)]


def _telling(values: Mapping[str, set[str]], number: int) -> list[str]:
    """Names whose values put some of so many things together."""
    return [name for name in sorted(values) if len(values[name]) <= max(1, min(MOST_VALUES, number // 2))]


def grouper(by: str, labels: Labels, classes: Mapping[str, DeviceClass]) -> Callable[[EffectiveDevice], str]:
    """A function that says which group a device is in. Raises GroupingError."""
    if by in ("", "none"):
        return lambda _device: ""
    if by == "driver":
        return lambda device: device.id.driver
    if by == "pool":
        return lambda device: device.id.pool
    if by == "node":
        return lambda device: device.access.node_name or NOTHING
    if by == "class":
        return _by_class(classes)
    if by.startswith(LABEL) and by != LABEL:
        name = by.removeprefix(LABEL)
        return lambda device: labels.get(device.access.node_name or "", {}).get(name, NOTHING)
    if by.startswith(ATTRIBUTE) and by != ATTRIBUTE:
        return _by_attribute(by.removeprefix(ATTRIBUTE))
    known = f"{', '.join(PLAIN)}, {LABEL}NAME or {ATTRIBUTE}DOMAIN/NAME"
    raise GroupingError(f"cannot group by {by!r}: give {known}")


class Picked(msgspec.Struct, frozen=True):
    """What an expression is of a pool's devices."""

    mask: str
    """A letter for each: TRUE, FALSE, or FAILS."""
    why: str = ""
    """Why it fails on the first on which it does; empty if it fails on none."""


class Failure(msgspec.Struct, frozen=True):
    """An expression that cannot be evaluated on devices: as the selector of a claim, it would get the claim nothing."""

    number: int
    why: str
    """On the first of them."""


def picker(expression: str) -> Callable[[PoolView], Picked]:
    """A function that says of which devices of a pool an expression is true. Raises GroupingError."""
    selector = _selector(expression)

    def pick(view: PoolView) -> Picked:
        letters, why = [], ""
        for device in view.devices:
            try:
                letters.append(TRUE if selector.matches_now(device.view) else FALSE)
            except cel.SelectorError as error:
                letters.append(FAILS)
                why = why or str(error) or "it takes too long"
        return Picked("".join(letters), why)

    return pick


def failure(picked: Iterable[Picked]) -> Failure | None:
    """On how many devices an expression fails, and why; None if on none."""
    failed = [one for one in picked if one.why]
    return Failure(sum(one.mask.count(FAILS) for one in failed), failed[0].why) if failed else None


def _selector(expression: str) -> cel.Selector:
    try:
        selector = cel.compile(expression)
    except cel.CompileError as error:
        raise GroupingError(f"{error.message} (line {error.line}, column {error.column})") from None
    if not selector.is_light:
        raise GroupingError("the expression may take too long for a filter; use shorter lists, and find for findAll")
    return selector


def _by_attribute(wanted: str) -> Callable[[EffectiveDevice], str]:
    domain, _, short = wanted.rpartition("/")

    def group(device: EffectiveDevice) -> str:
        attributes = device.device.attributes
        found = attributes.get(wanted)
        if found is None and domain == device.id.driver:
            found = attributes.get(short)
        return attribute_text(found) if found is not None else NOTHING

    return group


def _by_class(classes: Mapping[str, DeviceClass]) -> Callable[[EffectiveDevice], str]:
    """The first class by name whose selectors are all true of a device; one that fails on it is not."""
    tests = []
    for name, one in sorted(classes.items()):
        expressions = [selector.cel.expression for selector in one.spec.selectors if selector.cel is not None]
        try:
            tests.append((name, [_selector(expression) for expression in expressions]))
        except GroupingError:
            continue

    def group(device: EffectiveDevice) -> str:
        return next((name for name, each in tests if all(_is_true(one, device) for one in each)), NOTHING)

    return group


def _is_true(selector: cel.Selector, device: EffectiveDevice) -> bool:
    try:
        return selector.matches_now(device.view)
    except cel.SelectorError:
        return False


@remember_texts(20_000)
def natural(text: str) -> tuple[tuple[int, str], ...]:
    """For sorting: `node-2` before `node-10`."""
    return tuple((int(digits or -1), rest) for digits, rest in re.findall(r"(\d*)(\D*)", text))

"""What would help a claim, as values: a constraint dropped, something given back, rules lifted, a pool complete.

Each is told as the end of a sentence that begins "It would fit …".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from dray.allocator.reasons import Report
from dray.prose.device_reasons import called_rules
from dray.prose.wording import are, ends, local_name, names, tell_apart

MOST_NAMED: Final = 4
"""Devices that are named where the text is to be short."""


class HeldDevice(Report, frozen=True, kw_only=True):
    """A device, and the claims that have it."""

    driver: str
    pool: str
    device: str
    claims: tuple[str, ...]


class Remedy(Report, frozen=True, kw_only=True, tag_field="remedy"):
    """Something that would help."""


class DropConstraint(Remedy, frozen=True, kw_only=True, tag="dropConstraint"):
    """Devices need not agree, or differ, in an attribute."""

    attribute: str


class ReleaseDevices(Remedy, frozen=True, kw_only=True, tag="releaseDevices"):
    """So many of these devices are given back."""

    needed: int
    devices: tuple[HeldDevice, ...]


class GiveBack(Remedy, frozen=True, kw_only=True, tag="giveBack"):
    """Claims (`namespace/name`) give back all that they hold."""

    claims: tuple[str, ...]


class LiftRules(Remedy, frozen=True, kw_only=True, tag="liftRules"):
    """The taints of some rules are gone."""

    rules: tuple[str, ...]


class CompletePool(Remedy, frozen=True, kw_only=True, tag="completePool"):
    """An incomplete pool is complete as it is."""

    driver: str
    pool: str


AnyRemedy: TypeAlias = DropConstraint | ReleaseDevices | GiveBack | LiftRules | CompletePool


def tell_remedy(remedy: AnyRemedy, most: int | None = None) -> str:
    """How a sentence that begins "It would fit" goes on; at most so many devices are named, by default all."""
    match remedy:
        case DropConstraint():
            return f"with constraint {local_name(remedy.attribute)} dropped"
        case ReleaseDevices():
            listed = _list_held(remedy.devices, most)
            if len(remedy.devices) > remedy.needed:
                listed = f"{'one' if remedy.needed == 1 else remedy.needed} of {listed}"
            return f"when {listed} {are(remedy.needed)} released"
        case GiveBack():
            return tell_giving_back(remedy.claims)
        case LiftRules():
            return f"without the {'taint' if len(remedy.rules) == 1 else 'taints'} of {called_rules(remedy.rules)}"
        case CompletePool():
            return f"when pool {remedy.pool} of {remedy.driver} is complete"


def tell_giving_back(holders: Sequence[str]) -> str:
    """`when ml/a, ml/b give back what they hold`: all of them are named, since each is needed."""
    verb = "gives back what it holds" if len(holders) == 1 else "give back what they hold"
    return f"when {', '.join(holders)} {verb}"


def _list_held(devices: Sequence[HeldDevice], most: int | None) -> str:
    told = ", ".join if most is None else ends
    called = tell_apart((one.driver, one.pool, one.device) for one in devices)
    shown = [f"{name} ({told(one.claims)})" if one.claims else name for name, one in zip(called, devices, strict=True)]
    return names(shown, len(shown) if most is None else most)

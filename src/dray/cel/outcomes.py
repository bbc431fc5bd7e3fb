"""What came of the evaluations of one expression that took long, by what it reads of a device."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, TypeAlias

from dray.api.quantity import Quantity
from dray.api.recent import Newest
from dray.api.semver import Semver
from dray.cel.errors import EvaluationError, OutOfTime
from dray.cel.reads import Reads
from dray.cel.view import DeviceView

__all__ = ["Outcome", "Outcomes"]

Outcome: TypeAlias = bool | EvaluationError | OutOfTime

_MOST: Final = 4_096


class Outcomes:
    """Outcomes by what an expression reads. ``are_kept`` if evaluations may take long, or one has turned out to."""

    __slots__ = ("_known", "_reads", "are_kept")

    def __init__(self, reads: Reads, *, are_kept: bool) -> None:
        self.are_kept = are_kept
        self._reads = reads
        self._known: Newest[Hashable, Outcome] = Newest(_MOST)

    def get(self, view: DeviceView) -> Outcome | None:
        """What came out for a device that looks like this one, if one was evaluated."""
        return self._known.get(self.key(view))

    def put(self, view: DeviceView, outcome: Outcome) -> None:
        """Remember what came out. The oldest is forgotten when there are too many."""
        self._known.keep(self.key(view), outcome)

    def forget_given_up(self) -> None:
        """Let what ran out of time be tried again."""
        for key in [key for key, outcome in self._known.items() if isinstance(outcome, OutOfTime)]:
            del self._known[key]

    def key(self, view: DeviceView) -> Hashable:
        """Equal for devices that the expression cannot tell apart."""
        key: list[Hashable] = [view.driver, view.allow_multiple_allocations, view.error]
        if self._reads.everything:
            for values in (view.attributes, view.capacity):
                found = ((domain, name, value) for domain in values for name, value in values[domain].items())
                key.append(frozenset((domain, name, _told_apart(value)) for domain, name, value in found))
        for kind, domain, name in sorted(self._reads.values):
            values = view.attributes if kind == "attribute" else view.capacity
            key.append(_told_apart(values.get(domain, {}).get(name)))
        return tuple(key)


def _told_apart(value: Any) -> Hashable:
    """Equal for values that no expression can tell apart: true is not 1, and notation of a quantity counts."""
    if isinstance(value, list):
        return tuple(map(_told_apart, value))
    if isinstance(value, Quantity):
        return Quantity, value.nanos, value.format, value.is_integer(), value.approximate_float()
    return (Semver, str(value)) if isinstance(value, Semver) else (value.__class__, value)

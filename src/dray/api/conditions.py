"""Conditions of any kind of object: find one by its type, and put one in.

Pods, nodes, jobs and the rest each have a struct of their own for conditions; all have a type, a status and the time
of the last change of the status.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeVar

from msgspec.structs import replace

from dray.api.times import Time


class AnyCondition(Protocol):
    """What the conditions of all kinds have."""

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def last_transition_time(self) -> Time | None: ...


C = TypeVar("C", bound=AnyCondition)

READY: Final = "Ready"
"""What pods and nodes that work say of themselves."""
POD_SCHEDULED: Final = "PodScheduled"
"""Whether a pod has a node, and why not."""
DISRUPTION_TARGET: Final = "DisruptionTarget"
"""Why a pod, or a group of them, is about to be disrupted."""


def find_condition(conditions: Iterable[C], type_: str) -> C | None:
    """The condition of this type; None if nobody has set it."""
    for condition in conditions:
        if condition.type == type_:
            return condition
    return None


def is_true(conditions: Iterable[AnyCondition], type_: str) -> bool:
    """Whether there is a condition of this type with status True."""
    found = find_condition(conditions, type_)
    return found is not None and found.status == "True"


def with_condition(conditions: tuple[C, ...], new: C) -> tuple[C, ...]:
    """`conditions` with `new` in place of its predecessor, or at the end.

    The time of `new` counts only if its status is another than before. Where nothing changes, `conditions` itself.
    """
    return with_conditions(conditions, (new,))


def with_conditions(conditions: tuple[C, ...], news: Iterable[C]) -> tuple[C, ...]:
    """`with_condition` for several at once."""
    merged = {condition.type: condition for condition in conditions}
    is_changed = False
    for new in news:
        known = merged.get(new.type)
        if known is not None and known.status == new.status and known.last_transition_time != new.last_transition_time:
            changed: Any = new
            new = replace(changed, last_transition_time=known.last_transition_time)
        if new != known:
            merged[new.type] = new
            is_changed = True
    return tuple(merged.values()) if is_changed else conditions


def without_condition(conditions: tuple[C, ...], type_: str) -> tuple[C, ...]:
    """`conditions` without the one of this type; where there is none, `conditions` itself."""
    if find_condition(conditions, type_) is None:
        return conditions
    return tuple(one for one in conditions if one.type != type_)

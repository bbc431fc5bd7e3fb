"""PriorityClass: the number behind a name, and whether such a pod may make others go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from dray.api.generated.scheduling import PriorityClass
from dray.validation.priority_class import SYSTEM_PRIORITIES

PREEMPTS = "PreemptLowerPriority"


class Priority(NamedTuple):
    """How important a pod or a group is; `name` is that of its class, if it has one."""

    value: int
    policy: str
    name: str


NO_CLASS = Priority(0, PREEMPTS, "")
"""That of a pod that names no class, where there is none for such pods."""


def find_priority(
    name: str, find: Callable[[str], object], classes: Callable[[], Iterable[PriorityClass]]
) -> Priority | None:
    """What the class of this name says; without a name, the class for those that name none. None: no such class."""
    found = find(name) if name else min((one for one in classes() if one.global_default), key=_value, default=None)
    if isinstance(found, PriorityClass):
        return Priority(found.value, found.preemption_policy or PREEMPTS, found.metadata.name)
    if name and name not in SYSTEM_PRIORITIES:
        return None
    return Priority(SYSTEM_PRIORITIES.get(name, 0), PREEMPTS, name)


def _value(found: PriorityClass) -> int:
    return found.value

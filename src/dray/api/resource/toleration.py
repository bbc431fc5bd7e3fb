"""Which device taints a request tolerates, and for how long (5055-44..49).

One place for scheduler, allocator and eviction, so that what blocks an allocation and what evicts are the same.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from dray.api.resource.taint import (
    EFFECT_NO_EXECUTE,
    EFFECT_NO_SCHEDULE,
    OPERATOR_EQUAL,
    OPERATOR_EXISTS,
    DeviceTaint,
    DeviceToleration,
)


def has_effect(taint: DeviceTaint) -> bool:
    """Whether a taint does anything: `None` does not, nor does an effect that this version does not know (SVS-08)."""
    return taint.effect in (EFFECT_NO_SCHEDULE, EFFECT_NO_EXECUTE)


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Whether a toleration matches a taint: by effect, key and value; an empty effect or key matches all.

    Stored data may lack the operator, which then means Equal; any other operator never matches (5055-46).
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == OPERATOR_EXISTS:
        return True
    return toleration.operator in ("", OPERATOR_EQUAL) and toleration.value == taint.value


def is_tolerated(tolerations: Iterable[DeviceToleration], taint: DeviceTaint) -> bool:
    """Whether a taint does not matter to a request: it has no effect, or some toleration matches."""
    return not has_effect(taint) or any(tolerates(toleration, taint) for toleration in tolerations)


def toleration_seconds(toleration: DeviceToleration) -> int | None:
    """How long a matching toleration holds; None means forever.

    The field counts only with the effect NoExecute (5055-148); zero and less mean not at all (5055-28).
    """
    if toleration.toleration_seconds is None or toleration.effect != EFFECT_NO_EXECUTE:
        return None
    return max(toleration.toleration_seconds, 0)


def eviction_time(
    tolerations: Iterable[DeviceToleration], taint: DeviceTaint, added: dt.datetime
) -> dt.datetime | None:
    """When a pod has to leave because of a taint that was added at `added`; None means never (5055-85..89).

    Of several matching tolerations one without limit wins, else the shortest counts (SVS-21).
    """
    if taint.effect != EFFECT_NO_EXECUTE:
        return None
    limits = [toleration_seconds(toleration) for toleration in tolerations if tolerates(toleration, taint)]
    if not limits:
        return added
    if None in limits:
        return None
    try:
        return added + dt.timedelta(seconds=min(limit for limit in limits if limit is not None))
    except OverflowError:
        return None

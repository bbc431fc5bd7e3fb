"""Which taints of its node a pod tolerates, and for how long (3902-09, SVS-70). Devices have their own tolerations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from dray.api.generated.core import Taint, Toleration

OPERATORS: Final = ("Equal", "Exists", "Gt", "Lt")
EFFECTS: Final = ("NoExecute", "NoSchedule", "PreferNoSchedule")
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}+")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration matches a taint: by effect, key and value; an empty effect or key matches all."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == taint.value
        case "Gt" | "Lt":
            return _compares(toleration, taint)
    return False


def is_tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether a pod with these tolerations may come to a node with this taint, be it only for a while."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def seconds_left(tolerations: Iterable[Toleration], taint: Taint) -> float:
    """How long a pod may stay with a taint: 0 if not at all, infinity if forever.

    The first toleration that matches decides, as in Kubernetes; zero and less mean not at all.
    """
    for toleration in tolerations:
        if tolerates(toleration, taint):
            seconds = toleration.toleration_seconds
            return float("inf") if seconds is None else float(max(seconds, 0))
    return 0.0


def read_number(text: str) -> int | None:
    """A value as `Gt` and `Lt` compare it: a decimal integer of 64 bits, written in the one way; None for others."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _compares(toleration: Toleration, taint: Taint) -> bool:
    actual, limit = read_number(taint.value), read_number(toleration.value)
    if actual is None or limit is None:
        return False
    return actual > limit if toleration.operator == "Gt" else actual < limit

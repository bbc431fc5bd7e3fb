"""Which taints of its node a pod tolerates, and for how long (3902-09, SVS-70)."""

from __future__ import annotations

from collections.abc import Iterable

from dray.api.generated.core import Taint, Toleration


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


def seconds_left(tolerations: Iterable[Toleration], taint: Taint) -> float:
    """How long a pod may stay with a taint: 0 if not at all, infinity if forever.

    The first toleration that matches decides, as in Kubernetes; zero and less mean not at all.
    """
    for toleration in tolerations:
        if tolerates(toleration, taint):
            seconds = toleration.toleration_seconds
            return float("inf") if seconds is None else float(max(seconds, 0))
    return 0.0


def _compares(toleration: Toleration, taint: Taint) -> bool:
    try:
        actual, limit = int(taint.value), int(toleration.value)
    except ValueError:
        return False
    return actual > limit if toleration.operator == "Gt" else actual < limit

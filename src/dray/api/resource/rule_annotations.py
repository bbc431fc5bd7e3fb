"""What annotations of a DeviceTaintRule say: how long it lasts, and what servers without the field cannot keep.

A Kubernetes API server drops `evictionsPerSecond` (SVS-07); dray carries it in an annotation there, and reads it from
there. Where a server keeps the field, the field counts.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.resource.taint import DeviceTaint, DeviceTaintRule
from dray.api.times import Time

EVICTIONS_PER_SECOND: Final = "dray.dev/evictions-per-second"
EXPIRES_AT: Final = "dray.dev/expires-at"
"""When the rule is to be removed, RFC 3339."""
TAINT_PARTITIONS: Final = "dray.dev/taint-partitions"
"""`true` if the taint also reaches partitions of the devices that the rule selects."""

LONGEST_RATE = 18
"""Digits. More is no number of evictions that anybody means, nor one that fits the field."""


def annotated_rate(rule: DeviceTaintRule) -> int | None:
    """The rate that an annotation asks for; None without one, and for what is no whole number of at least 1."""
    return read_rate(rule.metadata.annotations.get(EVICTIONS_PER_SECOND, ""))


def read_rate(text: str) -> int | None:
    """Evictions per second, as annotations say it; None for what is no whole number of at least 1."""
    is_number = text.isascii() and text.isdigit() and len(text) <= LONGEST_RATE
    return int(text) if is_number and int(text) > 0 else None


def taint_of(rule: DeviceTaintRule) -> DeviceTaint:
    """The taint that a rule puts on devices, with the rate of the annotation where the field has none.

    Where rules are custom resources nobody notes when a taint was added; it is as old as its rule then.
    """
    taint = rule.spec.taint
    if taint.time_added is None and rule.metadata.creation_timestamp is not None:
        taint = replace(taint, time_added=rule.metadata.creation_timestamp)
    if taint.evictions_per_second is not None or EVICTIONS_PER_SECOND not in rule.metadata.annotations:
        return taint
    return replace(taint, evictions_per_second=annotated_rate(rule))


def expiry(rule: DeviceTaintRule) -> Time | None:
    """When a rule is to be removed; None if it stays. Raises TimeError for what is no time."""
    text = rule.metadata.annotations.get(EXPIRES_AT)
    return None if text is None else Time.parse(text)


def taints_partitions(rule: DeviceTaintRule) -> bool:
    """Whether the taint of a rule reaches the partitions of devices."""
    return rule.metadata.annotations.get(TAINT_PARTITIONS) == "true"


def annotation_problems(rule: DeviceTaintRule) -> list[str]:
    """What is wrong with the annotations, each as `annotation: what it should be`."""
    problems = []
    if EVICTIONS_PER_SECOND in rule.metadata.annotations and annotated_rate(rule) is None:
        problems.append(
            f"metadata.annotations[{EVICTIONS_PER_SECOND}]: not a whole number of at least 1, so it is ignored"
        )
    try:
        expiry(rule)
    except ValueError as error:
        problems.append(f"metadata.annotations[{EXPIRES_AT}]: {error}, so the rule does not expire")
    if rule.metadata.annotations.get(TAINT_PARTITIONS, "false") not in ("true", "false"):
        problems.append(f"metadata.annotations[{TAINT_PARTITIONS}]: neither true nor false, so it is ignored")
    return problems

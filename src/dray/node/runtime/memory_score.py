"""Whom the kernel ends first when the machine's memory runs short, as kubelets tell it (`oom_score_adj`). Pure.

A container that says nothing of memory goes first, one that keeps to what it asked for last, and none is better off
than what the machine itself runs: a score below 0, which the agent may have been started with, is not passed on.
"""

from __future__ import annotations

from typing import Final

from dray.api.generated.core import Container, PodSpec
from dray.validation.qos_class import qos_class

FIRST: Final = 1000
LAST: Final = 0
_NANO: Final = 10**9


def memory_score(spec: PodSpec, container: Container, memory: int) -> int:
    """The score of a container on a machine with so many bytes of memory."""
    service = qos_class(spec)
    if service == "Guaranteed":
        return LAST
    asked = container.resources.requests.get("memory")
    if service == "BestEffort" or asked is None or not memory:
        return FIRST - (service != "BestEffort")
    return min(max(FIRST - FIRST * asked.nanos // (memory * _NANO), LAST + 1), FIRST - 1)

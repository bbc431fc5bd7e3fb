"""Story 2: one place that decides about every NoExecute taint, of nodes and of devices, in one table."""

from __future__ import annotations

from typing import Final

from dray.api.generated.core import Pod
from dray.eviction.policy import Decision, EvictionCause, Never, Now, PolicyState, Wait

PATIENCE: Final = {
    "node.kubernetes.io/unreachable": 300.0,
    "node.kubernetes.io/not-ready": 120.0,
    "gpu.example.com/overheated": 30.0,
}
"""Seconds that a pod gets after it should have left, by the key of the taint; those that are not here get none."""
CRITICAL: Final = "system-critical"


class CentralPolicy:
    """Critical pods stay, others leave when the table says so, and budgets are respected except for hardware faults."""

    def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:  # noqa: ARG002
        """Asked for each pod that must leave."""
        if pod.spec.priority_class_name.startswith(CRITICAL):
            return Never("critical pods are moved by hand")
        until = cause.due + PATIENCE.get(cause.key, 0.0)
        if now < until:
            return Wait(until, f"{cause.key} may pass")
        return Now(respect_budgets=cause.kind == "node")

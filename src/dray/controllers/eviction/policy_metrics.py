"""What eviction policies decide, and how often they fail."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter


class PolicyMetrics:
    """Counters named after the controller that asks."""

    def __init__(self, prefix: str, registry: CollectorRegistry) -> None:
        """`prefix` is the controller's name as metrics spell it."""
        self._decisions = Counter(
            f"{prefix}_policy_decisions",
            "What eviction policies decided about pods, by policy and decision.",
            ["policy", "decision"],
            registry=registry,
        )
        self._failures = Counter(
            f"{prefix}_policy_failures",
            "Questions that eviction policies did not answer, by policy and what became of the pod.",
            ["policy", "fallback"],
            registry=registry,
        )
        self._refusals = Counter(
            f"{prefix}_evictions_refused",
            "Evictions that disruption budgets did not allow at the time.",
            registry=registry,
        )

    def decided(self, policy: str, decision: str) -> None:
        """A policy has answered."""
        self._decisions.labels(policy, decision).inc()

    def failed(self, policy: str, fallback: str) -> None:
        """A policy has not answered."""
        self._failures.labels(policy, fallback).inc()

    def refused(self) -> None:
        """A budget stood in the way."""
        self._refusals.inc()

"""Which faults met which states: a bad day proves nothing about what it never came across."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from dray.api.generated.core import Pod
from dray.api.resource import ResourceClaim
from fault_simulation.ledger import Ledger, is_finished
from fault_simulation.preemptions import waits

FAULTS = (
    "refused", "stuck", "conflict", "answer lost", "slow", "watch expired", "watch dropped", "watch stalled",
    "process killed", "process started", "server stopped", "server crashed", "clock set",
    "etcd refused", "etcd late", "etcd lost", "etcd silent", "etcd watch dropped", "etcd watch stalled", "leader lost",
)  # fmt: skip


def _leaves(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None and not is_finished(pod)


def _is_half_given(claim: ResourceClaim) -> bool:
    return claim.status.allocation is not None and not claim.status.reserved_for


STATES: dict[str, Callable[[Ledger], bool]] = {
    "pods wait": lambda ledger: any(map(waits, ledger.pods)),
    "pods run": lambda ledger: any(pod.status.phase == "Running" for pod in ledger.pods),
    "pods wait for others to go": lambda ledger: any(pod.status.nominated_node_name for pod in ledger.pods),
    "pods leave": lambda ledger: any(map(_leaves, ledger.pods)),
    "claims wait": lambda ledger: any(claim.status.allocation is None for claim in ledger.claims),
    "claims are allocated, for nobody": lambda ledger: any(map(_is_half_given, ledger.claims)),
    "claims are in use": lambda ledger: any(claim.status.reserved_for for claim in ledger.claims),
    "claims go": lambda ledger: any(claim.metadata.deletion_timestamp is not None for claim in ledger.claims),
    "devices are tainted": lambda ledger: any(device.taints for each in ledger.slices for device in each.spec.devices),
    "rules taint devices": lambda ledger: bool(ledger.rules),
    "nodes are tainted": lambda ledger: any(node.spec.taints for node in ledger.nodes),
}
"""What a cluster may be in the middle of; several hold at once."""


class Coverage:
    """Counts how often each fault happened in each state."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.counts: Counter[tuple[str, str]] = Counter()

    def met(self, fault: str) -> None:
        """A fault happens now."""
        for state, holds in STATES.items():
            if holds(self._ledger):
                self.counts[fault, state] += 1

"""A pod has its node with claims that are reserved for it, and they stay so until it needs them no more."""

from __future__ import annotations

from dray.api.generated.core import Pod
from dray.api.pod_claims import is_reserved_for
from dray.api.resource import ResourceClaim
from fault_simulation.ledger import CLAIMS, PODS, Change, Ledger, claim_names, is_finished


class ReservationSafety:
    """Looks at every pod that gets a node, and at every claim that loses a user."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        ledger.on_change.append(self._follow)

    def _follow(self, change: Change) -> None:
        if change.resource == PODS and change.new is not None and change.new.spec.node_name:
            if change.old is None or not change.old.spec.node_name:
                self._check_bound(change.new)
        elif change.resource == CLAIMS and change.old is not None:
            self._check_released(change.old, change.new)

    def _check_bound(self, pod: Pod) -> None:
        for name in claim_names(pod):
            claim: ResourceClaim | None = self._ledger.find(CLAIMS, pod.metadata.namespace, name)
            if claim is None or not is_reserved_for(claim, pod):
                self._ledger.blame(f"pod {pod.metadata.name} got a node, but claim {name} is not reserved for it")

    def _check_released(self, old: ResourceClaim, new: ResourceClaim | None) -> None:
        for pod in self._ledger.pods:
            if not pod.spec.node_name or is_finished(pod) or old.metadata.name not in claim_names(pod):
                continue
            if is_reserved_for(old, pod) and (new is None or not is_reserved_for(new, pod)):
                self._ledger.blame(f"claim {old.metadata.name} lost pod {pod.metadata.name}, which uses it")

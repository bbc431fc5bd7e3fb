"""Who may be made to go for another, and who must be: judged from what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dray.api.generated.core import Pod
from dray.api.pod_groups import group_of
from fault_simulation.device_evictions import LAG
from fault_simulation.fitting import Fitting
from fault_simulation.ledger import CLAIMS, PODS, Change, Ledger, claim_names, is_finished

SCHEDULER: Final = "kube-scheduler"


class Preemptions:
    """Knows who has waited for a node, and until when."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waited: dict[str, tuple[int, float]] = {}
        """By uid: how important a pod is that waits or did, and until when; endless as long as it does."""
        ledger.on_change.append(self._follow)

    def _follow(self, change: Change) -> None:
        if change.resource != PODS:
            return
        now = self._ledger.clock.monotonic()
        if change.new is not None and waits(change.new) and makes_go(change.new):
            self._waited[change.new.metadata.uid] = (priority_of(change.new), float("inf"))
        if change.old is not None and (change.new is None or not waits(change.new)):
            found = self._waited.get(change.old.metadata.uid)
            if found is not None:
                self._waited[change.old.metadata.uid] = (found[0], min(found[1], now))

    def may_go(self, pod: Pod) -> bool:
        """Whether somebody who is more important waits, or did not long ago."""
        start = self._ledger.clock.monotonic() - LAG
        return any(priority > priority_of(pod) and until >= start for priority, until in self._waited.values())


def priority_of(pod: Pod) -> int:
    """How important a pod is."""
    return pod.spec.priority or 0


def makes_go(pod: Pod) -> bool:
    """Whether others go for a pod, if they are less important."""
    return pod.spec.preemption_policy != "Never"


def waits(pod: Pod) -> bool:
    """Whether a pod has no node yet, and nobody deleted it."""
    return not pod.spec.node_name and pod.metadata.deletion_timestamp is None


def _shares(ledger: Ledger, pod: Pod) -> bool:
    claims = (ledger.find(CLAIMS, pod.metadata.namespace, name) for name in claim_names(pod))
    return any(claim is not None and claim.status.reserved_for for claim in claims)


def find_preemption_leftovers(ledger: Ledger) -> Iterator[str]:
    """Nobody waits for a node on which everything would fit without some who are less important. Gangs do not count,
    nor does who shares devices with others: they are not made to go so that they let go of them."""
    for pod in ledger.pods:
        if not waits(pod) or not makes_go(pod) or group_of(pod) is not None or _shares(ledger, pod):
            continue
        for node in ledger.nodes:
            gone = {
                other.metadata.uid
                for other in ledger.pods
                if other.spec.node_name == node.metadata.name
                and priority_of(other) < priority_of(pod)
                and group_of(other) is None
                and not is_finished(other)
            }
            if gone and Fitting(ledger, gone).fits(node, pod):
                names = ", ".join(other.metadata.name for other in ledger.pods if other.metadata.uid in gone)
                yield f"pod {pod.metadata.name} waits, but {node.metadata.name} has room without {names}"

"""Who stands beside whom: pods that spread over the nodes, and pods of which a node has one at most.

A scheduler sees the world late, and what it asks for arrives later still. So a binding is right if nobody who has been
there for long stands in its way; when everything is calm, counts are exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import Final

import msgspec

from dray.api.generated.core import Pod
from fault_simulation import objects
from fault_simulation.device_evictions import LAG
from fault_simulation.ledger import NODES, PODS, Change, Ledger, is_finished

APPS: Final = (objects.SPREAD, objects.APART)


class _Stay(msgspec.Struct):
    """A pod on a node."""

    app: str
    node: str
    since: float
    until: float = float("inf")


class Company:
    """Looks at every pod of these apps that gets a node."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._stays: dict[str, _Stay] = {}
        self._nodes: dict[str, float] = {}
        """Since when a node is there."""
        ledger.on_change.append(self._follow)

    def _follow(self, change: Change) -> None:
        now = self._ledger.clock.monotonic()
        if change.resource == NODES:
            if change.new is None:
                self._nodes.pop(change.place[1], None)
            else:
                self._nodes.setdefault(change.place[1], now)
        elif change.resource == PODS and app_of(change.new or change.old) in APPS:
            self._follow_pod(change, now)

    def _follow_pod(self, change: Change, now: float) -> None:
        if change.old is not None and (change.new is None or not stands(change.new)):
            stay = self._stays.get(change.old.metadata.uid)
            if stay is not None:
                stay.until = min(stay.until, now)
        pod = change.new
        if pod is not None and pod.spec.node_name and pod.metadata.uid not in self._stays:
            wrong = self._beside_another(pod, now) if app_of(pod) == objects.APART else self._skewed(pod, now)
            if wrong:
                self._ledger.blame(f"pod {pod.metadata.name} got {pod.spec.node_name}: {wrong}")
            self._stays[pod.metadata.uid] = _Stay(app_of(pod), pod.spec.node_name, now)

    def _beside_another(self, pod: Pod, now: float) -> str:
        there = self._known(objects.APART, pod.spec.node_name, now)
        return "there is one already" if there else ""

    def _skewed(self, pod: Pod, now: float) -> str:
        """Whether it has too many more than the node with fewest, even if all that may be unknown is in its favour."""
        before = self._known(objects.SPREAD, pod.spec.node_name, now)
        old = [name for name, since in self._nodes.items() if since <= now - LAG]
        fewest = min((self._perhaps(objects.SPREAD, name, now) for name in old), default=before)
        return f"it has {before} already, and another node {fewest} at most" if before > fewest else ""

    def _known(self, app: str, node: str, now: float) -> int:
        """How many are there, and have been for so long that everybody knows."""
        stays = (stay for stay in self._stays.values() if (stay.app, stay.node) == (app, node))
        return sum(stay.since <= now - LAG and stay.until > now for stay in stays)

    def _perhaps(self, app: str, node: str, now: float) -> int:
        """How many are there, or were not long ago."""
        stays = (stay for stay in self._stays.values() if (stay.app, stay.node) == (app, node))
        return sum(stay.until >= now - LAG for stay in stays)


def app_of(pod: Pod) -> str:
    """The label that says with whom a pod counts."""
    return pod.metadata.labels.get("app", "")


def stands(pod: Pod) -> bool:
    """Whether a pod counts where it is. Who leaves counts among those who stand apart only."""
    is_leaving = pod.metadata.deletion_timestamp is not None and app_of(pod) != objects.APART
    return bool(pod.spec.node_name) and not is_finished(pod) and not is_leaving


def agrees(ledger: Ledger, pod: Pod, node: str, gone: Container[str] = ()) -> bool:
    """Whether those who are there now let the pod have the node; who is `gone` (uids) does not count."""
    app = app_of(pod)
    if app not in APPS:
        return True
    there = Counter(
        other.spec.node_name
        for other in ledger.pods
        if app_of(other) == app and stands(other) and other.metadata.uid not in gone
    )
    if app == objects.APART:
        return there[node] == 0
    return there[node] <= min(there[each.metadata.name] for each in ledger.nodes)

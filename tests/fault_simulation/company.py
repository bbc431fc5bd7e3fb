"""Who stands beside whom: pods that spread over the nodes, and pods of which a node has one at most.

A scheduler sees the world late, and what it asks for arrives later still, in any order. So a binding is right if nobody
who has been there for long stands in its way; how even it leaves the nodes is judged a while later, when it is known
who else was on the way. When everything is calm, counts are exact.
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
from fault_simulation.network import Request

APPS: Final = (objects.SPREAD, objects.APART)


class _Stay(msgspec.Struct):
    """A pod on a node."""

    app: str
    node: str
    since: float
    until: float = float("inf")


class _Placed(msgspec.Struct, frozen=True):
    """A pod got a node that had so many, when it could have been one of others."""

    name: str
    node: str
    before: int
    others: tuple[str, ...]
    at: float


class Company:
    """Looks at every pod of these apps that gets a node."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._stays: dict[str, _Stay] = {}
        self._asked: list[tuple[float, str, str]] = []
        """When a node was asked for, for which pod (its uid)."""
        self._unjudged: list[_Placed] = []
        self._nodes: dict[str, float] = {}
        """Since when a node is there."""
        ledger.on_change.append(self._follow)

    def on_sent(self, request: Request) -> None:
        """A scheduler asks for a node: from then on the pod counts for it, whatever becomes of the question."""
        if request.kind.plural != PODS or request.subresource != "binding":
            return
        pod: Pod | None = self._ledger.find(PODS, request.namespace, request.name)
        if pod is not None and app_of(pod) == objects.SPREAD:
            self._asked.append((self._ledger.clock.monotonic(), pod.metadata.uid, request.content.target.name))

    def _follow(self, change: Change) -> None:
        now = self._ledger.clock.monotonic()
        self._judge(now)
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
            if app_of(pod) == objects.SPREAD:
                others = tuple(name for name, since in self._nodes.items() if since <= now - LAG)
                before = self._known(objects.SPREAD, pod.spec.node_name, now)
                self._unjudged.append(_Placed(pod.metadata.name, pod.spec.node_name, before, others, now))
            elif self._known(objects.APART, pod.spec.node_name, now):
                self._ledger.blame(f"pod {pod.metadata.name} got {pod.spec.node_name}: there is one already")
            self._stays[pod.metadata.uid] = _Stay(app_of(pod), pod.spec.node_name, now)

    def _judge(self, now: float) -> None:
        """Whether a node had too many more than that with fewest, even if all that may be unknown is in its favour."""
        while self._unjudged and self._unjudged[0].at < now - LAG:
            placed = self._unjudged.pop(0)
            fewest = min((self._perhaps(node, placed.at) for node in placed.others), default=placed.before)
            if placed.before > fewest:
                told = f"it had {placed.before} already, and another node {fewest} at most"
                self._ledger.blame(f"pod {placed.name} got {placed.node} at {placed.at:.3f}s: {told}")

    def _known(self, app: str, node: str, now: float) -> int:
        """How many are there, and have been for so long that everybody knows."""
        stays = (stay for stay in self._stays.values() if (stay.app, stay.node) == (app, node))
        return sum(stay.since <= now - LAG and stay.until > now for stay in stays)

    def _perhaps(self, node: str, at: float) -> int:
        """How many were there, or on the way, or had been there not long ago."""
        there = {
            uid
            for uid, stay in self._stays.items()
            if (stay.app, stay.node) == (objects.SPREAD, node) and stay.since <= at + LAG and stay.until >= at - LAG
        }
        return len(there.union(uid for when, uid, where in self._asked if where == node and abs(when - at) <= LAG))


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

"""Which pods of a DaemonSet to make and which to delete. Pure.

First every node gets what it should have (`plan`); only when that is so, a new template spreads on (`rollout`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from dray.api.generated.apps import DaemonSet
from dray.api.generated.core import Node, Pod
from dray.api.pods import FAILED, SUCCEEDED, available_at, is_active, is_finished, is_ready
from dray.api.shares import resolve
from dray.api.times import Time
from dray.controllers.daemon_set.node_pod import is_updated, template_generation
from dray.scheduling.daemon_nodes import DaemonNodes, NodeFit, target_of

MAX_AT_ONCE = 250
ROLLING = "RollingUpdate"


class Bounds(NamedTuple):
    """How many nodes may have two pods during an update, and how many none that works."""

    surge: int
    unavailable: int


class DaemonSetState(NamedTuple):
    """What decisions are made from: a DaemonSet, the nodes with their verdicts and its pods by node."""

    daemon_set: DaemonSet
    digest: str
    """The short name of the current template."""
    generation: str
    """The number of the current template, if the server counts them."""
    verdicts: Mapping[str, NodeFit]
    pods: Mapping[str, Sequence[Pod]]
    now: Time

    def is_available(self, pod: Pod) -> bool:
        """Whether a pod has been ready for long enough."""
        at = available_at(pod, self.daemon_set.spec.min_ready_seconds)
        return at is not None and at <= self.now

    def is_updated(self, pod: Pod) -> bool:
        """Whether a pod was made from the current template."""
        return is_updated(pod, self.digest, self.generation)


class DaemonSetPlan(NamedTuple):
    """What to do now: nodes that get a pod, and pods that go, those that ended among them."""

    create: tuple[str, ...] = ()
    delete: tuple[Pod, ...] = ()
    ended: tuple[Pod, ...] = ()


def observe(
    daemon_set: DaemonSet, digest: str, nodes: Iterable[Node], pods: Iterable[Pod], now: Time
) -> DaemonSetState:
    """Sorts pods by node, oldest first, and judges nodes. Pods that ended and are being deleted do not count."""
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.metadata.deletion_timestamp is None or not is_finished(pod):
            by_node.setdefault(target_of(pod), []).append(pod)
    by_node.pop("", None)
    for found in by_node.values():
        if len(found) > 1:
            found.sort(key=_age)
    judge = DaemonNodes(daemon_set).judge
    verdicts = {node.metadata.name: judge(node) for node in nodes}
    return DaemonSetState(daemon_set, digest, template_generation(daemon_set), verdicts, by_node, now)


def _age(pod: Pod) -> tuple[bool, str, str]:
    return not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name


def desired(state: DaemonSetState) -> int:
    """How many nodes should have a pod."""
    return sum(verdict.should_run for verdict in state.verdicts.values())


def bounds(state: DaemonSetState) -> Bounds:
    """How far a rolling update may go; not both 0, or nothing could ever change."""
    strategy = state.daemon_set.spec.update_strategy
    rolling = strategy.rolling_update
    if strategy.type != ROLLING or rolling is None:
        return Bounds(0, 0)
    total = desired(state)
    surge = resolve(rolling.max_surge, total, up=True)
    unavailable = resolve(rolling.max_unavailable, total, up=True)
    return Bounds(surge, unavailable if surge or unavailable else 1)


def plan(state: DaemonSetState, patient: Collection[str]) -> DaemonSetPlan:
    """What brings every node to what it should have. On nodes in `patient` failed pods stay for now."""
    create: list[str] = []
    delete: list[Pod] = []
    ended: list[Pod] = []
    surges = bounds(state).surge > 0
    for node, verdict in state.verdicts.items():
        pods = state.pods.get(node, ())
        if len(pods) == 1 and verdict.may_stay and is_active(pods[0]):
            continue  # as it should be; so it is on most nodes, most of the time
        staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        if not verdict.may_stay:
            delete += staying
            continue
        over = [pod for pod in staying if pod.status.phase in (FAILED, SUCCEEDED)]
        ended += [pod for pod in over if pod.status.phase == SUCCEEDED or node not in patient]
        running = [pod for pod in staying if pod not in over] if over else staying
        if verdict.should_run and (not pods or (surges and not running and not over)):
            create.append(node)
        delete += _excess(state, running, surges=surges)
    for node, found in state.pods.items():
        if node not in state.verdicts:
            # Made for a node that is gone, and so never to be bound. What was bound is for the garbage collector.
            delete += [pod for pod in found if not pod.spec.node_name and pod.metadata.deletion_timestamp is None]
    room = max(MAX_AT_ONCE - len(ended), 0)
    return DaemonSetPlan(tuple(create[:MAX_AT_ONCE]), tuple(delete[:room]), tuple(ended[:MAX_AT_ONCE]))


def _excess(state: DaemonSetState, running: Sequence[Pod], *, surges: bool) -> Sequence[Pod]:
    """Pods of a node beyond the one that it should have, or beyond one old and one new while a surge goes on."""
    if len(running) <= 1:
        return ()
    if not surges:
        return running[1:]
    new = [pod for pod in running if state.is_updated(pod)]
    old = [pod for pod in running if not state.is_updated(pod)]
    excess = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or state.is_available(new[0])):
        excess.append(old[0])
    return excess

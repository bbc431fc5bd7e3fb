"""How a new template of a DaemonSet spreads over the nodes. Pure.

without surge:  an old pod goes ─▶ the node gets a new one;     at most maxUnavailable nodes without a working pod
with surge:     the node gets a new one ─▶ it works ─▶ the old pod goes;     at most maxSurge nodes with two
"""

from __future__ import annotations

from typing import NamedTuple

from dray.api.generated.core import Pod
from dray.controllers.daemon_set.plan import MAX_AT_ONCE, ROLLING, DaemonSetPlan, DaemonSetState, bounds, desired


class _Pair(NamedTuple):
    """The pods of a node that are to stay: at most one of the new template and one of an old one."""

    node: str
    new: Pod | None
    old: Pod | None


def plan_rollout(state: DaemonSetState) -> DaemonSetPlan:
    """The next step of a rolling update; nothing if pods are only replaced when somebody deletes them."""
    if state.daemon_set.spec.update_strategy.type != ROLLING:
        return DaemonSetPlan()
    if not any(not state.is_updated(pod) for pods in state.pods.values() for pod in pods):
        return DaemonSetPlan()
    limits = bounds(state)
    todo = _surge(state, limits.surge) if limits.surge else _replace(state, limits.unavailable)
    return DaemonSetPlan(todo.create[:MAX_AT_ONCE], todo.delete[:MAX_AT_ONCE])


def _pairs(state: DaemonSetState) -> tuple[list[_Pair], int]:
    """The pods of each node that has or had some, and how many nodes have too many, which is to be put right first."""
    pairs, crowded = [], 0
    for node, pods in state.pods.items():
        staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        new = [pod for pod in staying if state.is_updated(pod)]
        old = [pod for pod in staying if not state.is_updated(pod)]
        if len(new) > 1 or len(old) > 1:
            crowded += 1
        else:
            pairs.append(_Pair(node, new[0] if new else None, old[0] if old else None))
    return pairs, crowded


def _replace(state: DaemonSetState, allowed: int) -> DaemonSetPlan:
    """Deletes old pods: all that do not work, and of the others as many as may be away."""
    pairs, unavailable = _pairs(state)
    useless: list[Pod] = []
    candidates: list[Pod] = []
    for _, new, old in pairs:
        if (new is None) is (old is None):
            unavailable += 1  # none, or two: the node is about to be put right
        elif new is not None:
            unavailable += not state.is_available(new)
        elif old is not None and not state.is_available(old):
            unavailable += 1
            useless.append(old)
        elif old is not None:
            candidates.append(old)
    return DaemonSetPlan(delete=(*useless, *candidates[: max(allowed - unavailable, 0)]))


def _surge(state: DaemonSetState, allowed: int) -> DaemonSetPlan:
    """Makes new pods beside old ones: where the old one does not work, and elsewhere as many as may be too many."""
    pairs, surging = _pairs(state)
    urgent: list[str] = []
    candidates: list[str] = []
    delete: list[Pod] = []
    unwanted: list[Pod] = []
    available = 0
    for node, new, old in pairs:
        first = old or new
        available += first is not None and state.is_available(first)
        if old is None:
            continue
        verdict = state.verdicts.get(node)
        if new is not None:
            if state.is_available(new):
                delete.append(old)
            else:
                surging += 1
        elif verdict is None or not verdict.should_run:
            (unwanted if state.is_available(old) else delete).append(old)
        else:
            (candidates if state.is_available(old) else urgent).append(node)
    # Old pods where no new one may come go only as far as enough others work.
    delete += unwanted[: max(available - desired(state), 0)]
    return DaemonSetPlan((*urgent, *candidates[: max(allowed - surging, 0)]), tuple(delete))

"""What a PodDisruptionBudget allows now: its status, worked out from the pods that it selects. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from dray.api.conditions import with_condition
from dray.api.generated.apps import Deployment, ReplicaSet, StatefulSet
from dray.api.generated.core import Pod, ReplicationController
from dray.api.generated.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from dray.api.kinds import DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS
from dray.api.labels import LabelSelector, SelectorError
from dray.api.meta import Condition, Object, OwnerReference
from dray.api.pods import is_ready
from dray.api.references import controller_of
from dray.api.registry import Kind
from dray.api.shares import resolve
from dray.api.times import Time

DELETION_TIMEOUT = 120.0
"""An evicted pod that is still not being deleted after this time was not evicted after all."""
ALLOWED = "DisruptionAllowed"

Scale = Callable[[str, OwnerReference], int | None]
"""How many pods the controller of a pod is asked for; None if that is unknown."""


class BudgetPlan(NamedTuple):
    """The status, and when it may change without any event."""

    status: PodDisruptionBudgetStatus
    again: Time | None


def selector_of(budget: PodDisruptionBudget) -> LabelSelector:
    """Which pods a budget is about. An empty selector means all, none at all means none."""
    try:
        return LabelSelector.of(budget.spec.selector)
    except SelectorError:
        return LabelSelector(matches_nothing=True)


def plan(budget: PodDisruptionBudget, pods: Sequence[Pod], scale: Scale, now: Time) -> BudgetPlan:
    """What the status of a budget should be, given the pods that it selects."""
    expected, desired = _wanted(budget, pods, scale)
    evicted = {
        pod.metadata.name: budget.status.disrupted_pods[pod.metadata.name]
        for pod in pods
        if pod.metadata.deletion_timestamp is None and pod.metadata.name in budget.status.disrupted_pods
    }
    ends = {name: at.after(DELETION_TIMEOUT) for name, at in evicted.items()}
    pending = {name: at for name, at in evicted.items() if ends[name] > now}
    healthy = sum(
        is_ready(pod) and pod.metadata.deletion_timestamp is None and pod.metadata.name not in pending for pod in pods
    )
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    status = replace(
        budget.status,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        disruptions_allowed=allowed,
        disrupted_pods=pending,
        observed_generation=budget.metadata.generation,
        conditions=_conditions(budget, allowed, now),
    )
    return BudgetPlan(status, min((ends[name] for name in pending), default=None))


def _wanted(budget: PodDisruptionBudget, pods: Sequence[Pod], scale: Scale) -> tuple[int, int]:
    """How many pods there should be, and how many of them healthy."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        expected = _expected(pods, scale)
        return expected, max(expected - resolve(spec.max_unavailable, expected, up=True), 0)
    if isinstance(spec.min_available, str):
        expected = _expected(pods, scale)
        return expected, resolve(spec.min_available, expected, up=True)
    return len(pods), spec.min_available or 0


def _expected(pods: Sequence[Pod], scale: Scale) -> int:
    """The sum of what the controllers of the pods are asked for; pods without one do not count."""
    owned = [(pod, owner) for pod in pods if (owner := controller_of(pod)) is not None]
    counts = Counter(owner.uid for _, owner in owned)
    total = 0
    for uid, (pod, owner) in {owner.uid: (pod, owner) for pod, owner in owned}.items():
        known = scale(pod.metadata.namespace, owner)
        total += counts[uid] if known is None else known
    return total


def _conditions(budget: PodDisruptionBudget, allowed: int, now: Time) -> tuple[Condition, ...]:
    value, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    told = Condition(
        type=ALLOWED,
        status=value,
        reason=reason,
        observed_generation=budget.metadata.generation,
        last_transition_time=now,
    )
    return with_condition(budget.status.conditions, told)


Find = Callable[[Kind, str, str], Object | None]
"""An object of a kind by namespace and name."""
SCALED: Final[dict[Kind, type[Object]]] = {
    DEPLOYMENTS: Deployment,
    REPLICA_SETS: ReplicaSet,
    STATEFUL_SETS: StatefulSet,
    REPLICATION_CONTROLLERS: ReplicationController,
}
"""The kinds that say how many pods they ask for."""


def scale_of(find: Find, namespace: str, owner: OwnerReference) -> int | None:
    """How many pods a controller asks for, or the Deployment above it; None if nobody says."""
    kind = next((one for one in SCALED if one.kind == owner.kind), None)
    found = find(kind, namespace, owner.name) if kind is not None else None
    above = controller_of(found) if isinstance(found, ReplicaSet) else None
    if above is not None and above.kind == "Deployment":
        deployment = find(DEPLOYMENTS, namespace, above.name)
        found = deployment if deployment is not None else found
    if isinstance(found, Deployment | ReplicaSet | StatefulSet | ReplicationController):
        return found.spec.replicas
    return None

"""Keeps the status of PodDisruptionBudgets: how many pods may be evicted now. Evictions read it, and count it down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from dray.api.conditions import with_condition
from dray.api.generated.apps import Deployment, ReplicaSet, StatefulSet
from dray.api.generated.core import Pod, ReplicationController
from dray.api.generated.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from dray.api.kinds import BUDGETS, DEPLOYMENTS, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS
from dray.api.labels import LabelSelector, SelectorError
from dray.api.meta import Condition, Object, OwnerReference
from dray.api.pods import is_ready
from dray.api.references import ObjectName, controller_of
from dray.api.shares import resolve
from dray.api.times import Time
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController
from dray.process.clock import as_time

DELETION_TIMEOUT = timedelta(minutes=2)
"""An evicted pod that is still not being deleted after this time was not evicted after all."""
BY_NAMESPACE = "namespace"
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
    ends = {name: Time.of(at.datetime() + DELETION_TIMEOUT) for name, at in evicted.items()}
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


class DisruptionController(QueueController[ObjectName]):
    """Looks at a budget when it changes, and when anything changes in the health of pods that it selects."""

    name: ClassVar[str] = "disruption-controller"

    def __init__(self, context: Context) -> None:
        self._budgets = context.informers.of(BUDGETS, PodDisruptionBudget)
        self._pods = context.informers.of(PODS, Pod)
        self._deployments = context.informers.of(DEPLOYMENTS, Deployment)
        self._replica_sets = context.informers.of(REPLICA_SETS, ReplicaSet)
        self._stateful_sets = context.informers.of(STATEFUL_SETS, StatefulSet)
        self._replication_controllers = context.informers.of(REPLICATION_CONTROLLERS, ReplicationController)
        workloads = (self._deployments, self._replica_sets, self._stateful_sets, self._replication_controllers)
        super().__init__(context, self._budgets, self._pods, *workloads)
        self._budgets.add_index(BY_NAMESPACE, _namespace)
        self._pods.add_index(BY_NAMESPACE, _namespace)
        self._budgets.on_change(self._on_budget)
        self._pods.on_change(self._on_pod)
        self._deployments.on_change(self._on_workload)
        self._replica_sets.on_change(self._on_workload)
        self._stateful_sets.on_change(self._on_workload)
        self._replication_controllers.on_change(self._on_workload)

    def _on_budget(self, _old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        if new is not None:
            self.queue.add(ObjectName.of(new))

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if self._budgets.is_empty or (old is not None and new is not None and _health(old) == _health(new)):
            return
        pod = new if new is not None else old
        assert pod is not None
        for budget in self._budgets.by_index(BY_NAMESPACE, pod.metadata.namespace):
            selector = selector_of(budget)
            if any(one is not None and selector.matches(one.metadata.labels) for one in (old, new)):
                self.queue.add(ObjectName.of(budget))

    def _on_workload(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or old.metadata.generation == new.metadata.generation:
            return  # pods that come and go tell the rest
        for budget in self._budgets.by_index(BY_NAMESPACE, new.metadata.namespace):
            self.queue.add(ObjectName.of(budget))

    async def reconcile(self, key: ObjectName) -> float | None:
        """Looks at one budget."""
        budget = self._budgets.get(*key)
        if budget is None:
            return None
        selector = selector_of(budget)
        pods = [
            pod for pod in self._pods.by_index(BY_NAMESPACE, key.namespace) if selector.matches(pod.metadata.labels)
        ]
        now = as_time(self._clock.now())
        todo = plan(budget, pods, self._scale, now)
        if todo.status != budget.status:
            await self._client.update(replace(budget, status=todo.status), subresource="status")
        return None if todo.again is None else (todo.again.datetime() - now.datetime()).total_seconds()

    def _scale(self, namespace: str, owner: OwnerReference) -> int | None:
        if owner.kind == "StatefulSet":
            found = self._stateful_sets.get(namespace, owner.name)
            return found.spec.replicas if found is not None else None
        if owner.kind == "ReplicationController":
            controller = self._replication_controllers.get(namespace, owner.name)
            return controller.spec.replicas if controller is not None else None
        if owner.kind != "ReplicaSet":
            return None
        replica_set = self._replica_sets.get(namespace, owner.name)
        if replica_set is None:
            return None
        above = controller_of(replica_set)
        deployment = self._deployments.get(namespace, above.name) if above and above.kind == "Deployment" else None
        return deployment.spec.replicas if deployment is not None else replica_set.spec.replicas


def _health(pod: Pod) -> tuple[bool, bool, object]:
    return is_ready(pod), pod.metadata.deletion_timestamp is None, pod.metadata.labels


def _namespace(obj: Object) -> tuple[str]:
    return (obj.metadata.namespace,)

"""How many pods to make, which to delete, and what the status says. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from dray.api.conditions import READY, find_condition, is_true, with_condition, without_condition
from dray.api.generated.apps import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from dray.api.generated.core import Pod
from dray.api.pods import DELETION_COST, available_at, is_active, is_ready, is_terminating
from dray.api.times import Time

REPLICA_FAILURE = "ReplicaFailure"
MAX_AT_ONCE = 500


class ReplicaSetPlan(NamedTuple):
    """What to do now."""

    create: int = 0
    delete: tuple[Pod, ...] = ()


def plan(replica_set: ReplicaSet, pods: Sequence[Pod]) -> ReplicaSetPlan:
    """The difference between the pods that there are and the number that there should be."""
    if replica_set.metadata.deletion_timestamp is not None:
        return ReplicaSetPlan()
    active = [pod for pod in pods if is_active(pod)]
    wanted = 1 if replica_set.spec.replicas is None else replica_set.spec.replicas
    if len(active) < wanted:
        return ReplicaSetPlan(create=min(wanted - len(active), MAX_AT_ONCE))
    surplus = sorted(active, key=_worth)[: min(len(active) - wanted, MAX_AT_ONCE)]
    return ReplicaSetPlan(delete=tuple(surplus))


def _worth(pod: Pod) -> tuple[Any, ...]:
    """Lower goes first: what does no work yet, what its owner calls cheap, what is youngest."""
    ready = find_condition(pod.status.conditions, READY)
    since = ready.last_transition_time if ready is not None and ready.status == "True" else None
    restarts = sum(status.restart_count for status in pod.status.container_statuses)
    return (
        bool(pod.spec.node_name),
        {"Pending": 0, "": 0, "Unknown": 1}.get(pod.status.phase, 2),
        is_ready(pod),
        _cost(pod),
        _Latest(since or ""),
        -restarts,
        _Latest(pod.metadata.creation_timestamp or ""),
        pod.metadata.name,
    )


class _Latest(str):
    """Texts in reverse order: later times come first."""

    def __lt__(self, other: str) -> bool:
        return str(self) > str(other)


def _cost(pod: Pod) -> int:
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    return int(text) if text.lstrip("-").isdecimal() and len(text) <= 11 else 0


def plan_status(replica_set: ReplicaSet, pods: Sequence[Pod], failure: str, now: Time) -> ReplicaSetStatus:
    """What the status should say; `failure` is why pods could not be made or deleted, if so."""
    active = [pod for pod in pods if is_active(pod)]
    labels = replica_set.spec.template.metadata.labels.items()
    available = [at for pod in active if (at := available_at(pod, replica_set.spec.min_ready_seconds)) is not None]
    return replace(
        replica_set.status,
        replicas=len(active),
        fully_labeled_replicas=sum(labels <= pod.metadata.labels.items() for pod in active),
        ready_replicas=sum(map(is_ready, active)),
        available_replicas=sum(at <= now for at in available),
        terminating_replicas=sum(is_terminating(pod) for pod in pods),
        observed_generation=replica_set.metadata.generation,
        conditions=_conditions(replica_set, failure, now),
    )


def _conditions(replica_set: ReplicaSet, failure: str, now: Time) -> tuple[ReplicaSetCondition, ...]:
    known = replica_set.status.conditions
    if not failure:
        return without_condition(known, REPLICA_FAILURE)
    if is_true(known, REPLICA_FAILURE):
        return known  # each failure names another pod: writing each of them would only wake us again
    told = ReplicaSetCondition(
        type=REPLICA_FAILURE, status="True", reason="FailedCreate", message=failure, last_transition_time=now
    )
    return with_condition(known, told)


def next_available(replica_set: ReplicaSet, pods: Sequence[Pod], now: Time) -> Time | None:
    """When the next pod that is ready has been so for long enough; None if there is none to wait for."""
    times = [available_at(pod, replica_set.spec.min_ready_seconds) for pod in pods if is_active(pod)]
    return min((at for at in times if at is not None and at > now), default=None)

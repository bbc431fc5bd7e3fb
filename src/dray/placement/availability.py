"""A cluster's health: the lease says whether it is reachable, the condition says so, taints follow the condition.

    lease (renewed by the cluster's agent) ─→ condition Available ─→ taint unavailable or unreachable ─→ placement

Here the state is mapped to taints and nothing more; placements do the evicting (OCM-33).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from dray.api.cluster import ManagedCluster, Taint
from dray.api.cluster.managed_cluster import (
    AUTOMATIC_TAINTS,
    CONDITION_AVAILABLE,
    CONDITION_HUB_ACCEPTED,
    DEFAULT_LEASE_DURATION_SECONDS,
    EFFECT_NO_SELECT,
    TAINT_UNAVAILABLE,
    TAINT_UNREACHABLE,
)
from dray.api.conditions import find_condition, with_condition
from dray.api.meta import Condition
from dray.api.times import MicroTime, Time

LEASE_NAME: Final = "managed-cluster-lease"
MISSED_RENEWALS: Final = 5
"""So many lease durations after the last renewal a cluster counts as unreachable."""
REASON_LEASE_STOPPED: Final = "ManagedClusterLeaseUpdateStopped"
EVENT_UNKNOWN: Final = "AvailableUnknown"
EVENT_TAINTS_UPDATED: Final = "ManagedClusterConditionAvailableUpdated"


@dataclass(frozen=True, slots=True)
class AvailabilityPlan:
    """What to write, if anything, and when to look again."""

    conditions: tuple[Condition, ...] | None = None
    """The new `status.conditions`; None: as they are."""
    taints: tuple[Taint, ...] | None = None
    """The new `spec.taints`; None: as they are."""
    create_lease: bool = False
    """The agent has no lease to renew yet: make one, renewed now."""
    requeue_after: float | None = None
    """Seconds until the lease expires."""


def plan_availability(
    cluster: ManagedCluster, renewed: MicroTime | dt.datetime | None, now: dt.datetime
) -> AvailabilityPlan:
    """What a cluster's lease, last renewed at `renewed`, means for it. None: there is no lease."""
    expired, requeue_after = _check_lease(cluster, renewed, now)
    available = find_condition(cluster.status.conditions, CONDITION_AVAILABLE)
    conditions = None
    if expired and (available is None or available.status != "Unknown"):
        conditions = _with_unknown(cluster, Time.of(now))
        available = find_condition(conditions, CONDITION_AVAILABLE)
    return AvailabilityPlan(
        conditions=conditions,
        taints=_plan_taints(cluster, available, Time.of(now)),
        create_lease=renewed is None and _is_accepted(cluster) and not _is_deleting(cluster),
        requeue_after=requeue_after,
    )


def grace_of(cluster: ManagedCluster) -> dt.timedelta:
    """How long after its last renewal a cluster's lease expires."""
    seconds = cluster.spec.lease_duration_seconds or DEFAULT_LEASE_DURATION_SECONDS
    return dt.timedelta(seconds=MISSED_RENEWALS * seconds)


def _check_lease(
    cluster: ManagedCluster, renewed: MicroTime | dt.datetime | None, now: dt.datetime
) -> tuple[bool, float | None]:
    """Whether the lease has expired, and if not, in how many seconds it will."""
    if not _is_accepted(cluster):
        return False, None
    if renewed is None:
        return _is_deleting(cluster), None
    if isinstance(renewed, MicroTime):
        renewed = renewed.datetime()
    left = (grace_of(cluster) - (now - renewed)).total_seconds()
    return (True, None) if left <= 0 else (False, left)


def _is_accepted(cluster: ManagedCluster) -> bool:
    """Whether the hub ever accepted the cluster; before that nobody expects a lease."""
    return find_condition(cluster.status.conditions, CONDITION_HUB_ACCEPTED) is not None


def _is_deleting(cluster: ManagedCluster) -> bool:
    return cluster.metadata.deletion_timestamp is not None


def _with_unknown(cluster: ManagedCluster, now: Time) -> tuple[Condition, ...]:
    unknown = Condition(
        type=CONDITION_AVAILABLE,
        status="Unknown",
        observed_generation=cluster.metadata.generation,
        last_transition_time=now,
        reason=REASON_LEASE_STOPPED,
        message="The agent of the cluster has stopped renewing its lease",
    )
    return with_condition(cluster.status.conditions, unknown)


def _plan_taints(cluster: ManagedCluster, available: Condition | None, now: Time) -> tuple[Taint, ...] | None:
    """At most one automatic taint, the one that the condition asks for (OCM-29..31); None: as they are."""
    if _is_deleting(cluster):
        return None
    wanted = _wanted_taint(available)
    kept = tuple(
        taint for taint in cluster.spec.taints if taint.key not in AUTOMATIC_TAINTS or _is_automatic(taint, wanted)
    )
    if wanted is not None and not any(_is_automatic(taint, wanted) for taint in kept):
        kept = (*kept, Taint(key=wanted, effect=EFFECT_NO_SELECT, time_added=now))
    return None if kept == cluster.spec.taints else kept


def _wanted_taint(available: Condition | None) -> str | None:
    if available is None or available.status not in ("True", "False"):
        return TAINT_UNREACHABLE
    return TAINT_UNAVAILABLE if available.status == "False" else None


def _is_automatic(taint: Taint, key: str | None) -> bool:
    return taint.key == key and taint.effect == EFFECT_NO_SELECT

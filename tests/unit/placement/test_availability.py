"""Leases, the Available condition and the automatic taints."""

from __future__ import annotations

import datetime as dt

import pytest
from msgspec.structs import replace

from dray.api.cluster import ManagedCluster, ManagedClusterStatus
from dray.api.cluster.managed_cluster import AUTOMATIC_TAINTS, CONDITION_AVAILABLE, CONDITION_HUB_ACCEPTED
from dray.api.meta import Condition
from dray.api.times import MicroTime, Time
from dray.placement import plan_availability
from placement_fleet import NOW, at, managed, taint

UNAVAILABLE = "cluster.open-cluster-management.io/unavailable:NoSelect"
UNREACHABLE = "cluster.open-cluster-management.io/unreachable:NoSelect"


def joined(
    *taints: str, available: str | None = "True", accepted: bool = True, lease_seconds: int = 0
) -> ManagedCluster:
    """A cluster with these taints, added an hour ago, and this Available condition."""
    cluster = managed("cluster1", *(taint(text, 3600) for text in taints))
    conditions = [Condition(type=CONDITION_HUB_ACCEPTED, status="True")] if accepted else []
    if available is not None:
        conditions.append(Condition(type=CONDITION_AVAILABLE, status=available, last_transition_time=Time.of(at(-60))))
    return replace(
        cluster,
        spec=replace(cluster.spec, lease_duration_seconds=lease_seconds),
        status=ManagedClusterStatus(conditions=tuple(conditions)),
    )


def shown(cluster: ManagedCluster, renewed: dt.datetime | None = NOW) -> list[str] | None:
    """The taints that the plan wants, with their age in hours; None: as they are."""
    taints = plan_availability(cluster, renewed, NOW).taints
    if taints is None:
        return None
    return [f"{entry.key}:{entry.effect}@{entry.time_added}" for entry in taints]


OLD, NEW = Time.of(at(-3600)), Time.of(NOW)


@pytest.mark.req("OCM-06", "OCM-29", "OCM-30", "OCM-31", "OCM-42", "SVS-74")
@pytest.mark.parametrize(
    ("available", "before", "after"),
    [
        ("True", [], None),
        ("False", [], [f"{UNAVAILABLE}@{NEW}"]),
        ("Unknown", [], [f"{UNREACHABLE}@{NEW}"]),
        (None, [], [f"{UNREACHABLE}@{NEW}"]),
        ("True", [UNAVAILABLE], []),
        ("True", [UNREACHABLE], []),
        ("True", [UNREACHABLE, UNAVAILABLE], []),
        ("False", [UNAVAILABLE], None),
        ("False", [UNREACHABLE], [f"{UNAVAILABLE}@{NEW}"]),
        ("Unknown", [UNREACHABLE], None),
        ("Unknown", [UNAVAILABLE], [f"{UNREACHABLE}@{NEW}"]),
        ("False", ["gpu:NoSelect"], [f"gpu:NoSelect@{OLD}", f"{UNAVAILABLE}@{NEW}"]),
        ("True", ["gpu:NoSelect", UNREACHABLE], [f"gpu:NoSelect@{OLD}"]),
        ("True", ["cluster.open-cluster-management.io/unreachable:PreferNoSelect"], []),
    ],
)
def test_the_taint_follows_the_condition(available: str | None, before: list[str], after: list[str] | None) -> None:
    assert shown(joined(*before, available=available)) == after


@pytest.mark.req("OCM-30")
@pytest.mark.parametrize(
    ("lease_seconds", "age", "expired"),
    [(0, 299, False), (0, 300, True), (60, 299.9, False), (10, 49, False), (10, 50, True), (10, 3600, True)],
)
def test_a_lease_lasts_for_five_durations(lease_seconds: int, age: float, expired: bool) -> None:
    plan = plan_availability(joined(lease_seconds=lease_seconds), at(-age), NOW)
    if not expired:
        assert plan.conditions is None
        assert plan.taints is None
        assert plan.requeue_after == pytest.approx(5 * (lease_seconds or 60) - age)
        return
    assert plan.conditions is not None
    unknown = plan.conditions[-1]
    assert (unknown.type, unknown.status, unknown.reason, unknown.last_transition_time) == (
        CONDITION_AVAILABLE,
        "Unknown",
        "ManagedClusterLeaseUpdateStopped",
        NEW,
    )
    assert shown(joined(lease_seconds=lease_seconds), at(-age)) == [f"{UNREACHABLE}@{NEW}"]
    assert plan.requeue_after is None


def test_a_cluster_known_to_be_unreachable_is_not_written_again() -> None:
    plan = plan_availability(joined(UNREACHABLE, available="Unknown"), at(-3600), NOW)
    assert (plan.conditions, plan.taints) == (None, None)


def test_times_of_leases_are_read_as_the_api_has_them() -> None:
    plan = plan_availability(joined(), MicroTime.of(at(-100)), NOW)
    assert plan.requeue_after == 200


def test_nobody_expects_a_lease_before_the_hub_has_accepted_the_cluster() -> None:
    plan = plan_availability(joined(accepted=False, available=None), None, NOW)
    assert (plan.conditions, plan.create_lease) == (None, False)
    assert plan.taints is not None


def test_an_accepted_cluster_gets_a_lease_to_renew() -> None:
    assert plan_availability(joined(), None, NOW).create_lease
    assert not plan_availability(joined(), NOW, NOW).create_lease


def test_a_cluster_that_leaves_without_a_lease_is_unknown_and_keeps_its_taints() -> None:
    cluster = joined()
    leaving = replace(cluster, metadata=replace(cluster.metadata, deletion_timestamp=NEW))
    plan = plan_availability(leaving, None, NOW)
    assert plan.conditions is not None
    assert plan.conditions[-1].status == "Unknown"
    assert (plan.taints, plan.create_lease) == (None, False)


@pytest.mark.req("OCM-33")
def test_the_plan_is_about_conditions_and_taints_and_nothing_else() -> None:
    cluster = joined(available="False")
    plan = plan_availability(cluster, NOW, NOW)
    assert plan.conditions is None
    assert plan.taints is not None
    assert {entry.key for entry in plan.taints} <= AUTOMATIC_TAINTS

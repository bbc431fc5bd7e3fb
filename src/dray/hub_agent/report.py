"""What a cluster tells the hub about itself, as the status of its ManagedCluster. Pure.

Devices are told as claims, four for each class, so that placements can select by them:

    total.devices.dray.dev/gpu.example.com: "32"
    free.devices.dray.dev/gpu.example.com: "12"
    tainted.devices.dray.dev/gpu.example.com: "4"
    blocked.devices.dray.dev/gpu.example.com: "0"
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from dray.api.cluster import ManagedCluster, ManagedClusterClaim, ManagedClusterStatus, ManagedClusterVersion
from dray.api.cluster.managed_cluster import CONDITION_AVAILABLE, CONDITION_JOINED
from dray.api.conditions import find_condition, with_condition
from dray.api.generated.core import Node
from dray.api.meta import Condition
from dray.api.quantity import Quantity
from dray.api.times import Time
from dray.hub_agent.device_counts import Count

DOMAIN: Final = "devices.dray.dev"
CLASSES: Final = 100
"""How many classes are told of, by name; a claim says how many more there are."""
NAME_LENGTH: Final = 63
"""What the key of a claim selector may have after the slash."""


class ClusterReport(msgspec.Struct, frozen=True):
    """A cluster in numbers. `problem` says why it is not available, empty if it is."""

    capacity: dict[str, Quantity]
    allocatable: dict[str, Quantity]
    version: str
    claims: tuple[ManagedClusterClaim, ...] = ()
    problem: str = ""


def describe_nodes(nodes: Iterable[Node]) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
    """The sums of capacity and of what is allocatable; nodes that take no pods add nothing to the latter."""
    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    for node in nodes:
        _add(capacity, node.status.capacity)
        if not node.spec.unschedulable:
            _add(allocatable, node.status.allocatable)
    return capacity, allocatable


def describe_devices(counts: Mapping[str, Count]) -> tuple[ManagedClusterClaim, ...]:
    """The claims about devices, in the order of the classes' names."""
    names = sorted(counts)
    claims = [
        ManagedClusterClaim(name=f"{what}.{DOMAIN}/{_short(name)}", value=str(value))
        for name in names[:CLASSES]
        for what, value in counts[name]._asdict().items()
    ]
    if len(names) > CLASSES:
        claims.append(ManagedClusterClaim(name=f"more.{DOMAIN}/classes", value=str(len(names) - CLASSES)))
    return tuple(claims)


def status_of(cluster: ManagedCluster, report: ClusterReport, now: Time) -> ManagedClusterStatus:
    """The status that the cluster should have on the hub; equal to what it has if there is no news.

    Claims and conditions of others stay.
    """
    own = {claim.name for claim in report.claims}
    others = tuple(
        claim for claim in cluster.status.cluster_claims if claim.name not in own and not _is_about_devices(claim.name)
    )
    return replace(
        cluster.status,
        conditions=_conditions(cluster, report, now),
        capacity=report.capacity,
        allocatable=report.allocatable,
        version=ManagedClusterVersion(kubernetes=report.version),
        cluster_claims=(*others, *report.claims),
    )


def _add(sums: dict[str, Quantity], amounts: Mapping[str, Quantity]) -> None:
    for name, amount in amounts.items():
        sums[name] = sums[name] + amount if name in sums else amount


def _is_about_devices(claim: str) -> bool:
    return claim.partition("/")[0].endswith(f".{DOMAIN}")


def _short(name: str) -> str:
    """A class name as the name in a label key: a long one ends in a digest of the whole."""
    if len(name) <= NAME_LENGTH:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: NAME_LENGTH - 9].rstrip('.-')}-{digest}"


def _conditions(cluster: ManagedCluster, report: ClusterReport, now: Time) -> tuple[Condition, ...]:
    available = Condition(
        type=CONDITION_AVAILABLE,
        status="False" if report.problem else "True",
        reason="ManagedClusterKubeAPIServerUnavailable" if report.problem else "ManagedClusterAvailable",
        message=report.problem or "Managed cluster is available",
    )
    joined = Condition(
        type=CONDITION_JOINED, status="True", reason="ManagedClusterJoined", message="Managed cluster joined"
    )
    conditions = cluster.status.conditions
    for wanted in (joined, available):
        old = find_condition(conditions, wanted.type)
        # No observedGeneration: it says nothing about the spec, and `kubectl wait` passes over one that is behind.
        if old is None or (old.status, old.reason, old.message) != (wanted.status, wanted.reason, wanted.message):
            conditions = with_condition(conditions, replace(wanted, last_transition_time=now))
    return conditions

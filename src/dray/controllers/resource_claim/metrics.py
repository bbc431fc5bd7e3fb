"""Metrics of claims: the seed's names (4381-189 … 191) and those that Kubernetes ships (SVS-58)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dray.api.extended_resources import CLAIM_ANNOTATION
from dray.api.pod_claims import POD_CLAIM_NAME
from dray.api.resource import ResourceClaim, ResourceClaimSpec
from dray.api.sharing import remembered


class Group(NamedTuple):
    """What claims are counted by."""

    allocated: str
    admin_access: str
    source: str


class ClaimMetrics(Collector):
    """Counts as claims change; nothing is listed when somebody asks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._claims: Counter[Group] = Counter()
        self._creates: Counter[tuple[str, str]] = Counter()
        registry.register(self)

    def changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Notes that a claim came, changed or went."""
        if old is not None:
            self._claims[_group(old)] -= 1
        if new is not None:
            self._claims[_group(new)] += 1

    def created(self, spec: ResourceClaimSpec, *, ok: bool) -> None:
        """Notes that the creation of a claim for a pod was tried."""
        self._creates["success" if ok else "failure", _admin_access(spec)] += 1

    def collect(self) -> Iterator[Metric]:
        """All of it, under both names."""
        total = sum(self._claims.values())
        allocated = sum(count for group, count in self._claims.items() if group.allocated == "true")
        yield GaugeMetricFamily("resourceclaim_controller_resource_claims", "Number of ResourceClaims.", total)
        yield GaugeMetricFamily(
            "resourceclaim_controller_allocated_resource_claims", "Number of allocated ResourceClaims.", allocated
        )
        failures = sum(count for (status, _), count in self._creates.items() if status == "failure")
        yield CounterMetricFamily(
            "resourceclaim_controller_create",
            "Number of ResourceClaim creation requests.",
            sum(self._creates.values()),
        )
        yield CounterMetricFamily(
            "resourceclaim_controller_create_failures", "Number of ResourceClaim creation request failures.", failures
        )
        yield from self._shipped()

    def _shipped(self) -> Iterator[Metric]:
        claims = GaugeMetricFamily(
            "dynamic_resource_allocation_resource_claims",
            "Number of ResourceClaims, by allocation status, admin access and source.",
            labels=Group._fields,
        )
        for group, count in self._claims.items():
            claims.add_metric(group, count)
        creates = CounterMetricFamily(
            "dynamic_resource_allocation_resourceclaim_creates",
            "Number of ResourceClaim creation requests, by status, admin access and owner.",
            labels=("status", "admin_access", "owner_api_group", "owner_api_kind"),
        )
        for (status, admin_access), number in self._creates.items():
            creates.add_metric((status, admin_access, "", "Pod"), number)
        yield from (claims, creates)


def _group(claim: ResourceClaim) -> Group:
    annotations = claim.metadata.annotations
    source = ""
    if POD_CLAIM_NAME in annotations:
        source = "resource_claim_template"
    elif annotations.get(CLAIM_ANNOTATION) == "true":
        source = "extended_resource"
    return Group("true" if claim.status.allocation is not None else "false", _admin_access(claim.spec), source)


@remembered
def _admin_access(spec: ResourceClaimSpec) -> str:
    asked = any(one.exactly is not None and one.exactly.admin_access for one in spec.devices.requests)
    return "true" if asked else "false"

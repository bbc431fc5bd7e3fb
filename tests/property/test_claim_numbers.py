"""What metrics say of claims, counted again after every change."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

import builders
from dray.api import codec
from dray.api.resource import ResourceClaim
from dray.controllers.resource_claim.metrics import ClaimMetrics

SOURCES: dict[str, dict[str, str]] = {
    "": {},
    "resource_claim_template": {"resource.kubernetes.io/pod-claim-name": "c"},
    "extended_resource": {"resource.kubernetes.io/extended-resource-claim": "true"},
}

_claims = st.tuples(st.booleans(), st.booleans(), st.sampled_from(list(SOURCES)))
"""Whether it has devices, whether it asks for admin access, and where it comes from."""
_changes = st.lists(st.tuples(st.sampled_from("abcd"), st.none() | _claims), max_size=20)
"""Claims that come, change or (None) go."""


def claim(name: str, is_allocated: bool, is_admin: bool, source: str) -> ResourceClaim:
    wanted = builders.request("r", deviceClassName="any", **({"adminAccess": True} if is_admin else {}))
    status: dict[str, Any] = builders.allocated("d", pool="p", request="r") if is_allocated else {}
    made = builders.claim(name, wanted, status=status)
    made["metadata"]["annotations"] = SOURCES[source]
    found = codec.read(made, ResourceClaim).obj
    assert found is not None
    return found


def sample(registry: CollectorRegistry, name: str, **labels: str) -> float:
    return registry.get_sample_value(name, labels) or 0


@given(_changes)
def test_claims_are_counted_as_they_are_now(changes: list[tuple[str, tuple[bool, bool, str] | None]]) -> None:
    registry = CollectorRegistry()
    metrics = ClaimMetrics(registry)
    now: dict[str, tuple[bool, bool, str]] = {}
    typed: dict[str, ResourceClaim] = {}
    for name, then in changes:
        new = None if then is None else claim(name, *then)
        metrics.changed(typed.pop(name, None), new)
        now.pop(name, None)
        if then is not None and new is not None:
            now[name], typed[name] = then, new
    assert sample(registry, "resourceclaim_controller_resource_claims") == len(now)
    has_devices = sum(is_allocated for is_allocated, _, _ in now.values())
    assert sample(registry, "resourceclaim_controller_allocated_resource_claims") == has_devices
    counted = Counter(now.values())
    for allocated in (True, False):
        for admin in (True, False):
            for source in SOURCES:
                labels = {"allocated": str(allocated).lower(), "admin_access": str(admin).lower(), "source": source}
                told = sample(registry, "dynamic_resource_allocation_resource_claims", **labels)
                assert told == counted[allocated, admin, source]


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_creations_are_counted_as_they_ended(tries: list[tuple[bool, bool]]) -> None:
    registry = CollectorRegistry()
    metrics = ClaimMetrics(registry)
    for ok, is_admin in tries:
        metrics.created(claim("c", False, is_admin, "").spec, ok=ok)
    assert sample(registry, "resourceclaim_controller_create_total") == len(tries)
    assert sample(registry, "resourceclaim_controller_create_failures_total") == sum(not ok for ok, _ in tries)
    for ok in (True, False):
        for is_admin in (True, False):
            labels = {"status": "success" if ok else "failure", "admin_access": str(is_admin).lower()}
            told = sample(
                registry,
                "dynamic_resource_allocation_resourceclaim_creates_total",
                owner_api_group="",
                owner_api_kind="Pod",
                **labels,
            )
            assert told == tries.count((ok, is_admin))

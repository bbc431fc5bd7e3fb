"""ManagedCluster, its sets and their bindings (Open Cluster Management)."""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from dray.api.cluster import (
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
)
from dray.api.cluster.cluster_set import SELECTOR_EXCLUSIVE_LABEL, SELECTOR_TYPES
from dray.api.cluster.managed_cluster import (
    CLAIM_NAME_LENGTH,
    CLAIM_VALUE_LENGTH,
    DEFAULT_LEASE_DURATION_SECONDS,
    EFFECTS,
    KEY_LENGTH,
    VALUE_LENGTH,
)
from dray.api.field import invalid, required
from dray.api.times import Time
from dray.validation import check
from dray.validation.context import Context, Errors
from dray.validation.device_taints import timed
from dray.validation.metadata import DNS_LABEL
from dray.validation.rules import Rules

_LABEL: Final = r"[a-z0-9]++(?:-++[a-z0-9]++)*+"
_KEY: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*+/)?[A-Za-z0-9]++(?:[-_.]++[A-Za-z0-9]++)*+")
_URL: Final = re.compile(r"https://[^\s/]+(?:/\S*)?")


def validate_key(errors: Errors, key: str, path: str) -> None:
    """The key of a taint or toleration (OCM-02, OCM-08)."""
    check.length(errors, path, key, KEY_LENGTH)
    if _KEY.fullmatch(key) is None:
        errors.append(invalid(path, key, "must be a label key"))


def _default(obj: ManagedCluster, now: Time) -> ManagedCluster:
    """Taints get the time at which they were added (OCM-43); a lease lasts a minute."""
    spec = obj.spec
    if not spec.lease_duration_seconds:
        spec = replace(spec, lease_duration_seconds=DEFAULT_LEASE_DURATION_SECONDS)
    if (taints := timed(spec.taints, now)) is not spec.taints:
        spec = replace(spec, taints=taints)
    return obj if spec is obj.spec else replace(obj, spec=spec)


def _check(errors: Errors, new: ManagedCluster, _old: ManagedCluster | None, _ctx: Context) -> None:
    for index, taint in enumerate(new.spec.taints):
        path = f"spec.taints[{index}]"
        if taint.key:
            validate_key(errors, taint.key, f"{path}.key")
        else:
            errors.append(required(f"{path}.key"))
        check.length(errors, f"{path}.value", taint.value, VALUE_LENGTH)
        check.required_one_of(errors, f"{path}.effect", taint.effect, EFFECTS)
    for index, config in enumerate(new.spec.managed_cluster_client_configs):
        path = f"spec.managedClusterClientConfigs[{index}].url"
        if not config.url:
            errors.append(required(path))
        elif _URL.fullmatch(config.url) is None:
            errors.append(invalid(path, config.url, "must be an https URL"))
    check.not_negative(errors, "spec.leaseDurationSeconds", new.spec.lease_duration_seconds)


def _check_status(errors: Errors, new: ManagedCluster, _old: ManagedCluster, _ctx: Context) -> None:
    for index, claim in enumerate(new.status.cluster_claims):
        path = f"status.clusterClaims[{index}]"
        if not claim.name:
            errors.append(required(f"{path}.name"))
        if not claim.value:
            errors.append(required(f"{path}.value"))
        check.length(errors, f"{path}.name", claim.name, CLAIM_NAME_LENGTH)
        check.length(errors, f"{path}.value", claim.value, CLAIM_VALUE_LENGTH)


def _default_set(obj: ManagedClusterSet, _now: Time) -> ManagedClusterSet:
    selector = obj.spec.cluster_selector
    if selector.selector_type:
        return obj
    selector = replace(selector, selector_type=SELECTOR_EXCLUSIVE_LABEL)
    return replace(obj, spec=replace(obj.spec, cluster_selector=selector))


def _check_set(errors: Errors, new: ManagedClusterSet, _old: ManagedClusterSet | None, _ctx: Context) -> None:
    """What the selector says is not checked, as upstream: placements that would choose from the set wait for it."""
    check.one_of(errors, "spec.clusterSelector.selectorType", new.spec.cluster_selector.selector_type, SELECTOR_TYPES)


def _check_binding(
    errors: Errors, new: ManagedClusterSetBinding, _old: ManagedClusterSetBinding | None, _ctx: Context
) -> None:
    """A binding is named after its set, so that there is one per namespace."""
    if not new.spec.cluster_set:
        errors.append(required("spec.clusterSet"))
    elif new.spec.cluster_set != new.metadata.name:
        errors.append(invalid("spec.clusterSet", new.spec.cluster_set, "must be the name of the binding"))


RULES: Final = {
    # The name is also that of the cluster's namespace.
    "ManagedCluster": Rules(
        namespaced=False,
        name=DNS_LABEL,
        has_generation=True,
        has_status=True,
        default=_default,
        check=_check,
        check_status=_check_status,
    ),
    "ManagedClusterSet": Rules(
        namespaced=False, has_generation=True, has_status=True, default=_default_set, check=_check_set
    ),
    "ManagedClusterSetBinding": Rules(has_generation=True, has_status=True, check=_check_binding),
}

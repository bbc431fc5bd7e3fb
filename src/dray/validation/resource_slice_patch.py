"""ResourceSlicePatch: an admin's view of devices (KEP-5027)."""

from __future__ import annotations

from typing import Final

from dray.api.field import invalid
from dray.api.resource import DevicePatchFilter, ResourceSlicePatch
from dray.api.resource.slice import ATTRIBUTES_AND_CAPACITIES_PER_DEVICE
from dray.validation import check, names
from dray.validation.capacity import validate_request_policy
from dray.validation.context import Context, Errors
from dray.validation.device_attributes import validate_attribute
from dray.validation.gates_slice import drop_patch_fields
from dray.validation.resource_names import (
    shortened,
    validate_driver_name,
    validate_fully_qualified_name,
    validate_pool_name,
)
from dray.validation.rules import Rules
from dray.validation.selectors import validate_selectors


def _check(errors: Errors, new: ResourceSlicePatch, old: ResourceSlicePatch | None, _ctx: Context) -> None:
    """At most 32 attributes and capacities together, under fully qualified names (5027-08..11)."""
    path, patch = "spec.devices", new.spec.devices
    if patch.filter is not None:
        before = old.spec.devices.filter if old is not None else None
        _validate_filter(errors, patch.filter, before, f"{path}.filter")
    total = len(patch.attributes) + len(patch.capacity)
    if total > ATTRIBUTES_AND_CAPACITIES_PER_DEVICE:
        limit = ATTRIBUTES_AND_CAPACITIES_PER_DEVICE
        errors.append(invalid(path, total, f"must not have more than {limit} attributes and capacities"))
    for key, attribute in patch.attributes.items():
        validate_fully_qualified_name(errors, key, f"{path}.attributes")
        inner = f"{path}.attributes[{shortened(key)}]"
        validate_attribute(errors, attribute, inner, inner)
    for key, capacity in patch.capacity.items():
        validate_fully_qualified_name(errors, key, f"{path}.capacity")
        if capacity.request_policy is not None:
            inner = f"{path}.capacity[{shortened(key)}].requestPolicy"
            validate_request_policy(errors, capacity.value, capacity.request_policy, inner)


def _validate_filter(errors: Errors, criteria: DevicePatchFilter, old: DevicePatchFilter | None, path: str) -> None:
    """All criteria are optional (5027-14); a selector must be of a kind that is known (5027-15)."""
    if criteria.device_class_name is not None:
        check.required_name(errors, f"{path}.deviceClassName", criteria.device_class_name, names.dns_subdomain)
    if criteria.driver is not None:
        validate_driver_name(errors, criteria.driver, f"{path}.driver")
    if criteria.pool is not None:
        validate_pool_name(errors, criteria.pool, f"{path}.pool")
    if criteria.device is not None:
        check.name(errors, f"{path}.device", criteria.device, names.dns_label)
    stored = old is not None and criteria.selectors == old.selectors
    validate_selectors(errors, criteria.selectors, f"{path}.selectors", stored=stored)


RULES: Final = {
    "ResourceSlicePatch": Rules(
        namespaced=False,
        has_generation=True,
        change=drop_patch_fields,
        check=_check,
    )
}

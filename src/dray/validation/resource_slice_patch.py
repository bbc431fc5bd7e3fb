"""ResourceSlicePatch: an admin's view of devices (KEP-5027)."""

from __future__ import annotations

from typing import Final

from dray.api.field import invalid
from dray.api.resource import ResourceSlicePatch
from dray.api.resource.slice import ATTRIBUTES_AND_CAPACITIES_PER_DEVICE
from dray.validation.capacity import validate_request_policy
from dray.validation.context import Context, Errors
from dray.validation.device_attributes import validate_attribute
from dray.validation.device_criteria import validate_criteria
from dray.validation.gates_slice import drop_patch_fields
from dray.validation.resource_names import (
    shortened,
    validate_fully_qualified_name,
)
from dray.validation.rules import Rules


def _check(errors: Errors, new: ResourceSlicePatch, old: ResourceSlicePatch | None, _ctx: Context) -> None:
    """At most 32 attributes and capacities together, under fully qualified names (5027-08..11)."""
    path, patch = "spec.devices", new.spec.devices
    if patch.filter is not None:
        before = old.spec.devices.filter if old is not None else None
        validate_criteria(errors, patch.filter, before, f"{path}.filter")
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


RULES: Final = {
    "ResourceSlicePatch": Rules(
        namespaced=False,
        has_generation=True,
        change=drop_patch_fields,
        check=_check,
    )
}

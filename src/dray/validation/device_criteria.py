"""Which devices a taint rule or a slice patch is for: both have the same five criteria, all of them optional."""

from __future__ import annotations

from dray.api.resource import DevicePatchFilter, DeviceTaintSelector
from dray.validation import check, names
from dray.validation.context import Errors
from dray.validation.resource_names import validate_driver_name, validate_pool_name
from dray.validation.selectors import validate_selectors

Criteria = DeviceTaintSelector | DevicePatchFilter


def validate_criteria(errors: Errors, criteria: Criteria, old: Criteria | None, path: str) -> None:
    """Each criterion that is given (5055-33, 5027-14); a selector must be of a kind that is known (5027-15)."""
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

"""Attributes that requests of a claim derive from devices, so that constraints can compare them."""

from __future__ import annotations

from typing import Final

from dray.api.field import forbidden, invalid, required
from dray.api.resource import DeviceConstraint, DeviceDerivedAttribute
from dray.api.resource.claim import request_parts
from dray.validation import check
from dray.validation.context import Errors
from dray.validation.resource_names import validate_fully_qualified_name
from dray.validation.selectors import validate_derived_expression

PER_REQUEST: Final = 32
COST_PER_CLAIM: Final = 1_000_000


class DerivedAttributes:
    """Judges those of one claim, request by request, and what all of them together may cost."""

    def __init__(self, constraints: tuple[DeviceConstraint, ...]) -> None:
        self._constrained = _constrained_attributes(constraints)
        self._cost = 0

    def check(
        self,
        errors: Errors,
        attributes: tuple[DeviceDerivedAttribute, ...],
        request: str,
        path: str,
        declared: str,
    ) -> None:
        """Those of `request` or `request/subrequest`. `declared` is `path` as the request's version spells it."""
        if not attributes:
            return
        path, declared = f"{path}.derivedAttributes", f"{declared}.derivedAttributes"
        check.unique(errors, path, (attribute.name for attribute in attributes))
        for index, attribute in enumerate(attributes):
            if attribute.name and not self._is_compared(attribute.name, request):
                detail = "must be named by a constraint on this request"
                errors.append(invalid(f"{path}[{index}].name", attribute.name, detail))
        if not check.fits(errors, declared, attributes, PER_REQUEST):
            return
        for index, attribute in enumerate(attributes):
            if attribute.name:
                validate_fully_qualified_name(errors, attribute.name, f"{declared}[{index}].name")
            else:
                errors.append(required(f"{declared}[{index}].name"))
            if attribute.expression:
                where = f"{path}[{index}].expression"
                self._cost += validate_derived_expression(errors, attribute.expression, where)
            else:
                errors.append(required(f"{declared}[{index}].expression"))

    def check_cost(self, errors: Errors, path: str) -> None:
        """Each expression may cost as much as a selector, and all expressions of a claim no more than one."""
        if self._cost > COST_PER_CLAIM:
            detail = f"too complex: derived attributes cost {self._cost} together, and may cost {COST_PER_CLAIM}"
            errors.append(forbidden(path, detail))

    def _is_compared(self, attribute: str, request: str) -> bool:
        """Whether a constraint on all requests, on this one or on its parent names the attribute."""
        parent, _ = request_parts(request)
        return any(attribute in self._constrained.get(target, ()) for target in ("", request, parent))


def _constrained_attributes(constraints: tuple[DeviceConstraint, ...]) -> dict[str, set[str]]:
    """Request name → attributes that constraints on it name; "" stands for all requests."""
    found: dict[str, set[str]] = {}
    for constraint in constraints:
        attribute = constraint.match_attribute
        if attribute is None:
            attribute = constraint.distinct_attribute
        if attribute is not None:
            for target in constraint.requests or ("",):
                found.setdefault(target, set()).add(attribute)
    return found

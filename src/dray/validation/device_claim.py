"""The spec that claims and claim templates share: requests, constraints and configuration."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from dray.api.field import forbidden, invalid, not_supported, required
from dray.api.resource import (
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
    ResourceClaimSpec,
)
from dray.api.resource.claim import (
    CONFIGS,
    CONSTRAINTS,
    MODE_ALL,
    MODE_EXACT_COUNT,
    REQUESTS,
    SUBREQUESTS,
)
from dray.api.resource.device_class import OPAQUE_PARAMETER_BYTES, SELECTORS
from dray.api.resource.taint import OPERATOR_EQUAL
from dray.api.sharing import remembered
from dray.validation import check, names
from dray.validation.context import DRA_ADMIN_NAMESPACE_LABEL, Context, Errors
from dray.validation.derived_attributes import DerivedAttributes
from dray.validation.device_taints import toleration_warnings, validate_declared_toleration, validate_tolerations
from dray.validation.resource_names import validate_driver_name, validate_fully_qualified_name
from dray.validation.selectors import validate_selectors

MODES: Final = (MODE_ALL, MODE_EXACT_COUNT)

Alternative = TypeVar("Alternative", ExactDeviceRequest, DeviceSubRequest)


class RequestNames(msgspec.Struct, frozen=True):
    """The names by which constraints, configuration and results can refer to requests: `request` and `request/sub`."""

    names: frozenset[str]

    @classmethod
    def of(cls, claim: DeviceClaim) -> RequestNames:
        """All names of a claim."""
        found = {request.name for request in claim.requests}
        for request in claim.requests:
            found.update(f"{request.name}/{sub.name}" for sub in request.first_available)
        return cls(frozenset(found))


@remembered
def default_claim(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """One device of a request, unless it says otherwise (4381-45, 4381-46); tolerations compare values (5055-39)."""
    if not spec.devices.requests:
        return spec
    requests = tuple(_default_request(request) for request in spec.devices.requests)
    if requests == spec.devices.requests:
        return spec
    return replace(spec, devices=replace(spec.devices, requests=requests))


def _default_request(request: DeviceRequest) -> DeviceRequest:
    exactly = _default_alternative(request.exactly) if request.exactly is not None else None
    subrequests = tuple(_default_alternative(sub) for sub in request.first_available)
    return replace(request, exactly=exactly, first_available=subrequests)


def _default_alternative(request: Alternative) -> Alternative:
    mode = request.allocation_mode or MODE_EXACT_COUNT
    count = 1 if mode == MODE_EXACT_COUNT and request.count == 0 else request.count
    tolerations = default_tolerations(request.tolerations)
    return replace(request, allocation_mode=mode, count=count, tolerations=tolerations)


def default_tolerations(tolerations: tuple[DeviceToleration, ...]) -> tuple[DeviceToleration, ...]:
    """Tolerations with their operator (5055-25)."""
    if all(toleration.operator for toleration in tolerations):
        return tolerations
    return tuple(
        toleration if toleration.operator else replace(toleration, operator=OPERATOR_EQUAL)
        for toleration in tolerations
    )


def validate_device_claim(errors: Errors, claim: DeviceClaim, path: str, *, is_v1beta1: bool) -> None:
    """The whole spec of a claim (4381-40..57)."""
    references = RequestNames.of(claim)
    derived = DerivedAttributes(claim.constraints)
    if check.fits(errors, f"{path}.requests", claim.requests, REQUESTS):
        for index, request in enumerate(claim.requests):
            _validate_request(errors, request, f"{path}.requests[{index}]", derived, is_v1beta1=is_v1beta1)
        check.unique(errors, f"{path}.requests", (request.name for request in claim.requests))
        derived.check_cost(errors, path)
    if check.fits(errors, f"{path}.constraints", claim.constraints, CONSTRAINTS):
        for index, constraint in enumerate(claim.constraints):
            _validate_constraint(errors, constraint, f"{path}.constraints[{index}]", references)
    if check.fits(errors, f"{path}.config", claim.config, CONFIGS):
        for index, config in enumerate(claim.config):
            inner = f"{path}.config[{index}]"
            validate_request_references(errors, config.requests, f"{inner}.requests", references)
            validate_opaque(errors, config.opaque, inner)


def validate_admin_access(errors: Errors, claim: DeviceClaim, ctx: Context) -> None:
    """Admin access needs a namespace that an admin has marked for it (SVS-42). Only the first request is reported."""
    if ctx.namespace_labels is None:
        return
    for index, request in enumerate(claim.requests):
        if request.exactly is not None and request.exactly.admin_access:
            if ctx.namespace_labels.get(DRA_ADMIN_NAMESPACE_LABEL) != "true":
                # Kubernetes reports this path for claims and templates alike, without the parts in between.
                errors.append(forbidden(f"spec.devices.requests[{index}].adminAccess", ADMIN_ACCESS_DENIED))
            return


ADMIN_ACCESS_DENIED: Final = (
    f"admin access to devices requires the `{DRA_ADMIN_NAMESPACE_LABEL}: true` label on the containing namespace"
)


def claim_warnings(claim: DeviceClaim, path: str) -> list[str]:
    """What is accepted but does not do what its author may think (5055-148)."""
    found: list[str] = []
    for index, request in enumerate(claim.requests):
        inner = f"{path}.requests[{index}]"
        if request.exactly is not None:
            found += toleration_warnings(request.exactly.tolerations, f"{inner}.exactly.tolerations")
        for position, sub in enumerate(request.first_available):
            found += toleration_warnings(sub.tolerations, f"{inner}.firstAvailable[{position}].tolerations")
    return found


def _validate_request(
    errors: Errors, request: DeviceRequest, path: str, derived: DerivedAttributes, *, is_v1beta1: bool
) -> None:
    check.name(errors, f"{path}.name", request.name, names.dns_label)
    exactly, subrequests = request.exactly, request.first_available
    if exactly is not None and subrequests:
        errors.append(invalid(path, None, "only one of exactly and firstAvailable may be given"))
        _validate_declared(errors, exactly, f"{path}.exactly")
        if check.fits(errors, f"{path}.firstAvailable", subrequests, SUBREQUESTS):
            for index, sub in enumerate(subrequests):
                inner = f"{path}.firstAvailable[{index}]"
                check.required_name(errors, f"{inner}.deviceClassName", sub.device_class_name, names.dns_subdomain)
                _validate_declared(errors, sub, inner)
            check.unique(errors, f"{path}.firstAvailable", (sub.name for sub in subrequests))
    elif exactly is not None:
        declared = path if is_v1beta1 else f"{path}.exactly"
        _validate_alternative(errors, exactly, f"{path}.exactly", declared)
        derived.check(errors, exactly.derived_attributes, request.name, f"{path}.exactly", declared)
    elif not subrequests:
        errors.append(required(path, "exactly one of exactly and firstAvailable is required"))
    elif check.fits(errors, f"{path}.firstAvailable", subrequests, SUBREQUESTS):
        for index, sub in enumerate(subrequests):
            inner = f"{path}.firstAvailable[{index}]"
            check.name(errors, f"{inner}.name", sub.name, names.dns_label)
            _validate_alternative(errors, sub, inner, inner)
            derived.check(errors, sub.derived_attributes, f"{request.name}/{sub.name}", inner, inner)
        check.unique(errors, f"{path}.firstAvailable", (sub.name for sub in subrequests))


def _validate_declared(errors: Errors, request: ExactDeviceRequest | DeviceSubRequest, path: str) -> None:
    """What holds for a request that says two things at once, so that nobody knows which one is meant."""
    check.fits(errors, f"{path}.selectors", request.selectors, SELECTORS)
    if request.allocation_mode not in (*MODES, ""):
        errors.append(not_supported(f"{path}.allocationMode", request.allocation_mode, MODES))
    for index, toleration in enumerate(request.tolerations):
        validate_declared_toleration(errors, toleration, f"{path}.tolerations[{index}]")


def _validate_alternative(
    errors: Errors, request: ExactDeviceRequest | DeviceSubRequest, path: str, declared: str
) -> None:
    """One way to satisfy a request: its class, selectors, number and tolerations."""
    check.required_name(errors, f"{path}.deviceClassName", request.device_class_name, names.dns_subdomain)
    validate_selectors(errors, request.selectors, f"{path}.selectors", declared=f"{declared}.selectors")
    if request.allocation_mode == MODE_ALL:
        if request.count != 0:
            errors.append(invalid(f"{path}.count", request.count, "must not be given with allocationMode All"))
    elif request.allocation_mode == MODE_EXACT_COUNT:
        if request.count <= 0:
            errors.append(invalid(f"{path}.count", request.count, "must be greater than zero"))
    else:
        where = declared if request.allocation_mode else path
        errors.append(not_supported(f"{where}.allocationMode", request.allocation_mode, MODES))
    validate_tolerations(errors, request.tolerations, f"{path}.tolerations", f"{declared}.tolerations")


def _validate_constraint(errors: Errors, constraint: DeviceConstraint, path: str, references: RequestNames) -> None:
    """A constraint needs an attribute to compare (4381-53); the requests it names must exist (4381-54)."""
    validate_request_references(errors, constraint.requests, f"{path}.requests", references)
    if constraint.match_attribute is None and constraint.distinct_attribute is None:
        errors.append(required(path, "exactly one of matchAttribute and distinctAttribute is required"))
    for field, value in (
        ("matchAttribute", constraint.match_attribute),
        ("distinctAttribute", constraint.distinct_attribute),
    ):
        if value is not None:
            validate_fully_qualified_name(errors, value, f"{path}.{field}")


def validate_request_references(errors: Errors, requests: tuple[str, ...], path: str, references: RequestNames) -> None:
    """References to requests: each once, and to one that exists."""
    if not check.fits(errors, path, requests, REQUESTS):
        return
    for index, name in enumerate(requests):
        validate_request_reference(errors, name, f"{path}[{index}]", references)
    check.unique(errors, path, requests)


def validate_request_reference(errors: Errors, name: str, path: str, references: RequestNames) -> None:
    """`request` or `request/subrequest` of the claim."""
    if name.count("/") < 2:
        for part in name.split("/"):
            check.name(errors, path, part, names.dns_label)
    if name not in references.names:
        errors.append(invalid(path, name, "must be a request of the claim, or request/subrequest"))


def validate_opaque(
    errors: Errors, opaque: OpaqueDeviceConfiguration | None, path: str, *, stored: bool = False
) -> None:
    """A configuration must have content: a driver and a JSON object for it (4381-56, 4381-57, SVS-45)."""
    if opaque is None:
        errors.append(required(f"{path}.opaque"))
        return
    validate_driver_name(errors, opaque.driver, f"{path}.opaque.driver")
    parameters: Any = opaque.parameters
    check.json_object(errors, f"{path}.opaque.parameters", parameters, OPAQUE_PARAMETER_BYTES, stored=stored)

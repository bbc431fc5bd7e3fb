"""What a pod says of resource claims: which ones it uses, and which containers use what of them."""

from __future__ import annotations

from dray.api.field import duplicate, forbidden, invalid, required
from dray.api.generated.core import (
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    ResourceClaim,
)
from dray.api.pods import containers_of
from dray.validation import check, names
from dray.validation.context import Errors


def validate_pod_claims(errors: Errors, claims: tuple[PodResourceClaim, ...], path: str, *, is_mirror: bool) -> None:
    """Names are unique DNS labels, and each entry names either a claim or a template (4381-73)."""
    if is_mirror and claims:
        errors.append(forbidden("", "static pods do not support resource claims"))
        return
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        inner = f"{path}[{index}]"
        if claim.name and claim.name in seen:
            errors.append(duplicate(f"{inner}.name", claim.name))
        else:
            check.required_name(errors, f"{inner}.name", claim.name, names.dns_label)
        seen.add(claim.name)
        sources = (
            ("resourceClaimName", claim.resource_claim_name),
            ("resourceClaimTemplateName", claim.resource_claim_template_name),
        )
        given = [(field, value) for field, value in sources if value is not None]
        if len(given) != 1:
            detail = "must specify one of: resourceClaimName, resourceClaimTemplateName"
            errors.append(invalid(inner, [field for field, _ in given], detail))
        for field, value in given:
            check.name(errors, f"{inner}.{field}", value, names.dns_subdomain)


def validate_container_claims(
    errors: Errors, claims: tuple[ResourceClaim, ...], path: str, pod_claims: frozenset[str]
) -> None:
    """A container uses claims of its pod, each as a whole or some requests of it, nothing twice (4381-74)."""
    seen: set[tuple[str, str]] = set()
    named: set[str] = set()
    for index, claim in enumerate(claims):
        inner = f"{path}[{index}]"
        if not claim.name:
            errors.append(required(inner))
            continue
        if (claim.name, "") in seen:
            errors.append(duplicate(inner, claim.name))
        else:
            if claim.request:
                check.name(errors, f"{inner}.request", claim.request, names.dns_label)
            overlaps = not claim.request and claim.name in named
            if overlaps or (claim.name, claim.request) in seen:
                errors.append(duplicate(inner, claim.name))
            seen.add((claim.name, claim.request))
            named.add(claim.name)
        if claim.name not in pod_claims:
            check.not_found(errors, inner, claim.name, "must be one of the names in pod.spec.resourceClaims")


def validate_claim_statuses(
    errors: Errors, statuses: tuple[PodResourceClaimStatus, ...], claims: tuple[PodResourceClaim, ...]
) -> None:
    """The status names claims of the spec, each once (4381-76)."""
    known = {claim.name for claim in claims}
    seen: set[str] = set()
    for index, status in enumerate(statuses):
        inner = f"status.resourceClaimStatuses[{index}]"
        if status.name not in known:
            errors.append(invalid(f"{inner}.name", status.name, "must be a name in `spec.resourceClaims`"))
        if status.name in seen:
            errors.append(duplicate(f"{inner}.name", status.name))
        seen.add(status.name)
        if status.resource_claim_name is not None:
            check.name(errors, f"{inner}.resourceClaimName", status.resource_claim_name, names.dns_subdomain)


def validate_extended_claim(errors: Errors, status: PodExtendedResourceClaimStatus, spec: PodSpec) -> None:
    """The claim that was made for extended resources: which container's resource became which request."""
    path = "status.extendedResourceClaimStatus"
    check.required_name(errors, f"{path}.resourceClaimName", status.resource_claim_name, names.dns_subdomain)
    if not status.request_mappings:
        errors.append(required(f"{path}.requestMappings", "at least one is needed"))
    requested = {entry.name: entry.resources.requests for entry in containers_of(spec)}
    seen: set[tuple[str, str, str]] = set()
    for index, mapping in enumerate(status.request_mappings):
        inner = f"{path}.requestMappings[{index}]"
        key = (mapping.container_name, mapping.resource_name, mapping.request_name)
        if mapping.container_name not in requested:
            errors.append(invalid(f"{inner}.containerName", mapping.container_name, "must be a container of the pod"))
        elif mapping.resource_name not in requested[mapping.container_name]:
            detail = "must be requested by the container"
            errors.append(invalid(f"{inner}.resourceName", mapping.resource_name, detail))
        # Kubernetes reports the request name beside the list, not inside it.
        check.name(errors, f"{path}.requestName", mapping.request_name, names.dns_label)
        if key in seen:
            for field, value in zip(("containerName", "resourceName", "requestName"), key, strict=True):
                errors.append(duplicate(f"{inner}.{field}", value))
        seen.add(key)

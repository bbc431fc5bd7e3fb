"""The names of resource.k8s.io: drivers, pools, attributes and capacities."""

from __future__ import annotations

from dray.api.field import invalid, required, too_long
from dray.api.resource.slice import DOMAIN_LENGTH, DRIVER_NAME_LENGTH, IDENTIFIER_LENGTH, POOL_NAME_LENGTH
from dray.validation import check, names
from dray.validation.context import Errors

ATTRIBUTE_NAME_LENGTH = DOMAIN_LENGTH + 1 + IDENTIFIER_LENGTH


def validate_driver_name(errors: Errors, value: str, path: str) -> None:
    """A DNS subdomain of at most 63 bytes; upper case passes (4381-05, 4381-06, SVS-38)."""
    if not value:
        errors.append(required(path))
        return
    check.length(errors, path, value, DRIVER_NAME_LENGTH)
    check.name(errors, path, value.lower(), names.dns_subdomain)


def validate_pool_name(errors: Errors, value: str, path: str) -> None:
    """DNS subdomains joined by slashes, at most 253 bytes together (4381-08)."""
    if not value:
        errors.append(required(path))
        return
    check.length(errors, path, value, POOL_NAME_LENGTH)
    for part in value.split("/"):
        check.name(errors, path, part, names.dns_subdomain)


def validate_qualified_name(errors: Errors, value: str, path: str) -> None:
    """A C identifier, or `domain/identifier` (4381-24, 4381-25). Two slashes pass, as in Kubernetes."""
    if len(value) <= IDENTIFIER_LENGTH and not names.c_identifier(value):
        return  # as nearly always
    domain, slash, identifier = value.partition("/")
    if not slash:
        _validate_identifier(errors, value, path)
    elif "/" not in identifier:
        if domain:
            validate_driver_name(errors, domain, path)
        else:
            errors.append(invalid(path, value, "the domain must not be empty"))
        if identifier:
            _validate_identifier(errors, identifier, path)
        else:
            errors.append(invalid(path, value, "the name must not be empty"))


def validate_fully_qualified_name(errors: Errors, value: str, path: str) -> None:
    """A qualified name with its domain, which must be lower case here (4381-30)."""
    domain, slash, identifier = value.partition("/")
    validate_qualified_name(errors, value, path)
    if not slash:
        errors.append(invalid(path, value, "must be a domain and a name with a slash between them"))
    elif "/" not in identifier and domain.lower() != domain:
        check.name(errors, path, domain, names.dns_subdomain)


def _validate_identifier(errors: Errors, value: str, path: str) -> None:
    if len(value) > IDENTIFIER_LENGTH:
        errors.append(too_long(path, IDENTIFIER_LENGTH))
    check.name(errors, path, value, names.c_identifier)


def shortened(key: str) -> str:
    """A map key as it stands in a field path: the middle of one that is too long is left out."""
    if len(key) <= ATTRIBUTE_NAME_LENGTH:
        return key
    remaining = ATTRIBUTE_NAME_LENGTH - 3
    return f"{key[: (remaining + 1) // 2]}...{key[len(key) - remaining // 2 :]}"

"""Amounts of compute resources: the names that are allowed where, and the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dray.api.field import forbidden, invalid, required
from dray.api.generated.core import ResourceRequirements
from dray.api.quantity import Quantity, QuantityError
from dray.api.text_memory import remember_texts
from dray.validation import check, names
from dray.validation.context import Errors

_UNIT: Final = 10**9
_MILLI: Final = 10**6
_COUNTED: Final = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_COMPUTE: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
_QUOTA: Final = frozenset(
    (
        *_COUNTED,
        *_COMPUTE,
        *(f"requests.{name}" for name in (*_COMPUTE, "storage")),
        *(f"limits.{name}" for name in _COMPUTE),
    )
)
_STANDARD: Final = _QUOTA | {"storage"}

NameCheck = Callable[[str], tuple[str, ...]]


def is_native(name: str) -> bool:
    """Whether a resource is Kubernetes' own."""
    return "/" not in name or "kubernetes.io/" in name


def is_huge_page(name: str) -> bool:
    """Whether a resource is huge pages of some size."""
    return name.startswith("hugepages-")


def is_overcommitted(name: str) -> bool:
    """Whether requests may differ from limits."""
    return is_native(name) and not is_huge_page(name)


@remember_texts(1024)
def is_extended(name: str) -> bool:
    """Whether a resource is an extended one, such as `example.com/gpu`."""
    return not is_native(name) and not name.startswith("requests.") and not names.label_key(f"requests.{name}")


def is_standard_for_quota(name: str) -> bool:
    """Whether a quota can limit a resource that has no domain."""
    return name in _QUOTA or name.startswith(("hugepages-", "requests.hugepages-"))


def standard_name(name: str) -> tuple[str, ...]:
    """What is wrong with the name of any resource."""
    problems = names.label_key(name)
    if problems or "/" in name:
        return problems
    if name in _STANDARD or name.startswith(("hugepages-", "requests.hugepages-")):
        return ()
    return ("must be a standard resource or have a domain",)


@remember_texts(1024)
def container_resource(name: str) -> tuple[str, ...]:
    """What is wrong with a resource in the requests or limits of a container."""
    problems = standard_name(name)
    if "/" not in name:
        if name not in _COMPUTE and not is_huge_page(name):
            return (*problems, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        return (*problems, "must be a valid extended resource name")
    return problems


@remember_texts(1024)
def quota_resource(name: str) -> tuple[str, ...]:
    """What is wrong with a resource in a quota."""
    problems = standard_name(name)
    if "/" not in name and not is_standard_for_quota(name):
        return (*problems, "must be a standard resource for quota")
    return problems


def validate_amount(errors: Errors, name: str, value: Quantity, path: str) -> None:
    """An amount is not negative, and whole if the resource is counted."""
    if value.nanos < 0:
        errors.append(invalid(path, str(value), "must be greater than or equal to 0"))
    # Kubernetes rounds up to thousandths before it looks for a fraction.
    if (name in _COUNTED or is_extended(name)) and -(-value.nanos // _MILLI) % 1000:
        errors.append(invalid(path, str(value), "must be an integer"))


def validate_amounts(errors: Errors, amounts: dict[str, Quantity], path: str, name_check: NameCheck) -> None:
    """A map of resources to amounts."""
    for name, value in amounts.items():
        inner = f"{path}[{name}]"
        check.name(errors, inner, name, name_check)
        validate_amount(errors, name, value, inner)


def validate_requirements(
    errors: Errors, requirements: ResourceRequirements, path: str, name_check: NameCheck = container_resource
) -> None:
    """What a container asks for: requests within limits, and equal to them where nothing can be overcommitted."""
    limits, requests = requirements.limits, requirements.requests
    if not limits and not requests:
        return
    validate_amounts(errors, limits, f"{path}.limits", name_check)
    validate_amounts(errors, requests, f"{path}.requests", name_check)
    for name, value in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not is_overcommitted(name):
                errors.append(required(f"{path}.limits", f"{name} needs a limit"))
        elif value != limit and not is_overcommitted(name):
            errors.append(invalid(f"{path}.requests", str(value), f"must be equal to the {name} limit of {limit}"))
        elif value > limit:
            errors.append(invalid(f"{path}.requests", str(value), f"must not exceed the {name} limit of {limit}"))
    _validate_huge_pages(errors, requirements, path)


def _validate_huge_pages(errors: Errors, requirements: ResourceRequirements, path: str) -> None:
    used = False
    for field, amounts in (("limits", requirements.limits), ("requests", requirements.requests)):
        for name, value in amounts.items():
            if is_huge_page(name):
                used = True
                if not _is_multiple(name, value):
                    errors.append(invalid(f"{path}.{field}[{name}]", str(value), f"must be a multiple of {name}"))
    if used and not {"cpu", "memory"} & (requirements.limits.keys() | requirements.requests.keys()):
        errors.append(forbidden(path, "huge pages need cpu or memory too"))


def _is_multiple(name: str, value: Quantity) -> bool:
    try:
        page = Quantity.parse(name.removeprefix("hugepages-"))
    except QuantityError:
        return False
    if page.nanos <= 0 or page.nanos % _UNIT:
        return False
    return -(-value.nanos // _UNIT) % (page.nanos // _UNIT) == 0

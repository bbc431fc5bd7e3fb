"""Node: taints, addresses of its pods, capacity."""

from __future__ import annotations

import ipaddress
from typing import Final

from msgspec.structs import replace

from dray.api.field import forbidden, invalid
from dray.api.generated.core import Node
from dray.api.node_annotations import read_rations
from dray.api.quantity import Quantity
from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND
from dray.api.times import Time
from dray.validation import check
from dray.validation.context import Context, Errors
from dray.validation.node_taints import validate_node_taints
from dray.validation.pod_defaults import in_thousandths
from dray.validation.resource_amounts import validate_amount
from dray.validation.rules import Rules


def _default(obj: Node, _now: Time) -> Node:
    """What is not said to be allocatable is all of the capacity; `podCIDR` and the first of `podCIDRs` are the same."""
    spec, status = obj.spec, obj.status
    if spec.pod_cidr and not spec.pod_cidrs:
        spec = replace(spec, pod_cidrs=(spec.pod_cidr,))
    elif spec.pod_cidrs and spec.pod_cidrs[0] != spec.pod_cidr:
        spec = replace(spec, pod_cidr=spec.pod_cidrs[0])
    if status.capacity:
        capacity = in_thousandths(status.capacity)
        allocatable = in_thousandths(status.allocatable or capacity)
        status = replace(status, capacity=capacity, allocatable=allocatable)
    return obj if spec is obj.spec and status is obj.status else replace(obj, spec=spec, status=status)


def _check(errors: Errors, new: Node, old: Node | None, _ctx: Context) -> None:
    # Kubernetes reports taints below metadata, where they once were annotations.
    validate_node_taints(errors, new.spec.taints)
    _validate_status(errors, new)
    if old is None:
        _validate_cidrs(errors, new.spec.pod_cidrs)
        return
    _validate_addresses(errors, new)
    if old.spec.pod_cidrs and old.spec.pod_cidrs != new.spec.pod_cidrs:
        errors.append(forbidden("spec.podCIDRs", "may be set once and not be changed"))
    if old.spec.provider_id and old.spec.provider_id != new.spec.provider_id:
        errors.append(invalid("spec.providerID", new.spec.provider_id, "may be set once and not be changed"))
    if old.spec.external_id != new.spec.external_id:
        errors.append(forbidden("spec.externalID", "may not be updated"))


def _check_status(errors: Errors, new: Node, _old: Node, _ctx: Context) -> None:
    _validate_status(errors, new)
    _validate_addresses(errors, new)


def _validate_status(errors: Errors, node: Node) -> None:
    status = node.status
    _validate_amounts(errors, status.capacity, "status.capacity")
    _validate_amounts(errors, status.allocatable, "status.allocatable")


def _validate_addresses(errors: Errors, node: Node) -> None:
    """Each once; as in Kubernetes, a new node is not asked."""
    check.unique(errors, "status.addresses", ((entry.type, entry.address) for entry in node.status.addresses))


def _validate_amounts(errors: Errors, amounts: dict[str, Quantity], path: str) -> None:
    for name, value in amounts.items():
        validate_amount(errors, name, value, f"{path}.{name}")


def _validate_cidrs(errors: Errors, cidrs: tuple[str, ...]) -> None:
    families: list[int] = []
    for index, cidr in enumerate(cidrs):
        try:
            families.append(ipaddress.ip_network(cidr, strict=False).version)
        except ValueError:
            errors.append(invalid(f"spec.podCIDRs[{index}]", cidr, "must be a CIDR such as 10.1.0.0/24"))
    if len(cidrs) > 1 and sorted(families) != [4, 6]:
        errors.append(invalid("spec.podCIDRs", cidrs, "at most one CIDR for each IP family"))


def _warnings(node: Node) -> list[str]:
    """What annotations say about taints and cannot be read: nothing else would tell before pods leave."""
    problems = read_rations(node.metadata.annotations).problems
    return [f"metadata.annotations[{EVICTIONS_PER_SECOND}]: {problem}" for problem in problems]


RULES: Final = {
    "Node": Rules(
        namespaced=False,
        has_status=True,
        status_guards_metadata=False,
        keeps_status_on_create=True,
        default=_default,
        check=_check,
        check_status=_check_status,
        warnings=_warnings,
    )
}

"""Turns the picks of a search into allocation results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dray.allocator import selection
from dray.allocator.config import merge_config
from dray.allocator.layout import Layout
from dray.allocator.requests import Alternative, Claim
from dray.allocator.results import Refusal
from dray.api.node_selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dray.api.quantity import Quantity
from dray.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from dray.tracker.view import EffectiveDevice

Chosen = tuple[Alternative, int]
"""A device position for an alternative."""


def build_result(
    name: str,
    claim: ResourceClaim,
    wanted: Claim,
    options: Sequence[int],
    picks: Sequence[Chosen],
    layout: Layout,
    *,
    share_id: Callable[[str], str],
) -> AllocationResult:
    """The result for one claim. `options` are the alternatives chosen for its requests.

    Raises Refusal if the devices' node selectors cannot be combined into one.
    """
    results = []
    for number, (alternative, position) in enumerate(picks):
        seed = f"{claim.metadata.uid or name}/{alternative.name}/{number}"
        results.append(_device_result(alternative, layout.devices[position], seed, share_id))
    config = claim.spec.devices.config
    chosen = [(r.name, r.alternatives[o]) for r, o in zip(wanted.requests, options, strict=True)]
    if config or any(alternative.device_class.spec.config for _, alternative in chosen):
        merged = merge_config(chosen, config)
    else:
        merged = ()
    return AllocationResult(
        devices=DeviceAllocationResult(results=tuple(results), config=merged),
        node_selector=_node_selector(name, layout, [layout.devices[position] for _, position in picks]),
    )


def _device_result(
    alternative: Alternative, device: EffectiveDevice, seed: str, share_id: Callable[[str], str]
) -> DeviceRequestAllocationResult:
    entry = device.device
    is_shared = bool(entry.allow_multiple_allocations)
    consumed: dict[str, Quantity] = {}
    if is_shared:
        consumed = selection.consumption(alternative.criteria, device) or {}
    return DeviceRequestAllocationResult(
        request=alternative.name,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.device,
        admin_access=True if alternative.admin else None,
        tolerations=alternative.criteria.tolerations,
        binding_conditions=entry.binding_conditions,
        binding_failure_conditions=entry.binding_failure_conditions,
        share_id=share_id(f"{seed}/{device.id}") if is_shared else None,
        consumed_capacity=consumed,
    )


def _node_selector(name: str, layout: Layout, devices: Iterable[EffectiveDevice]) -> NodeSelector | None:
    """Where the devices can be used: this node if one of them is local or binds to it, else what all selectors ask
    for, else everywhere (4381-64)."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for device in devices:
        if device.access.node_name is not None or device.device.binds_to_node:
            return layout.local_selector
        selector = device.access.node_selector
        terms = selector.node_selector_terms if selector is not None else ()
        if len(terms) > 1:
            raise Refusal(
                f"create node selector for claim {name}: unsupported node selector of device {device.id} "
                f"with {len(terms)} terms"
            )
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))


def _add_new(present: list[NodeSelectorRequirement], added: Iterable[NodeSelectorRequirement]) -> None:
    for requirement in added:
        if not any(_are_equal(requirement, other) for other in present):
            present.append(requirement)


def _are_equal(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (one.key, one.operator, set(one.values)) == (other.key, other.operator, set(other.values))

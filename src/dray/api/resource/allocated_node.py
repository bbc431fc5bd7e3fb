"""The node that devices were allocated for."""

from __future__ import annotations

from dray.api.resource.claim import AllocationResult


def allocated_node(allocation: AllocationResult | None) -> str:
    """The one node on which the devices can be used; empty if there may be others, or nothing is allocated.

    An allocation of devices that are local to a node selects that node by its name, and nothing else.
    """
    selector = allocation.node_selector if allocation is not None else None
    terms = selector.node_selector_terms if selector is not None else ()
    if len(terms) != 1 or terms[0].match_expressions or len(terms[0].match_fields) != 1:
        return ""
    name = terms[0].match_fields[0]
    is_one = (name.key, name.operator) == ("metadata.name", "In") and len(name.values) == 1
    return name.values[0] if is_one else ""

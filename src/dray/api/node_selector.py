"""Node selectors: the part of core/v1 that slices and allocations need. Matching is in `dray.api.node_match`."""

from __future__ import annotations

from msgspec import field

from dray.api.struct import Struct


class NodeSelectorRequirement(Struct):
    """One key, an operator (In, NotIn, Exists, DoesNotExist, Gt, Lt) and its values."""

    key: str = field(default_factory=str)
    operator: str = field(default_factory=str)
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Struct):
    """All requirements must hold; an empty term matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Struct):
    """At least one term must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = field(default_factory=lambda: ())

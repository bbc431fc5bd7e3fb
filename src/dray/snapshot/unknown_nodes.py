"""Nodes that slices name and of which files say nothing: whoever judges pods by them says so."""

from __future__ import annotations

from collections.abc import Iterator

from dray.api.generated.core import Node
from dray.prose.wording import names
from dray.snapshot.snapshot import Snapshot

_MAX_NAMES = 3


def tell_unknown_nodes(snapshot: Snapshot) -> Iterator[str]:
    """A clause if there are nodes of which nothing but the name is known."""
    told = {node.metadata.name for node in snapshot.objects(Node)}
    unknown = [name for name in snapshot.nodes() if name not in told]
    if unknown:
        yield f"no Node {names(unknown, _MAX_NAMES)} was given: room, labels, taints and state were not looked at"

"""A group of equal nodes that could be added: a template of one, made into as many as needed. Pure."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from dray.api.generated.core import Node, NodeSpec
from dray.api.meta import Object, ObjectMeta
from dray.api.resource import ResourceSlice
from dray.api.well_known import HOSTNAME

TRANSIENT_TAINTS: Final = "node.kubernetes.io/"
"""Taints of the node lifecycle (not-ready, unreachable, unschedulable …): a state of one node, not of its kind."""


class Machine(msgspec.Struct, frozen=True):
    """A node with the slices that its drivers publish for it."""

    node: Node
    slices: tuple[ResourceSlice, ...] = ()

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name


class NodeGroup(msgspec.Struct, frozen=True):
    """Up to `limit` nodes like the `template` could be added, each at a `price`."""

    name: str
    template: Machine
    limit: int
    price: float = 1.0
    objects: tuple[Object, ...] = ()
    """What comes with the group if it is not there yet, such as the device classes of a profile."""

    def machine(self, name: str) -> Machine:
        """One more machine of the group."""
        return renamed(self.template, name)


def renamed(template: Machine, name: str) -> Machine:
    """A new machine like another: healthy, schedulable, with pools of its own."""
    return Machine(_node(template.node, name), tuple(_slice(one, template.name, name) for one in template.slices))


def _node(template: Node, name: str) -> Node:
    meta, spec = template.metadata, template.spec
    labels = {**meta.labels, HOSTNAME: name} if HOSTNAME in meta.labels else meta.labels
    lasting = tuple(taint for taint in spec.taints if not taint.key.startswith(TRANSIENT_TAINTS))
    return replace(
        template,
        metadata=ObjectMeta(name=name, labels=labels, annotations=meta.annotations),
        spec=NodeSpec(taints=lasting),
    )


def _slice(template: ResourceSlice, old: str, new: str) -> ResourceSlice:
    spec = template.spec
    pool = new if spec.pool.name == old else f"{spec.pool.name}-{new}"
    return replace(
        template,
        metadata=ObjectMeta(name=f"{template.metadata.name}-{new}", labels=template.metadata.labels),
        spec=replace(spec, node_name=new, pool=replace(spec.pool, name=pool)),
    )

"""Node groups as people write them, and the three ways to say what a node of a group is like.

apiVersion: dray.dev/v1
kind: NodeGroup
metadata: {name: gpu-large}
spec:
  maxNodes: 10          # how many may be added; 1000 by default
  price: 3.2            # of one node, in whatever unit; 1 by default
  fromNode: node-3      # like a node that is there, with its slices; or
  profile: gpu-8        # like a node of a simulation profile (a name or a file); or
  template: [ … ]       # one Node and its ResourceSlices, as kubectl prints them
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import field

from dray.api import codec
from dray.api.generated.core import Node
from dray.api.resource import ResourceSlice
from dray.api.struct import Struct
from dray.scale_up.node_group import Machine, NodeGroup
from dray.simulation import ProfileError, load_profile, publication
from dray.snapshot import InputError, Snapshot
from dray.snapshot.files import Item
from dray.snapshot.objects import current_time, typed
from dray.validation.documents import InvalidObjectError

API_VERSION: Final = "dray.dev/v1"
KIND: Final = "NodeGroup"
MAX_NODES: Final = 1000
MAX_NAME: Final = 50
"""Leaves room for a number within the 63 characters of a label value."""


class NodeGroupError(ValueError):
    """A node group that cannot be used; the message names the file, the group and the field."""


class _Meta(Struct):
    name: str = ""


class _Spec(Struct):
    max_nodes: int = MAX_NODES
    price: float = 1.0
    from_node: str = ""
    profile: str = ""
    template: tuple[dict[str, Any], ...] = ()


class _Document(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: _Meta = field(default_factory=_Meta)
    spec: _Spec = field(default_factory=_Spec)


def is_group(item: Item) -> bool:
    """Whether an item is a node group, rather than an object of the cluster."""
    return isinstance(item.value, dict) and item.value.get("kind") == KIND


def load_groups(items: Iterable[Item], snapshot: Snapshot) -> tuple[NodeGroup, ...]:
    """The node groups among items; `fromNode` is looked up in the snapshot. Raises NodeGroupError."""
    groups: dict[str, NodeGroup] = {}
    for item in items:
        if not is_group(item):
            continue
        group = _read(item, snapshot)
        if group.name in groups:
            raise NodeGroupError(f"{item.source}: there are two node groups called {group.name}")
        groups[group.name] = group
    return tuple(groups.values())


def check_group(item: Item) -> str:
    """What is wrong with a node group, whatever the cluster; empty if nothing is."""
    try:
        document = _parse(item)
        if not document.spec.from_node:
            _group(document, None)
    except (NodeGroupError, ProfileError) as error:
        return str(error)
    return ""


def _read(item: Item, snapshot: Snapshot) -> NodeGroup:
    line = item.line_of("metadata")
    name = item.value["metadata"].get("name", "") if isinstance(item.value.get("metadata"), dict) else ""
    try:
        return _group(_parse(item), snapshot)
    except (NodeGroupError, ProfileError) as error:
        where = f"{item.source}{f':{line}' if line else ''}: {KIND} {name}".rstrip()
        raise NodeGroupError(f"{where}: {error}") from None


def _parse(item: Item) -> _Document:
    reading = codec.read(item.value, _Document)
    if reading.obj is None or reading.problems:
        raise NodeGroupError("; ".join(reading.problems))
    problem = _problem(reading.obj)
    if problem:
        raise NodeGroupError(problem)
    return reading.obj


def _group(document: _Document, snapshot: Snapshot | None) -> NodeGroup:
    """The group; the snapshot is needed for `fromNode` only."""
    spec = document.spec
    if spec.profile:
        return _of_profile(document)
    if snapshot is not None and spec.from_node:
        machine = _of_node(spec.from_node, snapshot)
    else:
        machine = _of_manifests(spec.template)
    return NodeGroup(document.metadata.name, machine, spec.max_nodes, spec.price)


def _problem(document: _Document) -> str:
    spec = document.spec
    if document.api_version != API_VERSION:
        return f"apiVersion: must be {API_VERSION}"
    if not document.metadata.name or len(document.metadata.name) > MAX_NAME:
        return f"metadata.name: a name of at most {MAX_NAME} characters is needed"
    if not 0 <= spec.max_nodes <= MAX_NODES:
        return f"spec.maxNodes: must be from 0 to {MAX_NODES}"
    if not 0 <= spec.price < float("inf"):
        return "spec.price: must not be negative"
    given = [name for name, value in (("fromNode", spec.from_node), ("profile", spec.profile)) if value]
    given += ["template"] if spec.template else []
    if len(given) != 1:
        return f"spec: give one of fromNode, profile and template, not {' and '.join(given) or 'none'}"
    return ""


def _of_profile(document: _Document) -> NodeGroup:
    spec = document.spec
    profile = load_profile(spec.profile)
    node = publication.node(profile, 1)
    objects = (*profile.typed_objects(), *publication.shared_slices(profile))
    machine = Machine(node, publication.slices(profile, node))
    return NodeGroup(document.metadata.name, machine, spec.max_nodes, spec.price, objects)


def _of_node(name: str, snapshot: Snapshot) -> Machine:
    node = next((one for one in snapshot.objects(Node) if one.metadata.name == name), None)
    if node is None:
        raise NodeGroupError(f"spec.fromNode: there is no node {name} in the cluster")
    return Machine(node, tuple(one for one in snapshot.objects(ResourceSlice) if one.spec.node_name == name))


def _of_manifests(manifests: Sequence[dict[str, Any]]) -> Machine:
    nodes: list[Node] = []
    slices: list[ResourceSlice] = []
    for position, value in enumerate(manifests):
        where = f"spec.template[{position}]"
        try:
            obj = typed(value, current_time())[1]
        except (InputError, InvalidObjectError) as error:
            raise NodeGroupError(f"{where}: {getattr(error, 'message', error)}") from None
        if isinstance(obj, Node):
            nodes.append(obj)
        elif isinstance(obj, ResourceSlice):
            slices.append(obj)
        else:
            raise NodeGroupError(f"{where}: a {obj.kind} is no part of a node; give it with the cluster")
    if len(nodes) != 1:
        raise NodeGroupError(f"spec.template: one Node is needed, not {len(nodes)}")
    for one in slices:
        if one.spec.node_name != nodes[0].metadata.name:
            raise NodeGroupError(
                f"spec.template: ResourceSlice {one.metadata.name} is not one of node {nodes[0].metadata.name}; "
                "set its spec.nodeName, or give it with the cluster"
            )
    return Machine(nodes[0], tuple(slices))

"""From which nodes the devices of a slice can be used."""

from __future__ import annotations

from dray.api.node_selector import NodeSelector
from dray.api.resource import ResourceSlice
from dray.tracker.view import ALL_NODES, NO_NODES, NodeAccess


def accesses_of(slice_: ResourceSlice) -> tuple[NodeAccess, ...]:
    """One access for each device if they have their own (SVS-35), else one for all.

    A slice or device that says nothing which this version understands can be used from no node.
    """
    spec = slice_.spec
    if spec.per_device_node_selection:
        return tuple([_access(device.node_name, device.node_selector, device.all_nodes) for device in spec.devices])
    return (_access(spec.node_name, spec.node_selector, spec.all_nodes),)


def _access(node_name: str | None, node_selector: NodeSelector | None, all_nodes: bool | None) -> NodeAccess:
    if node_name:
        return NodeAccess(node_name=node_name)
    if all_nodes:
        return ALL_NODES
    return NO_NODES if node_selector is None else NodeAccess(node_selector=node_selector)

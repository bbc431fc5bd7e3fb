"""The names under which Kubernetes knows the checks, in metrics and traces."""

from __future__ import annotations

from enum import StrEnum


class Plugin(StrEnum):
    """The checks that a pod has to pass, as Kubernetes calls them."""

    DYNAMIC_RESOURCES = "DynamicResources"
    GANG_SCHEDULING = "GangScheduling"
    INTER_POD_AFFINITY = "InterPodAffinity"
    NODE_AFFINITY = "NodeAffinity"
    NODE_NAME = "NodeName"
    NODE_PORTS = "NodePorts"
    NODE_RESOURCES_FIT = "NodeResourcesFit"
    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    POD_TOPOLOGY_SPREAD = "PodTopologySpread"
    SCHEDULING_GATES = "SchedulingGates"
    TOPOLOGY_PLACEMENT = "TopologyPlacementGenerator"
    VOLUME_BINDING = "VolumeBinding"
    VOLUME_RESTRICTIONS = "VolumeRestrictions"
    TAINT_TOLERATION = "TaintToleration"

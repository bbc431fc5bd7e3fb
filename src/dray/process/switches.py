"""What an admin can turn off: features (`--feature-gates`) and versions of the API (`--runtime-config`).

Everything is on by default. The switches are read once, at start (5055-118, 5027-47). What is stored stays stored: with
a gate off, fields that are there survive updates and new ones are dropped with a warning; a version that is off answers
404, and its objects are there again when it is on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dray.api import registry

FEATURE_GATES: Final[dict[str, str]] = {
    "DRAAdminAccess": "adminAccess in requests and results",
    "DRAAdminControlledDeviceAttributes": "attributes and capacity in ResourceSlicePatches",
    "DRAConsumableCapacity": "devices that several claims share: allowMultipleAllocations, capacity in requests",
    "DRADerivedAttributes": "derivedAttributes in requests",
    "DRADeviceBindingConditions": "bindingConditions of devices",
    "DRADeviceCompatibilityGroups": "compatibilityGroups of counters",
    "DRADeviceTaintRules": "DeviceTaintRules taking effect; needs DRADeviceTaints",
    "DRADeviceTaints": "taints of devices, tolerations in requests",
    "DRAExtendedResource": "extendedResourceName of classes; extended resources of pods that are devices",
    "DRAListTypeAttributes": "attributes that are lists",
    "DRANodeAllocatableResources": "nodeAllocatableResourceMappings of devices",
    "DRAOptionalNodeOperations": "devices that need no prepare or unprepare",
    "DRAPartitionableDevices": "counters, and nodes per device",
    "DRAPartitionableDevicesType": "partitions in ResourcePoolStatusRequests",
    "DRAPrioritizedList": "firstAvailable in requests",
    "DRAResourceClaimDeviceStatus": "devices in the status of claims",
    "DRAResourceClaimGranularStatusAuthorization": "a right of its own for each part of the status of claims",
    "DRASchedulerFilterTimeout": "the time limit of the scheduler for finding devices on a node",
    "DRAWorkloadResourceClaims": "resourceClaims of PodGroups; needs DynamicResourceAllocation and GenericWorkload",
    "DynamicResourceAllocation": "resourceClaims of pods; the scheduler and the claim controller look at them",
    "GenericWorkload": "PodGroups and Workloads, and schedulingGroup of pods",
    "PodGroupPreemptionPolicy": "preemptionPolicy of PodGroups; needs GenericWorkload",
    "SchedulerQueueingHints": "events wake only those waiting pods that they may help, at once",
    "TopologyAwareWorkloadScheduling": "schedulingConstraints of PodGroups; needs GenericWorkload",
}
"""Every feature gate, and what it stands for."""

_NEEDS: Final = {
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRAWorkloadResourceClaims": ("DynamicResourceAllocation", "GenericWorkload"),
    "PodGroupPreemptionPolicy": ("GenericWorkload",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
}
_VERSIONS_OF: Final = {"GenericWorkload": ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3")}
"""API versions that are there only while a gate is on."""
_CORE = "v1"


class SwitchError(ValueError):
    """A switch that is not there, or a setting that it cannot have. The message says what there is."""


def disabled_gates(text: str) -> frozenset[str]:
    """The gates that `--feature-gates` turns off, with those that need them (SVS-14). Raises SwitchError."""
    off = set()
    for name, on in _settings("--feature-gates", text):
        if name not in FEATURE_GATES:
            known = ", ".join(sorted(FEATURE_GATES))
            raise SwitchError(f"--feature-gates: there is no gate {name!r}. Known gates: {known}.")
        if not on:
            off.add(name)
    off.update(gate for gate, needed in _NEEDS.items() if not off.isdisjoint(needed))
    return frozenset(off)


def disabled_versions(text: str, gates: frozenset[str] = frozenset()) -> frozenset[str]:
    """The versions that `--runtime-config` turns off, and those that gates which are off take along. Raises
    SwitchError."""
    served = {kind.api_version_of(version) for kind in registry.kinds() for version in kind.versions}
    off = {version for gate in gates for version in _VERSIONS_OF.get(gate, ())}
    for version, on in _settings("--runtime-config", text):
        if version not in served:
            raise SwitchError(f"--runtime-config: {version!r} is not served. Served: {', '.join(sorted(served))}.")
        if not on and version == _CORE:
            raise SwitchError("--runtime-config: v1 cannot be turned off; namespaces and pods are in it.")
        if not on:
            off.add(version)
    return frozenset(off)


def _settings(option: str, text: str) -> Iterator[tuple[str, bool]]:
    """`A=true,B=false` → (A, True), (B, False)."""
    for setting in filter(None, map(str.strip, text.split(","))):
        name, _, value = setting.partition("=")
        if value.lower() not in ("true", "false"):
            raise SwitchError(f"{option}: give {name}=true or {name}=false, not {setting!r}.")
        yield name.strip(), value.lower() == "true"

"""Volumes that are bound can be used on some nodes only, and those that are not must be had there; some are for one
pod at a time."""

from __future__ import annotations

from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import NodeReason, VolumeInUse, VolumeOutOfReach, VolumesLacking
from dray.scheduling.volumes import PodVolumes, Volumes, is_within_reach

_OUT_OF_REACH = (VolumeOutOfReach(),)
_LACKING = (VolumesLacking(),)
_IN_USE = (VolumeInUse(),)


class VolumeCheck:
    """The volumes of one pod, looked up once for all nodes."""

    def __init__(self, pod: PodInfo, volumes: Volumes) -> None:
        found = volumes.of(pod)
        self._volumes = volumes
        self._of_pod = found if isinstance(found, PodVolumes) else PodVolumes()

    @property
    def is_needed(self) -> bool:
        """Whether the pod may be refused anywhere."""
        return bool(self._of_pod.bound or self._of_pod.waiting)

    def check(self, pod: PodInfo, node: NodeInfo) -> tuple[NodeReason, ...]:
        """Whether all volumes can be used on the node."""
        if self._volumes.in_use(pod):  # who looks for pods to make room takes some away between two questions
            return _IN_USE
        if not all(is_within_reach(volume, node) for volume in self._of_pod.bound):
            return _OUT_OF_REACH
        if self._of_pod.waiting and self._volumes.choose(self._of_pod, node) is None:
            return _LACKING
        return ()

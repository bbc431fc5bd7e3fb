"""What cannot be judged here: pods that another scheduler decides on, or whose volumes nobody knows.

Explanations, previews and plans say so, instead of answering for somebody else.
"""

from __future__ import annotations

from dray.api.well_known import DEFAULT_SCHEDULER, DRAY_SCHEDULER
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import Gated, OtherScheduler, PodReason, VolumeReason
from dray.scheduling.volumes import Volumes


def cannot_judge(pod: PodInfo, volumes: Volumes) -> PodReason | None:
    """Why nobody here knows whether a pod fits somewhere; None if that can be found out.

    A dump may lack the claims for volumes that pods mount, and nobody knows then where these can be used.
    """
    name = pod.pod.spec.scheduler_name
    if name not in ("", DEFAULT_SCHEDULER, DRAY_SCHEDULER):
        return OtherScheduler(name)
    return None if volumes.are_known else _lacks_volumes(pod, volumes)


def not_for_new_nodes(pod: PodInfo, volumes: Volumes) -> PodReason | None:
    """Why it cannot be said that more nodes help a pod: it waits for something else, or cannot be judged."""
    if pod.pod.spec.scheduling_gates:
        return Gated()
    return cannot_judge(pod, volumes) or _lacks_volumes(pod, volumes)


def _lacks_volumes(pod: PodInfo, volumes: Volumes) -> VolumeReason | None:
    found = volumes.of(pod) if pod.volume_claims else None
    return found if isinstance(found, VolumeReason) else None

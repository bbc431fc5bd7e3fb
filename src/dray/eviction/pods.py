"""Which pods can be evicted, and how a pod is marked before it is deleted."""

from __future__ import annotations

from typing import Any

from dray.api.generated.core import Pod
from dray.api.pods import disruption_condition, is_active
from dray.api.times import Time


def can_be_evicted(pod: Pod) -> bool:
    """Whether a pod runs or is about to: it has a node, is not finished and not on its way out (SVS-24)."""
    return bool(pod.spec.node_name) and is_active(pod)


def is_on_its_way(old: Pod | None, new: Pod | None) -> bool:
    """Whether a pod that changed has no node yet, as before: there is nothing that it could be evicted from."""
    if new is None or new.spec.node_name:
        return False
    return old is None or old.metadata.uid == new.metadata.uid


def disruption_patch(pod: Pod, reason: str, message: str, now: Time) -> dict[str, Any]:
    """A strategic merge patch of the status that says why the pod is about to be deleted (SVS-28, SVS-69).

    The uid in it keeps a pod of the same name that was created meanwhile from being marked.
    """
    condition = disruption_condition(pod, reason, message, now)
    return {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}

"""As whom an eviction controller speaks: what its metrics, conditions and events say."""

from __future__ import annotations

import msgspec

from dray.api.references import ObjectRef


class DisruptionTarget(msgspec.Struct, frozen=True):
    """What the condition DisruptionTarget of a pod says before the pod is deleted."""

    reason: str
    message: str


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Of one eviction controller."""

    metrics: str
    """The controller's name as metrics spell it."""
    target: DisruptionTarget
    event: str
    """The reason of its events about pods."""
    names_pod: bool = False
    """Whether events name the pod that they are about."""

    def marking(self, pod: ObjectRef) -> str:
        """What the event says of a pod that is about to be deleted."""
        return f"Marking for deletion Pod {pod}" if self.names_pod else "Marking for deletion"

    def cancelling(self, pod: ObjectRef) -> str:
        """What the event says of a pod that may stay after all."""
        return f"Cancelling deletion of Pod {pod}" if self.names_pod else "Cancelling deletion"

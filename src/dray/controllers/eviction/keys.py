"""What the queues of eviction controllers hold: pods that must leave, and pods that there is something else about."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from dray.api.references import ObjectRef


class _AboutPod(msgspec.Struct, frozen=True):
    pod: ObjectRef

    @property
    def namespace(self) -> str:
        """In whose turn the pod is looked at."""
        return self.pod.namespace


class Cancelled(_AboutPod, frozen=True):
    """A pod that was to be evicted and may stay."""


class Contradicted(_AboutPod, frozen=True):
    """A pod that may stay, and says that it waits to leave: that was written late."""


class FollowUp(_AboutPod, frozen=True):
    """A pod that was told to leave and is still there."""


Key: TypeAlias = ObjectRef | Cancelled | Contradicted | FollowUp

"""What the queues of eviction controllers hold besides pods that must leave, and when to ask about a pod again."""

from __future__ import annotations

import msgspec

from dray.api.generated.core import Pod
from dray.eviction import PodRef


class Cancelled(msgspec.Struct, frozen=True):
    """A pod that was to be evicted and may stay."""

    pod: PodRef


class FollowUp(msgspec.Struct, frozen=True):
    """A pod that was told to leave and is still there."""

    pod: PodRef


def has_other_marks(old: Pod, new: Pod) -> bool:
    """Whether people or programs have marked a pod otherwise than before, so that a policy may decide otherwise."""
    return old.metadata.annotations != new.metadata.annotations or old.metadata.labels != new.metadata.labels

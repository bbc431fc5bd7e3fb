"""What the queues of eviction controllers hold: pods that must leave, and pods that there is something else about."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from dray.api.references import ObjectRef


class Cancelled(msgspec.Struct, frozen=True):
    """A pod that was to be evicted and may stay."""

    pod: ObjectRef


class Contradicted(msgspec.Struct, frozen=True):
    """A pod that may stay, and says that it waits to leave: that was written late."""

    pod: ObjectRef


class FollowUp(msgspec.Struct, frozen=True):
    """A pod that was told to leave and is still there."""

    pod: ObjectRef


Key: TypeAlias = ObjectRef | Cancelled | Contradicted | FollowUp

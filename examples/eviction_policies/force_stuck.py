"""Story 4: pods that hang in deletion, because nobody answers on their node, are removed by force after a while.

Their volumes and devices are free for the replacement then. Make sure that the node is really down: its processes may
still be running, and two of them may write to the same volume.
"""

from __future__ import annotations

from dray.api.durations import parse_duration
from dray.api.generated.core import Pod
from dray.eviction.policy import Decision, EvictionCause, Force, Now, PolicyState, Wait


class ForceStuck:
    """Deletes gracefully, and looks again (`follows_up`) until the pod is gone or its time is over."""

    follows_up = True

    def __init__(self, *, after: str = "2m") -> None:
        """`after` counts from the end of the pod's own grace period. Raises ValueError."""
        self._after = parse_duration(after)

    def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:  # noqa: ARG002
        """Asked for each pod that must leave, and again while it is being deleted."""
        ends = pod.metadata.deletion_timestamp
        if ends is None:
            return Now()
        deadline = ends.datetime().timestamp() + self._after
        return Wait(deadline) if now < deadline else Force("it was told to leave and is still there")

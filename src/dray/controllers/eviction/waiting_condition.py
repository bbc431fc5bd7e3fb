"""The condition that tells of a pod that must leave and is let wait: for its users, and for whoever saves its data."""

from __future__ import annotations

from typing import Any, Final

from dray.api.conditions import find_condition, is_true
from dray.api.generated.core import Pod, PodCondition
from dray.api.times import Time
from dray.client import Client
from dray.client.calls import patch_pod_status
from dray.process.clock import as_time
from dray.reconcile import Clock

EVICTION_WAITING: Final = "dray.dev/EvictionWaiting"


class WaitingCondition:
    """Writes the condition where it is not what it should be."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._said: dict[str, tuple[str, Time]] = {}
        """What was said last of pods that wait, by uid, and when. Another controller may say so of the same pods."""

    async def set(self, pod: Pod, policy: str, why: str) -> None:
        """A policy lets a pod wait. Raises ApiError or OSError."""
        message = f"{policy}: {why}" if why else policy
        known = _find(pod)
        if known is None or known.status != "True" or known.message != message:
            self._said[pod.metadata.uid] = (message, as_time(self._clock.now()))
            await self._write(pod, {"status": "True", "reason": "EvictionPolicy", "message": message})

    async def clear(self, pod: Pod) -> None:
        """A pod does not wait for its end any more. Raises ApiError or OSError."""
        if is_waiting(pod):
            await self._write(pod, {"status": "False", "reason": "Cancelled", "message": "The pod may stay."})

    def is_said_here(self, pod: Pod) -> bool:
        """Whether it was said here that a pod waits, as it still says, or says since a write came that was late."""
        known = _find(pod)
        if known is None or known.status != "True":
            return False
        return self._said.get(pod.metadata.uid) == (known.message, known.last_transition_time)

    def forget(self, pod: Pod) -> None:
        """A pod is gone."""
        self._said.pop(pod.metadata.uid, None)

    async def _write(self, pod: Pod, fields: dict[str, Any]) -> None:
        condition = {"type": EVICTION_WAITING, **fields, "lastTransitionTime": str(as_time(self._clock.now()))}
        await patch_pod_status(self._client, pod, {"conditions": [condition]})


def is_waiting(pod: Pod) -> bool:
    """Whether a policy lets a pod wait that must leave."""
    return is_true(pod.status.conditions, EVICTION_WAITING)


def _find(pod: Pod) -> PodCondition | None:
    return find_condition(pod.status.conditions, EVICTION_WAITING)

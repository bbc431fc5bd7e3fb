"""Who must leave because of a device taint, when, and how fast. Pure: events and the time go in, evictions come out.

    claims, pods, devices ─▶ find_causes ─▶ Evictions.set(pod, causes) ─▶ Evictions.take(now) ─▶ pods to delete now
                                                │ taint, rule or claim gone: set(pod, none) cancels
    limiter: one per taint, made when needed, dropped when idle (5055-90..94)

It may import `dray.tracker` and below. The controller around it reads, waits and writes.
"""

from dray.eviction.causes import Cause, find_causes
from dray.eviction.evictions import Evictions, Progress
from dray.eviction.limiter import BURST, Limiter

__all__ = ["BURST", "Cause", "Evictions", "Limiter", "Progress", "find_causes"]

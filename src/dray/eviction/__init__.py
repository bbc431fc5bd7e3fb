"""Who must leave because of a taint, when, how fast and how. Pure: events and the time go in, evictions come out.

    claims, pods, devices ─▶ Planner ─▶ find_causes ─▶ Evictions ─▶ Planner.take(now, tick) ─▶ pods to delete now
                                │                          │ taint, rule or claim gone: cancelled
                                ├─▶ plan_condition: how far a rule is      limiter: one per taint, made when needed,
                                └─▶ preview: what a rule would do          dropped when idle (5055-90..94)
    guard: too many for one taint wait for a confirmation     policy: puts off, softens or hardens what was planned

`NodeEvictions` is the same for node taints, which have no rate unless the node says one. The package may import
`dray.tracker` and below. The controllers around it read, wait, ask policies and write.
"""

from dray.eviction.allocations import ClaimKey
from dray.eviction.causes import Cause, Causes, find_causes
from dray.eviction.evictions import Evictions, Taken
from dray.eviction.limiter import BURST, Limiter
from dray.eviction.planner import Planner
from dray.eviction.pods import PodRef, can_be_evicted, disruption_patch
from dray.eviction.preview import Preview, preview
from dray.eviction.tally import Progress

__all__ = [
    "BURST",
    "Cause",
    "Causes",
    "ClaimKey",
    "Evictions",
    "Limiter",
    "Planner",
    "PodRef",
    "Preview",
    "Progress",
    "Taken",
    "can_be_evicted",
    "disruption_patch",
    "find_causes",
    "preview",
]

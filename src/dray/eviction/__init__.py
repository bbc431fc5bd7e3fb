"""Who must leave because of a taint, when, how fast and how. Pure: events and the time go in, evictions come out.

    devices, claims, pods ─▶ DevicePlanner (ClaimCauses) ─┐
    nodes, pods ─▶ NodePlanner ───────────────────────────┴▶ Departures ─▶ take(): pods to evict now
                                                               ├ Guard: too many wait for a confirmation
                                                               ├ Evictions: each when due, at the rate of its taints
                                                               └ Tally: how far a rule is ─▶ rule_condition

`preview` is what a rule would do; `policy` says how a pod leaves, and may put off, soften or harden what was planned.
Limiters are made when needed and dropped when idle (5055-90..94). The package may import `dray.tracker` and below. The
controllers around it read, wait, ask policies and write.
"""

from dray.eviction.causes import Cause, Causes, find_causes
from dray.eviction.device_planner import DevicePlanner
from dray.eviction.evictions import Evictions, Taken
from dray.eviction.limiter import BURST, Limiter
from dray.eviction.node_planner import NodePlanner
from dray.eviction.pods import can_be_evicted, disruption_patch
from dray.eviction.preview import Preview, preview
from dray.eviction.tally import Progress

__all__ = [
    "BURST",
    "Cause",
    "Causes",
    "DevicePlanner",
    "Evictions",
    "Limiter",
    "NodePlanner",
    "Preview",
    "Progress",
    "Taken",
    "can_be_evicted",
    "disruption_patch",
    "find_causes",
    "preview",
]

"""Which clusters a placement gets, and why: filter → score → select → divide, pure and incremental.

`place` decides one placement over a `Fleet` and explains the decision. `Engine` keeps many placements decided while
the fleet changes, and re-decides only what an event can change. `plan_availability` turns a cluster's lease into its
Available condition and the automatic taints. Nothing here does I/O or asks for the time.
"""

from dray.placement.availability import AvailabilityPlan, plan_availability
from dray.placement.bind import decision_names, decision_objects, placement_status
from dray.placement.decide import place
from dray.placement.engine import Engine
from dray.placement.explain import Explanation, Reason, Stage
from dray.placement.fleet import Event, Fleet, FleetObject
from dray.placement.groups import Group
from dray.placement.preview import PlacementChange, preview_change
from dray.placement.result import ConditionResult, PlacementResult

__all__ = [
    "AvailabilityPlan",
    "ConditionResult",
    "Engine",
    "Event",
    "Explanation",
    "Fleet",
    "FleetObject",
    "Group",
    "PlacementChange",
    "PlacementResult",
    "Reason",
    "Stage",
    "decision_names",
    "decision_objects",
    "place",
    "placement_status",
    "plan_availability",
    "preview_change",
]

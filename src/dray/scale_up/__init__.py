"""How many nodes of which group would make the pending pods schedulable: an autoscaler's question, asked of a snapshot.

    Snapshot ─▶ Rehearsal (the scheduler's own decisions, bound in memory only)
    NodeGroup ─▶ Machine (a Node and its ResourceSlices, any number of them) ─▶ plan() ─▶ ScaleUpPlan ─▶ text, JSON

Decides as `dray.scheduling` does, so that the answer is what the scheduler would do, and writes nothing anywhere
(4381-200). Pure, apart from reading node groups from files. May import `dray.snapshot`, `dray.simulation` and below.
"""

from dray.scale_up.answer import GroupAnswer, ScaleUpPlan, Unplaced
from dray.scale_up.node_group import Machine, NodeGroup
from dray.scale_up.node_group_files import NodeGroupError, load_groups
from dray.scale_up.plan import MAX_NODES, plan

__all__ = [
    "MAX_NODES",
    "GroupAnswer",
    "Machine",
    "NodeGroup",
    "NodeGroupError",
    "ScaleUpPlan",
    "Unplaced",
    "load_groups",
    "plan",
]

"""Keeps the decisions of placements: informers feed the engine, and what it decides is written.

    ManagedCluster, sets, bindings, scores ─┐
    Placement, PlacementDecision ───────────┴▶ dray.placement.Engine ─▶ keys ─▶ plan(placement, result, existing)
                                               ▲ time: `due` at `next_due`        └▶ PlacementDecisions, then status

`plan` is pure; `controller` is the shell. Who must leave a cluster is decided here and nowhere else (OCM-33).
"""

from dray.controllers.placement.controller import PlacementController

__all__ = ["PlacementController"]

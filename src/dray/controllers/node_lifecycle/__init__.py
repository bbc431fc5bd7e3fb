"""Watches the health of nodes, and says so by conditions and taints (KEP-3902).

    nodes, leases ─▶ health: who was heard of when ─▶ disruption: how much may be tainted ─▶ taints ─▶ writes

It evicts nobody (3902-04): NoExecute taints are for `taint_eviction`, or for whoever replaces it.
"""

from dray.controllers.node_lifecycle.controller import NodeLifecycleController

__all__ = ["NodeLifecycleController"]

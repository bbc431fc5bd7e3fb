"""Deletes the pods on nodes with NoExecute taints that they do not tolerate, whoever added the taint (KEP-3902).

    nodes, pods ─▶ NodeEvictions (dray.eviction) ─▶ pods whose time has come ─▶ mark, delete, tell

It knows nothing of node health: `node_lifecycle` adds taints, this acts on them, and either works without the other.
"""

from dray.controllers.taint_eviction.controller import TaintEvictionController

__all__ = ["TaintEvictionController"]

"""A new node takes no pods until somebody has seen that it is ready."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.core import Node, Taint
from dray.api.meta import Object
from dray.api.nodes import NOT_READY
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine


class NewNodeTaint(Plugin):
    """Adds the not-ready taint to nodes on creation; the node lifecycle controller takes it away."""

    switch = "TaintNodesByCondition"
    kinds = frozenset({"Node"})

    def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """Marks a new node."""
        if old is not None or not isinstance(new, Node):
            return new
        if any(taint.key == NOT_READY and taint.effect == "NoSchedule" for taint in new.spec.taints):
            return new
        taint = Taint(key=NOT_READY, effect="NoSchedule")
        return replace(new, spec=replace(new.spec, taints=(*new.spec.taints, taint)))

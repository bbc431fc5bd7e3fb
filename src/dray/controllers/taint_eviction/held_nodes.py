"""Telling on a node that evictions from it are held, and how to confirm them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from dray.api import codec
from dray.api.generated.core import Node, NodeCondition, Taint
from dray.client import PatchFormat
from dray.controllers.context import Context
from dray.controllers.kinds import NODES
from dray.eviction.guard import Hold
from dray.eviction.node_guard import confirmation, identity
from dray.eviction.settings import CONFIRM_ANNOTATION
from dray.reconcile import EventRecorder
from dray.reconcile.clock import as_time

EVICTION_HELD: Final = "EvictionHeld"
REASON_TOO_MANY: Final = "TooManyPods"
REASON_NOT_HELD: Final = "NotHeld"


class HeldNode(msgspec.Struct, frozen=True):
    """A node that there may be something else to say about than before."""

    name: str


class HeldNodes:
    """Keeps the condition EvictionHeld of nodes. Nodes that never had one get none to say that nothing is held."""

    def __init__(self, context: Context, recorder: EventRecorder) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = recorder

    async def tell(self, node: Node, holds: Mapping[Taint, Hold]) -> None:
        """Writes what is held now, and an event if that is news. Raises ApiError or OSError."""
        known = next((one for one in node.status.conditions if one.type == EVICTION_HELD), None)
        if not holds:
            if known is not None and known.status == "True":
                await self._write(node, "False", REASON_NOT_HELD, "No evictions are held.")
            return
        message = "; ".join(f"taint {taint.key}: {hold}" for taint, hold in holds.items())
        if known is None or known.status != "True":
            text = f"{message}. To confirm: {_command(node, holds)}"
            await self._write(node, "True", REASON_TOO_MANY, text)
            await self._recorder.warning(node, EVICTION_HELD, text)

    async def _write(self, node: Node, status: str, reason: str, message: str) -> None:
        now = as_time(self._clock.now())
        condition = NodeCondition(
            type=EVICTION_HELD,
            status=status,
            reason=reason,
            message=message,
            last_transition_time=now,
            last_heartbeat_time=now,
        )
        patch = {"status": {"conditions": [codec.to_builtins(condition)]}}
        await self._client.patch(
            NODES, "", node.metadata.name, patch, format=PatchFormat.STRATEGIC, subresource="status"
        )


def _command(node: Node, holds: Mapping[Taint, Hold]) -> str:
    names = [confirmation(taint) for taint in node.spec.taints if identity(taint) in holds]
    value = ",".join(dict.fromkeys(names))
    return f"kubectl annotate --overwrite node {node.metadata.name} {CONFIRM_ANNOTATION}={value}"

"""What the first request of a kind would have to wait for, done before it comes.

What writes are judged by (which devices are held, which pods are on a node) is read from the store, which has to decode
all of it after a start: a server does so at once, a part in each turn of the loop. The modules with the rules of a kind
are imported when they are needed, and its schema is read then; that takes tens of milliseconds, on the loop. A server
does it beside the loop for all kinds, once it has had time to start.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from importlib import import_module
from typing import Final, Protocol

from dray.api import idle_fields, registry, schema
from dray.api.kinds import CLAIMS, NODES, PODS, SLICES, TEMPLATES
from dray.api.registry import Kind
from dray.process.clock import Clock
from dray.server.engine import Engine
from dray.server.patch import shape
from dray.store import Closed
from dray.validation.table import rules_of

PAUSE_SECONDS: Final = 1.0
"""After the start, when whatever is started with the server wants the processor."""
LATER: Final = ("dray.client.http",)
"""Modules that nobody needs for starting, and whose import would keep the loop when somebody does."""
FIRST: Final = (PODS, CLAIMS, TEMPLATES, NODES, SLICES)
"""Kinds of which many are written soon after a start."""
CALLER: Final = "system:warm-up"
"""Who waits for its turn among those whose requests are worked on beside the loop."""


class Copy(Protocol):
    """Something in the store, put together as it is asked for."""

    async def read(self) -> None:
        """Reads what is there, a part in each turn of the loop. Raises Closed."""


async def warm_up(engine: Engine, clock: Clock, copies: Iterable[Copy]) -> None:
    """Reads copies of what is stored, then learns every kind, one after the other."""
    with contextlib.suppress(Closed):
        for copy in copies:
            await copy.read()
    await clock.sleep(PAUSE_SECONDS)
    for module in LATER:
        await engine.workers.run(CALLER, import_module, module)
    for kind in dict.fromkeys((*FIRST, *registry.kinds())):
        await engine.workers.run(CALLER, learn, kind)


def learn(kind: Kind) -> None:
    """Everything that is found out about a kind when it is first written, and kept."""
    rules_of(kind)
    idle_fields.learn(kind)
    shape.of(schema.for_kind(kind.group, kind.versions[0], kind.kind))

"""How long tests wait: one limit for everything that must come, and the loops that wait for it.

A test that passes waits for as long as what it waits for takes, and no longer. The limit is only there for one that
fails; it is generous, because the machine may be busy with something else, and below pytest's own, so that a test that
waits in vain says for what. What must *not* come is not waited for: a clock that the test moves shows that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

PATIENCE = 120.0
"""Seconds."""
KUBECTL_PATIENCE = f"--timeout={PATIENCE:g}s"
"""For `kubectl wait` and the like."""
LOOK_SECONDS = 0.02

T = TypeVar("T")


def eventually(look: Callable[[], T | None], what: str = "it did not come to pass") -> T:
    """What `look` finds once it finds something."""
    deadline = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < deadline, what
        time.sleep(LOOK_SECONDS)
    return found


async def eventually_async(look: Callable[[], Any], what: str = "it did not come to pass") -> Any:
    """What `look`, plain or asynchronous, finds once it finds something; other tasks run meanwhile."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = look()
        found = await found if isinstance(found, Awaitable) else found
        if found:
            return found
        assert time.monotonic() < deadline, what
        await asyncio.sleep(LOOK_SECONDS)

"""How long the turns of an event loop are, in processor time of its own thread: other programs do not count."""

from __future__ import annotations

import asyncio
import time
from typing import Any


class LoopTurns:
    """Measures every turn of a loop of asyncio from now on. `longest` is in seconds of processor time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.longest = 0.0
        self.count = 0
        run_once = loop._run_once  # type: ignore[attr-defined]

        def measured(*arguments: Any) -> None:
            began = time.thread_time()
            run_once(*arguments)
            self.longest = max(self.longest, time.thread_time() - began)
            self.count += 1

        loop._run_once = measured  # type: ignore[attr-defined]

    def reset(self) -> None:
        """Forget what was before."""
        self.longest = 0.0
        self.count = 0

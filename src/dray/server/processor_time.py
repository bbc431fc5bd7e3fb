"""How long expressions may take beside the event loop.

Kubernetes bounds what an expression may cost, and that says little about time. The limit here is processor time of the
thread that evaluates: what a policy or a rule says must not depend on how busy the machine is with other things.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from dray.cel import OutOfTime

MOST_SECONDS: Final = 5.0
MOST_OF_REQUEST: Final = 10.0
"""What all policies may take for one request: they may be many, and Kubernetes ends a request after a minute."""
STEPS: Final = 2_000
"""How much is done before the time is looked at."""


def allowance(seconds: float = MOST_SECONDS) -> Callable[[], int]:
    """Gives steps to who evaluates in this thread, for some seconds from now; after that it raises OutOfTime."""
    end = time.thread_time() + seconds

    def more() -> int:
        if time.thread_time() >= end:
            raise OutOfTime
        return STEPS

    return more

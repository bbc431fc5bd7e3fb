"""What only a garbage collection would find, which a server never has the time for (`dray.process.garbage`)."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from typing import Any


def garbage_of(function: Callable[[], Any]) -> Counter[str]:
    """What a function leaves that knows itself, by type.

    Only what is new is looked at: to go over all that other tests have left takes a second each time.
    """
    while gc.collect(1):  # nothing is new any more; garbage among what others left is none of this
        pass
    gc.disable()
    try:
        function()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect(0)
        return Counter(type(one).__name__ for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

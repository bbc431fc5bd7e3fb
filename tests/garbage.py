"""What only a garbage collection would find, which a server never has the time for (`dray.process.garbage`)."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from typing import Any


def garbage_of(function: Callable[[], Any]) -> Counter[str]:
    """What a function leaves that knows itself, by type."""
    while gc.collect():  # what others left, and what that held
        pass
    gc.disable()
    try:
        function()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return Counter(type(one).__name__ for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

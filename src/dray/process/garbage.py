"""Python's garbage collector, set for a process that holds much and throws away little.

Stored objects are immutable and cannot form cycles, so looking through them for garbage is wasted: with tens of
thousands of them one full collection stops the server for tenths of a second.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (50_000, 20, 100)


@contextmanager
def loading() -> Iterator[None]:
    """No collections while everything is loaded; what is there afterwards is never looked at again.

    For the whole process: only the one who runs it should call this, once.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        gc.enable()

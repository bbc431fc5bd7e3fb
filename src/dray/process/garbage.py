"""Python's garbage collector, set for a process that holds much, throws away little, and must not stand still.

Stored objects are immutable and cannot form cycles, so looking through them for garbage is wasted; a full collection
stops the server for a microsecond for every three of them. So only what is young is looked at, a little at a time: most
cycles (exceptions and the frames that they name) die young. Whatever lives long and ends often, such as a connection,
takes its own cycles apart when it ends; tests count what is left.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

THRESHOLDS: Final = (2_500, 3, 1_000_000)
"""New objects until they are looked at, how often until the survivors are, and how often until everything is: never.

Each object is looked at twice, however they are set; with these no look takes longer than 10,000 objects do, 5 ms."""


@contextmanager
def loading() -> Iterator[None]:
    """No collections while everything is loaded; what is there afterwards is never looked at again.

    For the whole process: only the one who runs it should call this, once.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        gc.enable()

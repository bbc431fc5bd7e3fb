"""What the process has allocated and no longer needs goes back to the system.

The C library keeps large blocks that were freed for the next large request, and more of them with each, in pieces that
small ones keep from being given back: objects of megabytes, written again and again, left several times what is held.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Final

LARGE_BLOCK: Final = 512 * 1024
"""More than what is set aside for each read of a connection with TLS, 256 KiB: with pages of their own those would cost
three calls of the system and two faults for every request."""
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""How `mallopt` of the GNU C library calls the bytes at the end of its heap from which on they are given back, and the
size from which on a block has pages of its own."""


def give_back_large_blocks() -> None:
    """Blocks from `LARGE_BLOCK` bytes on have pages of their own, which the system gets back when they are freed.

    For the whole process. Where there is no such C library, nothing happens.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, LARGE_BLOCK)
        library.mallopt(_TRIM_THRESHOLD, 2 * LARGE_BLOCK)


def trim() -> None:
    """Gives back the pages in which nothing is left, also between small blocks.

    For a thread: it takes some milliseconds.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)

"""Room that the database has ahead of what it uses, for the day on which the disk is full.

::

    data.mdb   │ pages in use and pages that are free again │ allocated, not yet used │
               0                                           end                  end + AHEAD

Blocks are allocated beyond the end of the file (its size stays). While the disk gives them, there are always `LEAST`
bytes of them. Once it does not, nothing that grows is written any more, and deletes have that room: nobody else can
take it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from pathlib import Path
from typing import Final

LEAST: Final = 4 * 1024 * 1024
"""A delete writes what an object was last, and that has at most 3 MiB."""
AHEAD: Final = 2 * LEAST
ALMOST_FULL: Final = 1024 * 1024
"""With less than this, a disk counts as full: LMDB calls a page that was written in part an I/O error."""
_KEEP_SIZE: Final = 1


class Reserve:
    """The room ahead of one file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._secured = 0
        self._supported = True

    def free(self) -> int:
        """How many bytes of the disk are free, for whoever asks first."""
        return shutil.disk_usage(self._file.parent).free

    def secure(self, end: int) -> bool:
        """Makes sure of the room beyond a place in the file; False if the disk has none to give.

        Where file systems cannot do that, nothing is made sure of, and the answer is yes.
        """
        if not self._supported or self._secured >= end + LEAST:
            return True
        return self._allocate(end, AHEAD) or self._allocate(end, LEAST)

    def _allocate(self, end: int, size: int) -> bool:
        file = os.open(self._file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            failed = _libc.fallocate(file, _KEEP_SIZE, ctypes.c_long(end), ctypes.c_long(size))
            problem = ctypes.get_errno() if failed else 0
        finally:
            os.close(file)
        if problem in (errno.ENOSPC, errno.EDQUOT):
            return False
        self._supported = not problem
        self._secured = end + size
        return True


_libc: Final = ctypes.CDLL(None, use_errno=True)

"""Which of several instances of a driver on a node publishes: the one that came last, as long as it lives.

    plugin directory:  publisher.lock   a file that its instance keeps locked while it runs

An instance that starts puts a file of its own in the place of the one that is there: from then on the earlier one sees
that the file is another's, and writes nothing. The kernel takes the lock of a process that ends, however it does; then
who is left takes its place. Names of instances, sockets and clocks do not matter.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from pathlib import Path

FILE = "publisher.lock"


class PublishingRight:
    """One instance's part of it. Not for several threads."""

    def __init__(self, plugin_dir: Path) -> None:
        self._path = plugin_dir / FILE
        self._own: int | None = None

    def take(self) -> None:
        """From now on this instance publishes, and an earlier one does not. Raises OSError."""
        own = self._path.with_name(f".{FILE}-{secrets.token_hex(8)}")
        opened = os.open(own, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.replace(own, self._path)  # locked before anybody can see it
        except OSError:
            os.close(opened)
            own.unlink(missing_ok=True)
            raise
        self.give_up()
        self._own = opened

    def is_held(self) -> bool:
        """Whether this instance publishes. Takes the place of one that came later and is gone."""
        if self._own is None:
            return False
        if self._is_own():
            return True
        if self._is_somebody_there():
            return False
        with contextlib.suppress(OSError):
            self.take()
        return self._is_own()

    def give_up(self) -> None:
        """Leaves it to whoever is there."""
        if self._own is not None:
            os.close(self._own)
            self._own = None

    def _is_own(self) -> bool:
        assert self._own is not None
        try:
            return os.path.samestat(os.fstat(self._own), os.lstat(self._path))
        except OSError:
            return False

    def _is_somebody_there(self) -> bool:
        """Whether the file is another's who runs: it is locked."""
        try:
            other = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        except OSError:
            return True  # not to be judged, so nothing is taken
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(other)
        return False

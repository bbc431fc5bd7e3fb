"""What is at a key, and how it is numbered: an object without its revision, and the write's own mark.

::

    {"kind":"Pod", … "resourceVersion":"0" …}
    <server>-<number of the write>.<position>

The mark tells whose write it is that the watch tells of: two servers may write the same bytes, and only one succeeds.

All that one transaction writes has one revision in etcd. Clients resume a watch after the last number that they have
seen, so every change needs a number of its own: etcd's revision, and the position in the transaction behind it.
Positions of writes are in their marks. A removal leaves no mark: it has the position after that of the change that
etcd tells of before it, which is what every server makes of it.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from dray.store.stamping import NotOurs

POSITIONS: Final = 128
"""So many changes are told apart in one revision: what etcd takes in one transaction, unless it is told otherwise."""


class Numbered(Protocol):
    """How an object gets another revision. The store knows nothing else about objects."""

    def __call__(self, obj: Any, revision: int) -> Any:
        """The same object, with that revision."""
        ...


def number(revision: int, position: int) -> int:
    """The number of a change: what dray calls its revision, and clients its resourceVersion."""
    return revision * POSITIONS + position


def last_number(revision: int) -> int:
    """The number up to which everything is told when everything of a revision of etcd is."""
    return revision * POSITIONS + POSITIONS - 1


def etcd_revision(number: int) -> int:
    """The revision of etcd that a number is of."""
    return number // POSITIONS


def marked(data: bytes, mark: bytes, position: int) -> bytes:
    """An object's bytes as they are put into etcd."""
    return b"%b\n%b.%d" % (data, mark, position)


def position(value: bytes) -> int:
    """Which change of its transaction a value is. Raises NotOurs."""
    mark, _, digits = value[value.rfind(b"\n") + 1 :].rpartition(b".")
    if not mark or not digits.isdigit():
        raise NotOurs
    return int(digits)


def unmarked(value: bytes) -> bytes:
    """An object's bytes, without a revision, in what etcd has. Raises NotOurs."""
    end = value.rfind(b"\n")
    if end < 0:
        raise NotOurs
    return value[:end]

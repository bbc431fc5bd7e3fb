"""What is at a key: an object without its revision, which etcd gives when the write is made, and the write's own mark.

::

    {"kind":"Pod", … "resourceVersion":"0" …}
    <server>-<number of the write>

The mark tells whose write it is that the watch tells of: two servers may write the same bytes, and only one succeeds.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

_MARK: Final = b'"resourceVersion":"'


class NotOurs(ValueError):
    """What is at a key was not written by dray."""


class Numbered(Protocol):
    """How an object gets another revision. The store knows nothing else about objects."""

    def __call__(self, obj: Any, revision: int) -> Any:
        """The same object, with that revision."""
        ...


def marked(data: bytes, mark: bytes) -> bytes:
    """An object's bytes as they are put into etcd."""
    return b"%b\n%b" % (data, mark)


def read(value: bytes, revision: int) -> bytes:
    """The object's bytes, with its revision, in what etcd has. Raises NotOurs."""
    try:
        return stamped(value[: value.rindex(b"\n")], revision)
    except ValueError:
        raise NotOurs from None


def stamped(data: bytes, revision: int) -> bytes:
    """An object's bytes with a revision instead of the one in them.

    The first such field is the object's own: only kind, apiVersion and strings of its metadata come before it, and no
    string in JSON holds an unescaped quote.
    """
    start = data.index(_MARK) + len(_MARK)
    return b"%b%d%b" % (data[:start], revision, data[data.index(b'"', start) :])

"""The revision inside an object: etcd gives it when the write is made, after the object was put into bytes."""

from __future__ import annotations

from typing import Any, Final, Protocol

_MARK: Final = b'"resourceVersion":"'


class Numbered(Protocol):
    """How an object gets another revision. The store knows nothing else about objects."""

    def __call__(self, obj: Any, revision: int) -> Any:
        """The same object, with that revision."""
        ...


def stamped(data: bytes, revision: int) -> bytes:
    """An object's bytes with a revision instead of the one in them.

    The first such field is the object's own: only kind, apiVersion and strings of its metadata come before it, and no
    string in JSON holds an unescaped quote.
    """
    start = data.index(_MARK) + len(_MARK)
    return b"%b%d%b" % (data[:start], revision, data[data.index(b'"', start) :])

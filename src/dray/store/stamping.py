"""The revision in an object's bytes. The store knows nothing else about what it keeps."""

from __future__ import annotations

from typing import Final

_MARK: Final = b'"resourceVersion":"'


class NotOurs(ValueError):
    """What is there was not written by dray."""


def stamped(data: bytes, revision: int) -> bytes:
    """An object's bytes with a revision instead of the one in them. Raises NotOurs.

    The first such field is the object's own: only kind, apiVersion and strings of its metadata come before it, and no
    string in JSON holds an unescaped quote.
    """
    start = data.find(_MARK) + len(_MARK)
    if start < len(_MARK):
        raise NotOurs
    return b"%b%d%b" % (data[:start], revision, data[data.index(b'"', start) :])

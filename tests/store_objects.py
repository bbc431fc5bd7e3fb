"""What tests of the store write: texts as objects, under the keys of pods."""

from __future__ import annotations

from dray.store import Finish, Key


def pod(name: str, namespace: str = "default") -> Key:
    """Where a pod is stored."""
    return Key("pods", namespace, name)


def made(text: str) -> Finish:
    """A text as an object and as bytes, whatever its revision."""
    return lambda _revision: (text, text.encode())

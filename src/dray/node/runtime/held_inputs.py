"""Inputs of containers that end with the first who types (`stdinOnce`): the agent holds them open until then."""

from __future__ import annotations

import os
import threading


class HeldInputs:
    """Descriptors of pipes by the container that reads them. Containers start on threads, so there is a lock."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}
        self._lock = threading.Lock()

    def hold(self, identity: str, descriptor: int) -> None:
        """Keeps an input from ending."""
        with self._lock:
            self._held[identity] = os.dup(descriptor)

    def release(self, identity: str) -> None:
        """Lets it end, if it was held."""
        with self._lock:
            held = self._held.pop(identity, None)
        if held is not None:
            os.close(held)

    def __del__(self) -> None:
        for held in self._held.values():
            os.close(held)

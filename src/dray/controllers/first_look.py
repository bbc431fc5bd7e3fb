"""Who judges objects by others hears of what there is when all of it is known, and not one by one before.

While informers list, half of everything is missing: of every pod it would seem that it lacks its claims, or of every
claim that its pod is gone, and each would be looked at once more later, for nothing.
"""

from __future__ import annotations

from typing import Any

from dray.client import Informer
from dray.client.informer import Handler
from dray.process.tasks import with_turns

AT_ONCE = 64
"""Objects that handlers hear of before others get a turn of the loop."""


class FirstLook:
    """Handlers of several informers, that wait for one another's first lists."""

    def __init__(self, *sources: tuple[Informer[Any], Handler[Any]]) -> None:
        """In the order in which handlers are to hear of what there is."""
        self._sources = sources
        self.has_begun = False
        """Whether everything has been listed, and what happens is heard of."""
        for informer, handler in sources:
            informer.on_change(self._in_time(handler))

    async def look(self) -> None:
        """Returns when everything has been listed, and handlers have heard of it, a few objects at a time."""
        for informer, _ in self._sources:
            await informer.synced()
        if self.has_begun:
            return
        self.has_begun = True
        for informer, handler in self._sources:
            async for obj in with_turns(informer, AT_ONCE):
                if informer.get(obj.metadata.namespace, obj.metadata.name) is obj:  # else what became of it was told
                    handler(None, obj)

    def _in_time(self, handler: Handler[Any]) -> Handler[Any]:
        def hear(old: Any, new: Any) -> None:
            if self.has_begun:
                handler(old, new)

        return hear

"""Events: what happened to an object, for people. The same thing happening again is counted, not written again."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from dray.api.generated.core import Event, EventSource
from dray.api.kinds import EVENTS
from dray.api.meta import Object, ObjectMeta
from dray.api.recent import Newest
from dray.api.references import object_reference
from dray.api.status import ApiError
from dray.api.visible import visible
from dray.client.interface import Client
from dray.process.clock import Clock, as_time

MAX_REMEMBERED = 4096
MESSAGE_LENGTH = 1024
CLUSTER_NAMESPACE = "default"


class EventRecorder:
    """Writes events as one component. Losing an event never fails the work that it tells of."""

    def __init__(self, client: Client, component: str, clock: Clock) -> None:
        self._client = client
        self._component = component
        self._clock = clock
        self._known: Newest[str, Event] = Newest(MAX_REMEMBERED)

    async def normal(self, about: Object, reason: str, message: str) -> None:
        """Something went as it should."""
        await self.record(about, "Normal", reason, message)

    async def warning(self, about: Object, reason: str, message: str) -> None:
        """Something that somebody should look at."""
        await self.record(about, "Warning", reason, message)

    async def record_all(self, reason: str, news: Sequence[tuple[Object, str]]) -> None:
        """Something went as it should, with each of several objects: an event each, all in one write if that can be."""
        if len(news) > 1:
            told = [(_shown(message), about) for about, message in news]
            keys = [_key(about, "Normal", reason, message) for message, about in told]
            if len(set(keys)) == len(keys) and not any(key in self._known for key in keys):
                events = [
                    self._new(about, "Normal", reason, message, key)
                    for (message, about), key in zip(told, keys, strict=True)
                ]
                with contextlib.suppress(ApiError, OSError, TimeoutError):
                    stored = await self._client.create_events(events)
                    if stored is not None:
                        self._remember(zip(keys, stored, strict=True))
                        return
        await asyncio.gather(*(self.normal(about, reason, message) for about, message in news))

    async def record(self, about: Object, type_: str, reason: str, message: str) -> None:
        """Writes an event, or counts it up if the same one was written before."""
        message = _shown(message)
        key = _key(about, type_, reason, message)
        known = self._known.get(key)
        try:
            if known is None:
                event = await self._client.create(self._new(about, type_, reason, message, key))
            else:
                event = await self._count(known)
        except (ApiError, OSError, TimeoutError):
            self._known.pop(key, None)
            return
        self._remember([(key, event)])

    def _remember(self, events: Iterable[tuple[str, Event]]) -> None:
        for key, event in events:
            self._known.keep(key, event)

    async def _count(self, known: Event) -> Event:
        patch = {"count": (known.count or 1) + 1, "lastTimestamp": str(as_time(self._clock.now()))}
        meta = known.metadata
        await self._client.patch(EVENTS, meta.namespace, meta.name, patch)
        # Not what is stored now: others may have written anything into it, and it is remembered.
        return replace(known, count=patch["count"])

    def _new(self, about: Object, type_: str, reason: str, message: str, key: str) -> Event:
        now = self._clock.now()
        meta = about.metadata
        digest = hashlib.sha256(f"{key}/{now}".encode()).hexdigest()[:16]
        at = as_time(now)
        namespace = meta.namespace or CLUSTER_NAMESPACE
        return Event(
            kind="Event",
            api_version="v1",
            metadata=ObjectMeta(name=f"{meta.name}.{digest}", namespace=namespace),
            involved_object=object_reference(about),
            type=type_,
            reason=reason,
            message=message,
            count=1,
            first_timestamp=at,
            last_timestamp=at,
            source=EventSource(component=self._component),
            reporting_component=self._component,
        )


def _shown(message: str) -> str:
    return visible(message[:MESSAGE_LENGTH])[:MESSAGE_LENGTH]


def _key(about: Object, type_: str, reason: str, message: str) -> str:
    """What is the same for the same news."""
    return f"{about.metadata.uid}/{type_}/{reason}/{message}"

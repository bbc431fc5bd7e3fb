"""Events are removed an hour after they were last written, as kube-apiserver does: without that they would only grow.

Every server of a cluster looks. Who comes second finds nothing to remove.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final

import msgspec

from dray.api.kinds import EVENTS
from dray.process.clock import Clock
from dray.server.engine import Engine
from dray.server.objects import finish, finish_ahead
from dray.store import Closed, Conflict, Delete, Finish, NotFound, Record, StorageError, in_parts

KEPT_SECONDS: Final = 3600.0
SWEEP_SECONDS: Final = 300.0
AT_ONCE: Final = 200
AT_ONCE_BYTES: Final = 128 * 1024
"""So many, of so many bytes, are looked at in one turn of the loop, and removed in one transaction."""
CALLER: Final = "system:event-expiry"
"""Who waits for its turn among those whose requests are worked on beside the loop."""

log = logging.getLogger(__name__)


async def keep_recent(engine: Engine, clock: Clock) -> None:
    """Removes what is old, now and then, until the store is closed."""
    while True:
        try:
            await remove_old(engine, clock.now())
        except Closed:
            return
        except StorageError as error:
            log.warning("cannot remove old events: %s", error)
        await clock.sleep(SWEEP_SECONDS)


async def remove_old(engine: Engine, now: float) -> None:
    """Removes events that nobody has written for an hour. Raises StorageError, Closed."""
    store, after = engine.store, None
    while records := store.list(EVENTS.resource, after=after, limit=AT_ONCE).records:
        after = (records[-1].key.namespace, records[-1].key.name)
        # each large one by itself: it is looked at beside the loop
        for part in in_parts(records, attrgetter("size"), AT_ONCE_BYTES, AT_ONCE):
            if sum(record.size for record in part) > AT_ONCE_BYTES:
                removals = await engine.workers.run(CALLER, _removals, part, now)
            else:
                removals = _removals(part, now)
            if removals:
                await _remove(engine, removals)
            await asyncio.sleep(0)


def _removals(records: Sequence[Record], now: float) -> list[Delete]:
    """How those that are old are removed."""
    old = (record for record in records if _last_written(record, now) < now - KEPT_SECONDS)
    return [Delete(record.key, record.revision, _last_state(record)) for record in old]


def _last_state(record: Record) -> Finish:
    return finish_ahead(record.obj) if record.size > AT_ONCE_BYTES else finish(record.obj)


async def _remove(engine: Engine, removals: Sequence[Delete]) -> None:
    """All at once; one by one if somebody else has removed or written some of them."""
    try:
        await engine.store.transact(removals)
    except (NotFound, Conflict):
        for removal in removals:
            try:
                await engine.store.delete(*removal)
            except (NotFound, Conflict):
                continue


def _last_written(record: Record, now: float) -> float:
    """When an event was last written. Writers say so themselves; what they say of the future does not count."""
    told = (time.timestamp() for time in _read_times(record.data).all() if time is not None)
    return max((time for time in told if time <= now), default=now)


class _Entry(msgspec.Struct, rename="camel", gc=False):
    time: datetime | None = None


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    creation_timestamp: datetime | None = None
    managed_fields: tuple[_Entry, ...] = ()


class _Series(msgspec.Struct, rename="camel", gc=False):
    last_observed_time: datetime | None = None


class _Times(msgspec.Struct, rename="camel", gc=False):
    """What a stored event says of times: all of them are looked at again and again, and nobody needs the rest."""

    metadata: _Metadata
    event_time: datetime | None = None
    last_timestamp: datetime | None = None
    series: _Series | None = None

    def all(self) -> Iterator[datetime | None]:
        yield self.metadata.creation_timestamp
        yield self.last_timestamp
        yield self.event_time
        yield None if self.series is None else self.series.last_observed_time
        yield from (each.time for each in self.metadata.managed_fields)


_read_times: Final = msgspec.json.Decoder(_Times).decode

"""Follows a cluster and writes down what happens, until it is cancelled: list, watch, and again when a watch breaks.

A broken watch is resumed where it was: nothing is lost, but what happened meanwhile is told late, which is marked if it
took long. When the server cannot go back that far, a fresh list is compared with what was last seen, and the gap is
marked. Of every object only a digest is remembered, so memory grows with the cluster and not with time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, NamedTuple

from dray.api.backoff import Backoff
from dray.api.meta import Object
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.client import Client, WatchExpired
from dray.client.calls import list_if_allowed
from dray.client.interface import ObjectList
from dray.process.clock import Clock
from dray.process.tasks import run_together
from dray.recording.essence import NEEDED, RECORDED
from dray.recording.files import RecordingWriter

BACKOFF: Final = Backoff(first=0.1, longest=10.0)
FLUSH_SECONDS: Final = 2.0
LATE_SECONDS: Final = 2.0
"""What is told later than this is marked."""

Report = Callable[[str], None]


class _Known(NamedTuple):
    uid: str
    digest: bytes


class Recorder:
    """`start`, then `run` until cancelled. The writer stays open."""

    def __init__(self, client: Client, clock: Clock, *, report: Report) -> None:
        """`report` hears of trouble with the server, a sentence at a time."""
        self._client = client
        self._clock = clock
        self._report = report
        self._known: dict[Kind, dict[tuple[str, str], _Known]] = {}
        self._revisions: dict[Kind, str] = {}
        self._heard: dict[Kind, float] = {}
        """When the watch of a kind was alive last, as far as one can tell."""
        self.changes = 0
        """How many changes were written since the start."""

    async def readable(self) -> tuple[list[Kind], list[Kind]]:
        """Which kinds are there and may be read, and which may not. Raises ApiError or OSError for what is needed."""
        forbidden: list[Kind] = []
        there = [
            kind
            for kind in RECORDED
            if kind in NEEDED or await list_if_allowed(self._client, kind, forbidden) is not None
        ]
        return there, forbidden

    async def start(self, kinds: list[Kind], writer: RecordingWriter) -> None:
        """Writes what is there now. Raises ApiError or OSError."""
        self._writer = writer
        for kind in kinds:
            self._known[kind] = {}
            self._compare(kind, await self._client.list(kind))
        writer.listed(self._clock.now())
        writer.flush()
        self.changes = 0

    async def run(self) -> None:
        """Writes what happens. Raises RecordingError if the file cannot be written."""
        await run_together(self._keep_flushing(), *map(self._follow, self._known))

    async def _keep_flushing(self) -> None:
        while True:
            await self._clock.sleep(FLUSH_SECONDS)
            self._writer.flush()

    async def _follow(self, kind: Kind) -> None:
        pauses = BACKOFF.pauses()
        heard = self._clock.now()
        while True:
            try:
                if not self._revisions[kind]:
                    listing = await self._client.list(kind)
                    self._writer.gap(kind, heard, self._clock.now(), lost=True)
                    self._compare(kind, listing)
                    heard = self._clock.now()
                heard = await self._watch(kind, heard)
                pauses.reset()
                continue
            except WatchExpired:
                self._revisions[kind] = ""
            except (ApiError, OSError, TimeoutError) as error:
                if isinstance(error, ApiError) and error.code in (404, 410):
                    self._revisions[kind] = ""
                heard = max(heard, self._heard.get(kind, heard))
                self._report(f"cannot follow {kind.plural}: {error}; it is tried again")
            await self._clock.sleep(pauses.next())

    async def _watch(self, kind: Kind, heard: float) -> float:
        """Follows a watch until it ends; when that was. Raises ApiError, WatchExpired, OSError or TimeoutError."""
        began = self._clock.now()
        if began - heard > LATE_SECONDS:
            self._writer.gap(kind, heard, began, lost=False)
        try:
            async for event in self._client.watch(kind, revision=self._revisions[kind]):
                if event.type == "DELETED":
                    self._remove(kind, event.object)
                elif event.type != "BOOKMARK":
                    self._note(kind, event.object)
                self._revisions[kind] = event.revision or self._revisions[kind]
                self._heard[kind] = self._clock.now()
        except OSError as error:
            if not isinstance(error, TimeoutError):
                self._heard[kind] = self._clock.now()  # it was there until it broke
            raise
        return self._clock.now()

    def _compare(self, kind: Kind, listing: ObjectList) -> None:
        """A list instead of changes: what differs from what was last seen is written."""
        there = {(obj.metadata.namespace, obj.metadata.name) for obj in listing.items}
        known = self._known[kind]
        for place in [place for place in known if place not in there]:
            self._forget(kind, place)
        for obj in listing.items:
            self._note(kind, obj)
        self._revisions[kind] = listing.revision

    def _note(self, kind: Kind, obj: Object) -> None:
        place, uid = (obj.metadata.namespace, obj.metadata.name), obj.metadata.uid
        document = self._writer.document(obj)
        digest = hashlib.blake2s(document, digest_size=16).digest()
        before = self._known[kind].get(place)
        if before is not None and before.uid != uid:
            self._forget(kind, place)
        elif before is not None and before.digest == digest:
            return  # nothing that is kept has changed: a heartbeat, a condition, an annotation of somebody else
        self._known[kind][place] = _Known(uid, digest)
        self.changes += 1
        self._writer.seen(document, self._clock.now())

    def _remove(self, kind: Kind, obj: Object) -> None:
        place = (obj.metadata.namespace, obj.metadata.name)
        known = self._known[kind].get(place)
        if known is not None and known.uid == obj.metadata.uid:
            self._forget(kind, place)

    def _forget(self, kind: Kind, place: tuple[str, str]) -> None:
        known = self._known[kind].pop(place)
        self.changes += 1
        self._writer.gone(kind, *place, known.uid, self._clock.now())

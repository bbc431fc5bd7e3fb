"""What etcd's watch tells, brought to the store in order: resumed where it broke off, loaded anew where it cannot."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final, Protocol

import grpc
import grpc.aio

from dray.store.errors import StorageError, StoreError, Unreachable
from dray.store.etcd.calls import PUT, RANGE
from dray.store.etcd.connection import CALL_SECONDS, Connection, Refused
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.layout import Layout
from dray.store.etcd.loading import Loaded
from dray.store.etcd.past import OtherPast, Past, Replay
from dray.store.etcd.revisions import etcd_revision

SLICE: Final = 250
"""So many events are taken in one turn of the loop."""
PAUSE_SECONDS: Final = 0.1
SILENT_SECONDS: Final = 1.0
"""A stream that says nothing for so long after it was asked is given up."""


class Target(Protocol):
    """Who hears of it."""

    @property
    def revision(self) -> int:
        """Up to where it has heard, as `revisions` numbers it."""
        ...

    def apply(self, events: Sequence[Any], revision: int) -> None:
        """Changes in order, and up to where everything was told."""
        ...

    def reload(self, loaded: Loaded) -> None:
        """Everything, because changes are not known any more."""
        ...


class Feed:
    """Follows everything under the prefix until it is cancelled."""

    def __init__(self, target: Target, connection: Connection, layout: Layout, version: tuple[int, ...]) -> None:
        self._target = target
        self._connection = connection
        self._layout = layout
        # Before, an answer to the question how far it has told could overtake what it told.
        self._may_ask = version >= (3, 5, 8) or (3, 4, 25) <= version < (3, 5)
        self._call: Any = None
        self._asked_at: float | None = None
        self._past = Past()
        self._is_sure = asyncio.Event()
        self.problem = "etcd has not been reached yet"
        """Why nothing is heard; empty if it is."""
        self.reconnects = 0

    async def run(self) -> None:
        """Never returns. Whatever goes wrong is tried again."""
        while True:
            try:
                await self._follow()
            except (grpc.aio.AioRpcError, StorageError, TimeoutError) as error:
                details = error.details() if isinstance(error, grpc.aio.AioRpcError) else str(error)
                self.problem = f"the watch of etcd broke off: {details or 'no answer'}"
                self._connection.move_on()
            except StoreError as error:
                self.problem = str(error)
            except asyncio.CancelledError:
                if _is_ending():
                    raise
                self.problem = "a member of etcd did not answer"  # and its stream was given up
                self._connection.move_on()
            finally:
                self._call = None
                self._is_sure.clear()
            self.reconnects += 1
            await asyncio.sleep(PAUSE_SECONDS)

    @property
    def is_sure(self) -> bool:
        """Whether the stream that there is tells the past that was heard of."""
        return self._is_sure.is_set()

    async def sure(self) -> None:
        """Waits until it is. Raises Unreachable."""
        if self.is_sure:
            return
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await self._is_sure.wait()
        except TimeoutError:
            raise Unreachable(self.problem or "etcd has not said what came before") from None

    async def nudge(self) -> None:
        """Let etcd say how far it has told, even if nothing of ours has changed; who stays silent is left."""
        call, now = self._call, asyncio.get_running_loop().time()
        if call is None:
            return
        if self._asked_at is None:
            self._asked_at = now
        elif now - self._asked_at > SILENT_SECONDS:
            self._asked_at = None
            call.cancel()
            return
        try:
            if self._may_ask:
                await call.write(pb.WatchRequest(progress_request=pb.WatchProgressRequest()))
            else:
                await self._connection.ask(PUT, pb.PutRequest(key=self._layout.own("pulse")), 1.0)
        except (grpc.aio.AioRpcError, StorageError, asyncio.InvalidStateError):
            return  # the stream has ended, which `run` notices
        except asyncio.CancelledError:
            if _is_ending():
                raise  # else somebody has given the stream up meanwhile

    async def _follow(self) -> None:
        """One stream, from the last changes on that were told."""
        start, end = self._layout.range
        told = etcd_revision(self._target.revision)
        replay = Replay(self._past, told)
        self._connection.check()
        async with self._connection.stream() as call:
            create = pb.WatchCreateRequest(
                key=start, range_end=end, start_revision=self._past.first or told + 1, progress_notify=True
            )
            async with asyncio.timeout(CALL_SECONDS):
                await call.write(pb.WatchRequest(create_request=create))
                first = await call.read()
            if first is grpc.aio.EOF or not first.created:
                raise StorageError("the watch was not accepted")
            self._call = call
            answer = first
            while answer is not grpc.aio.EOF:
                self._asked_at = None
                if answer.canceled:
                    await self._ended(answer, told)
                    return
                self.problem = ""
                self._connection.expect(answer.header.revision)
                if answer is not first:
                    try:
                        events = replay.take(answer.events)
                    except OtherPast:
                        await self._differs(told)
                        return
                    if events:
                        await self._tell(events)
                    elif not answer.events:
                        self._target.apply((), answer.header.revision)
                if replay.is_over:
                    self._is_sure.set()
                answer = await call.read()

    async def _tell(self, events: Sequence[Any]) -> None:
        """All of a revision at once, and not too much in one turn."""
        at = 0
        while at < len(events):
            end = min(at + SLICE, len(events))
            while end < len(events) and events[end].kv.mod_revision == events[end - 1].kv.mod_revision:
                end += 1
            self._past.add(events[at:end])
            self._target.apply(events[at:end], events[end - 1].kv.mod_revision)
            at = end
            if at < len(events):
                await asyncio.sleep(0)

    async def _ended(self, answer: Any, told: int) -> None:
        """etcd has let go of the revisions that we need, or ends the watch for another reason."""
        if not answer.compact_revision:
            raise StorageError(answer.cancel_reason or "etcd ended the watch")
        await self._begin_anew(told)

    async def _begin_anew(self, told: int) -> None:
        """Everything is loaded, with what of the past is not known here."""
        logging.getLogger(__name__).warning("etcd has compacted what it would have to tell: everything is read anew")
        loaded = await self._connection.load(self._layout, told)
        self._connection.expect(loaded.revision, told)
        self._past = Past()
        self._target.reload(loaded)

    async def _differs(self, told: int) -> None:
        """What was told before is told otherwise. Where it is compacted, removals are told no more."""
        before = pb.RangeRequest(key=self._layout.own("pulse"), revision=self._past.first - 1)
        try:
            await self._connection.ask(RANGE, before)
        except Refused as error:
            if error.is_compacted:
                await self._begin_anew(told)
                return
        self._connection.disown(f"has another past than it had up to revision {told}")


def _is_ending() -> bool:
    """Whether this task was told to end: a stream that somebody ends raises the same."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0

"""Prepares the claims of a pod before it starts, and unprepares them after it ended.

    prepare:    read and check the claims ─▶ note the pod ─▶ checkpoint ─▶ one call per driver ─▶ checkpoint
    unprepare:  last pod of a claim here? note that ─▶ checkpoint ─▶ one call per driver ─▶ drop ─▶ checkpoint

Nothing is asked of a driver before it is on disk that it was asked, so a restart between any two steps goes on from
there. Nothing is noted for a pod that is refused, so that it can be deleted although its driver never was here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final
from weakref import WeakValueDictionary

from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.api.kinds import CLAIMS
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.client import Client
from dray.node.answers import ClaimAnswer, PreparedClaims, judge_prepare, judge_unprepare
from dray.node.checkpoint import Checkpoint, CheckpointError
from dray.node.claim_record import PREPARE, UNPREPARE, ClaimBook, ClaimRecord, new_record
from dray.node.driver_calls import CallFailed, DriverCalls
from dray.node.drivers import DriverMissing
from dray.node.metrics import NodeMetrics
from dray.node.pod_claims import PodClaim, Refused, check_claim, pod_claims
from dray.reconcile import Clock

READS_AT_ONCE: Final = 16
"""Hundreds of pods may start in one moment; a TLS handshake for each would be more work than waiting for a turn."""

Call = Callable[[str, Sequence[ClaimRecord]], Awaitable[dict[str, ClaimAnswer]]]
Judge = Callable[[str, Sequence[ClaimRecord], dict[str, ClaimAnswer]], PreparedClaims]
Vendors = Mapping[str, tuple[str, ...]]
NO_VENDORS: Final[Vendors] = {}


class ClaimsNotReady(Exception):
    """Some claims of a pod could not be prepared or unprepared yet. The message says which, and why."""


class ClaimWork:
    """What is done with claims. Pods that share a claim take turns with it."""

    def __init__(
        self,
        client: Client,
        book: ClaimBook,
        checkpoint: Checkpoint,
        calls: DriverCalls,
        metrics: NodeMetrics,
        clock: Clock,
        *,
        vendors: Vendors = NO_VENDORS,
        handled: bool = True,
    ) -> None:
        """Claims that are not `handled` hold up no pod and give it nothing (4381-208).

        `vendors`: of which CDI devices drivers may speak that are not named after them.
        """
        self._client = client
        self.book = book
        self._checkpoint = checkpoint
        self._calls = calls
        self._metrics = metrics
        self._clock = clock
        self._vendors = vendors
        self._handled = handled
        self._reads = asyncio.Semaphore(READS_AT_ONCE)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def is_ready(self, pod: Pod) -> bool:
        """Whether all claims of a pod are prepared for it. Asks nobody, so containers restart without the server."""
        if not self._handled:
            return True
        try:
            wanted = pod_claims(pod)
        except Refused:
            return False
        held = {record.name: record for record in self.book.of_pod(pod.metadata.uid)}
        return all(one.claim in held and held[one.claim].prepared for one in wanted)

    async def prepare(self, pod: Pod) -> None:
        """Prepares what is not. Raises Refused, ClaimsNotReady, ApiError or OSError; all are to be tried again."""
        with self._measured("PrepareResources"):
            wanted = pod_claims(pod)
            claims = await asyncio.gather(*(self._read(pod, one) for one in wanted))
            async with self._turns(claim.metadata.uid for claim in claims):
                records = [self._record(claim) for claim in claims]
                self._check_drivers(records)
                await self._note(pod.metadata.uid, records)
                await self._prepare(pod.metadata.uid)

    async def unprepare(self, pod: str) -> None:
        """A pod (by uid) has ended: unprepares claims that no other pod here uses. Raises ClaimsNotReady."""
        if not self.book.of_pod(pod):
            return
        with self._measured("UnprepareResources"):
            async with self._turns(record.uid for record in self.book.of_pod(pod)):
                for record in self.book.of_pod(pod):
                    alone = record.pods == (pod,)
                    self.book.put(replace(record, unpreparing=True) if alone else record.without_pod(pod))
                await self._save()
                last = self.book.of_pod(pod)
                self._count_skips(last, UNPREPARE)
                problems = await self._call_drivers(last, UNPREPARE, self._calls.unprepare, judge_unprepare)
                for record in last:
                    if record.uid not in problems:
                        self.book.drop(record.uid)
                if len(problems) < len(last):
                    await self._save()
                _raise(problems)

    async def confirm(self, driver: str, records: Sequence[ClaimRecord]) -> dict[str, str]:
        """Prepares claims again that were prepared before the agent was restarted (4381-174).

        Returns, by uid, what could not be. A driver must answer as it did before; if not, its new answer counts.
        """
        async with self._turns(record.uid for record in records):
            current = [self.book.get(record.uid) for record in records]
            there = [record for record in current if record is not None and not record.unpreparing]
            problems, verdict = await self._ask(driver, there, self._calls.prepare, self._judge_prepare)
            changed = False
            for record in there:
                devices = verdict.accepted.get(record.uid)
                if devices is not None and devices != record.drivers[driver].devices:
                    problems[record.uid] = (
                        f"driver {driver} prepared ResourceClaim {record.namespace}/{record.name} differently "
                        "than before the restart"
                    )
                    self.book.put(record.with_answer(driver, devices))
                    changed = True
            if changed:
                await self._save()
            return problems

    async def _read(self, pod: Pod, wanted: PodClaim) -> ResourceClaim:
        """A claim that the pod may use. Raises Refused, ApiError or OSError."""
        try:
            async with self._reads:
                claim = await self._client.get(CLAIMS, pod.metadata.namespace, wanted.claim)
        except ApiError as error:
            if error.code in (403, 404):
                raise Refused(f"fetch ResourceClaim {wanted.claim}: {error}") from None
            raise
        assert isinstance(claim, ResourceClaim)
        check_claim(pod, wanted, claim)
        return claim

    def _record(self, claim: ResourceClaim) -> ClaimRecord:
        """The claim's record, a new one if there is none. Raises Refused if an earlier use has not ended."""
        fresh, known = new_record(claim), self.book.named(claim.metadata.namespace, claim.metadata.name)
        if known is None:
            return fresh
        if known.uid != fresh.uid:
            raise Refused(f"an earlier ResourceClaim {known.name} ({known.uid}) is still prepared on this node")
        if known.unpreparing:
            raise Refused(f"ResourceClaim {known.name} is being unprepared")
        if _allocated(known) != _allocated(fresh):
            raise Refused(f"ResourceClaim {known.name} is still prepared with the devices that it had before")
        return known

    def _check_drivers(self, records: Iterable[ClaimRecord]) -> None:
        """Raises ClaimsNotReady while a driver is missing, also for claims that it has prepared already."""
        try:
            for driver in {name for one in records for name, part in one.drivers.items() if part.needs(PREPARE)}:
                self._calls.check(driver)
        except DriverMissing as error:
            raise ClaimsNotReady(str(error)) from None

    async def _note(self, pod: str, records: Iterable[ClaimRecord]) -> None:
        """Notes on disk that the pod uses these claims. Raises ClaimsNotReady, and then nothing is noted."""
        before = [(record, self.book.get(record.uid)) for record in records]
        for record, _ in before:
            self.book.put(record.with_pod(pod))
        if all(known is not None and pod in known.pods for _, known in before):
            return
        try:
            await self._save()
        except ClaimsNotReady:
            for record, known in before:
                if known is not None:
                    self.book.put(known)
                else:
                    self.book.drop(record.uid)
            raise
        self._count_skips((record for record, known in before if known is None), PREPARE)

    def _count_skips(self, records: Iterable[ClaimRecord], operation: str) -> None:
        for record in records:
            for driver, part in record.drivers.items():
                if not part.needs(operation):
                    self._metrics.skipped(driver, operation)

    async def _prepare(self, pod: str) -> None:
        records = [record for record in self.book.of_pod(pod) if not record.prepared]
        if not records:
            return
        problems = await self._call_drivers(records, PREPARE, self._calls.prepare, self._judge_prepare)
        await self._save()
        _raise(problems)

    async def _call_drivers(
        self, records: Sequence[ClaimRecord], operation: str, call: Call, judge: Judge
    ) -> dict[str, str]:
        """Calls each driver once for all its claims; the problems by claim uid. Answers to prepare are noted."""
        batches: dict[str, list[ClaimRecord]] = {}
        for record in records:
            for driver, part in record.drivers.items():
                if part.needs(operation) and (operation == UNPREPARE or not part.prepared):
                    batches.setdefault(driver, []).append(record)
        answers = await asyncio.gather(*(self._ask(driver, batch, call, judge) for driver, batch in batches.items()))
        problems: dict[str, str] = {}
        for driver, (failed, verdict) in zip(batches, answers, strict=True):
            problems |= failed
            for uid, devices in verdict.accepted.items() if operation == PREPARE else ():
                noted = self.book.get(uid)
                if noted is not None:
                    self.book.put(noted.with_answer(driver, devices))
        return problems

    async def _ask(
        self, driver: str, records: Sequence[ClaimRecord], call: Call, judge: Judge
    ) -> tuple[dict[str, str], PreparedClaims]:
        if not records:
            return {}, PreparedClaims({}, {})
        try:
            verdict = judge(driver, records, await call(driver, records))
        except (CallFailed, DriverMissing) as error:
            return {record.uid: str(error) for record in records}, PreparedClaims({}, {})
        return dict(verdict.problems), verdict

    def _judge_prepare(
        self, driver: str, asked: Sequence[ClaimRecord], answers: Mapping[str, ClaimAnswer]
    ) -> PreparedClaims:
        return judge_prepare(driver, asked, answers, self._vendors.get(driver, ()), self.book.said(driver))

    async def _save(self) -> None:
        try:
            await self._checkpoint.save()
        except CheckpointError as error:
            raise ClaimsNotReady(str(error)) from None

    @contextlib.asynccontextmanager
    async def _turns(self, uids: Iterable[str]) -> AsyncIterator[None]:
        """Nobody else works with these claims meanwhile. All take them in the same order, so nobody waits in a ring."""
        async with contextlib.AsyncExitStack() as stack:
            for uid in sorted(set(uids)):
                lock = self._locks.setdefault(uid, asyncio.Lock())
                await stack.enter_async_context(lock)
            yield

    @contextlib.contextmanager
    def _measured(self, operation: str) -> Iterator[None]:
        started, failed = self._clock.monotonic(), True
        try:
            yield
            failed = False
        finally:
            self._metrics.operated(operation, failed, self._clock.monotonic() - started)


def _allocated(record: ClaimRecord) -> dict[str, tuple[tuple[str, str], ...]]:
    return {driver: part.allocated for driver, part in record.drivers.items()}


def _raise(problems: dict[str, str]) -> None:
    if problems:
        raise ClaimsNotReady("; ".join(dict.fromkeys(problems.values())))

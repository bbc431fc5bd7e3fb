"""One of several replicas works at a time: whoever holds a Lease, for as long as it is renewed.

    waiting ──lease free, or not renewed for its duration──▶ leading ──callback returns──▶ released
       ▲                                                       │ renewed every `retry` seconds
       └──somebody else was faster                             └──not renewed for `renew` seconds──▶ LeadershipLost

How long a lease of somebody else has not changed is measured here, on the clock that never jumps, so clocks need not
agree. The leader stops (`renew`) before anybody else may start (`lease_seconds`). One whose process stood still for
longer looks at the lease first: if it is its own still, nobody else has led, and it goes on. Who cannot keep up with a
short lease takes one twice as long the next time, if it may (`longest`): who leads again and again gets nothing done.
Others wait for as long as the lease says, from when they heard of it last: those who wait follow the lease by a watch,
and look at it every `retry` seconds as well, where they may not watch, or the watch has broken.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime

from msgspec.structs import replace

from dray.api.generated.coordination import Lease, LeaseSpec
from dray.api.kinds import LEASES
from dray.api.meta import ObjectMeta
from dray.api.status import ApiError
from dray.api.times import MicroTime
from dray.api.well_known import SYSTEM_NAMESPACE
from dray.client.calls import find
from dray.client.interface import Client, WatchExpired
from dray.process.clock import Clock

NAMESPACE = SYSTEM_NAMESPACE
USUAL_SECONDS = 15
"""Of a lease, as Kubernetes' components have them."""
SHORT_SECONDS = 2
"""On dray's server, which takes that many renewals: others take over within about three seconds. Where that is too
short, it grows up to the usual. It is a whole number: a Lease has no others."""
SHORT_RENEW_SECONDS = 1.7


class LeadershipLost(Exception):
    """The lease could not be renewed in time, or somebody else has it. The work has been stopped."""


def holder(lease: Lease | None, now: float) -> str:
    """Who holds a lease of others, by what it says of itself; empty if nobody does, or has not renewed it in time."""
    spec = lease.spec if lease is not None else LeaseSpec()
    if not spec.holder_identity or spec.renew_time is None:
        return ""
    lasts_until = spec.renew_time.datetime().timestamp() + (spec.lease_duration_seconds or 0)
    return spec.holder_identity if lasts_until > now else ""


class LeaderElector:
    """One candidate. `identity` must be its own, of all that compete for the lease `name`."""

    def __init__(
        self,
        client: Client,
        name: str,
        identity: str,
        clock: Clock,
        *,
        lease_seconds: float = USUAL_SECONDS,
        longest: float = 0,
        renew: float | None = None,
        retry: float | None = None,
        namespace: str = NAMESPACE,
        on_wait: Callable[[str], None] | None = None,
    ) -> None:
        """`on_wait` hears who holds the lease, or what is in the way, whenever that is news while we wait for it.

        Without `renew` and `retry` they are what Kubernetes has, in relation to the lease: 10 and 2 of 15 seconds.
        Raises ValueError unless lease_seconds > renew > retry > 0.
        """
        renew = lease_seconds * 2 / 3 if renew is None else renew
        retry = lease_seconds * 2 / 15 if retry is None else retry
        if not lease_seconds > renew > retry > 0:
            raise ValueError(f"leader election needs lease > renew > retry > 0, not {lease_seconds}, {renew}, {retry}")
        self.name = name
        self.identity = identity
        self.holder = ""
        self._client = client
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._longest = longest
        self._renew = renew
        self._retry = retry
        self._namespace = namespace
        self._on_wait = on_wait
        self._obstacle = ""
        self._seen: Lease | None = None
        self._seen_at = 0.0
        self._freed = asyncio.Event()

    @property
    def is_leader(self) -> bool:
        """Whether this candidate held the lease when it last looked."""
        return self.holder == self.identity

    async def run(self, callback: Callable[[], Coroutine[object, object, None]]) -> None:
        """Waits for leadership, runs `callback`, and returns when that does, giving the lease free.

        Raises LeadershipLost after the callback was cancelled. When `run` itself is cancelled, the callback is, too,
        and the lease is free afterwards.
        """
        loop = asyncio.get_running_loop()
        following = loop.create_task(self._follow())
        try:
            await self._wait()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        work, keeping = loop.create_task(callback()), loop.create_task(self._keep())
        try:
            await asyncio.wait({work, keeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, keeping):
                task.cancel()
            await asyncio.gather(work, keeping, return_exceptions=True)
            await self._within(self._renew, self._release())
        for task in (work, keeping):
            if not task.cancelled():
                task.result()

    async def _wait(self) -> None:
        """Until the lease is ours."""
        told = ""
        while not await self._within(self._renew, self._attempt()):
            reason = f"held by {self.holder}" if self.holder else self._obstacle
            if self._on_wait is not None and reason != told:
                told = reason
                self._on_wait(reason)
            await self._within(self._until_next_try(), self._freed.wait())
            self._freed.clear()

    async def _follow(self) -> None:
        """Hears of renewals when they are made: seen at the next look only, each would count from then.

        What a watch tells is late, never early, and nobody takes a lease by it: that is for a look to decide.
        """
        while True:
            await self._clock.sleep(self._retry)
            if self._seen is None:
                continue
            revision, fields = self._seen.metadata.resource_version, f"metadata.name={self.name}"
            try:
                async for event in self._client.watch(LEASES, self._namespace, revision=revision, fields=fields):
                    if isinstance(event.object, Lease) and event.type != "BOOKMARK":
                        self._hear(event.object, is_gone=event.type == "DELETED")
            except (ApiError, OSError, TimeoutError, WatchExpired) as error:
                if isinstance(error, ApiError) and error.code in (401, 403, 404, 405):
                    return

    def _hear(self, lease: Lease, *, is_gone: bool) -> None:
        if self._seen is None or self._seen.spec != lease.spec:
            self._note(lease)
        if is_gone or not lease.spec.holder_identity:
            self._freed.set()

    async def _keep(self) -> None:
        """Renews until that fails for too long. Raises LeadershipLost."""
        now = self._clock.monotonic
        deadline = now() + self._renew
        while True:
            expected = now() + self._retry
            await self._clock.sleep(self._retry)
            started = now()
            left = max(deadline - started, 0.0)
            is_ours = await self._within(left, self._attempt())
            if not is_ours and now() > expected + left + self._retry:
                # This process stood still, and has hardly tried. If the lease is ours still, nobody else has led.
                started = now()
                is_ours = await self._within(self._retry, self._attempt())
            if is_ours:
                deadline = started + self._renew
            elif self.holder not in ("", self.identity):
                raise LeadershipLost(f"lease {self.name} is held by {self.holder} now")
            elif now() >= deadline:
                self.holder = ""
                lost = LeadershipLost(f"lease {self.name} could not be renewed for {self._renew:g} seconds")
                self._take_longer()
                raise lost

    def _take_longer(self) -> None:
        """From the next time on. How often it is tried stays as it is."""
        longer = min(2 * self._lease_seconds, self._longest)
        if longer > self._lease_seconds:
            self._renew *= longer / self._lease_seconds
            self._lease_seconds = longer

    async def _attempt(self) -> bool:
        """Takes or renews the lease; whether it is ours now."""
        try:
            lease = await self._read()
            if lease is None:
                self._note(await self._client.create(self._new()))
            elif not self._is_free(lease):
                self.holder = lease.spec.holder_identity or ""
                return False
            else:
                self._note(await self._client.update(replace(lease, spec=self._taken(lease.spec))))
        except (ApiError, OSError, TimeoutError) as error:
            self._obstacle = str(error) or type(error).__name__
            return False
        self.holder = self.identity
        return True

    async def _read(self) -> Lease | None:
        lease = await find(self._client, LEASES, self._namespace, self.name, Lease)
        if lease is not None and (self._seen is None or self._seen.spec != lease.spec):
            self._note(lease)
        return lease

    def _note(self, lease: Lease) -> None:
        self._seen = lease
        self._seen_at = self._clock.monotonic()

    def _is_free(self, lease: Lease) -> bool:
        spec = lease.spec
        if not spec.holder_identity or spec.holder_identity == self.identity:
            return True
        return self._clock.monotonic() >= self._seen_at + (spec.lease_duration_seconds or 0)

    def _until_next_try(self) -> float:
        """Not later than the lease of somebody else is free."""
        if self._seen is None or not self.holder:
            return self._retry
        left = self._seen_at + (self._seen.spec.lease_duration_seconds or 0) - self._clock.monotonic()
        return min(self._retry, left) if left > 0 else self._retry

    def _new(self) -> Lease:
        metadata = ObjectMeta(name=self.name, namespace=self._namespace)
        return Lease(kind="Lease", api_version=LEASES.api_version, metadata=metadata, spec=self._taken(LeaseSpec()))

    def _taken(self, spec: LeaseSpec) -> LeaseSpec:
        now = MicroTime.of(datetime.fromtimestamp(self._clock.now(), UTC))
        renewed = replace(
            spec, holder_identity=self.identity, renew_time=now, lease_duration_seconds=max(1, int(self._lease_seconds))
        )
        if spec.holder_identity == self.identity:
            return renewed
        taken_over = spec.holder_identity is not None
        return replace(renewed, acquire_time=now, lease_transitions=(spec.lease_transitions or 0) + taken_over)

    async def _release(self) -> bool:
        """Lets the next candidate start at once. Best effort: the lease expires anyway."""
        if not self.is_leader or self._seen is None:
            return False
        self.holder = ""
        now = MicroTime.of(datetime.fromtimestamp(self._clock.now(), UTC))
        free = replace(self._seen.spec, holder_identity="", lease_duration_seconds=1, renew_time=now, acquire_time=now)
        with contextlib.suppress(ApiError, OSError, TimeoutError):
            await self._client.update(replace(self._seen, spec=free))
        return True

    async def _within(self, seconds: float, work: Coroutine[object, object, bool]) -> bool:
        """What `work` comes to; False if it takes longer than that."""
        loop = asyncio.get_running_loop()
        task, timer = loop.create_task(work), loop.create_task(_timer(self._clock, seconds))
        try:
            await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
            return task.done() and task.result()
        finally:
            task.cancel()
            timer.cancel()
            await asyncio.gather(task, timer, return_exceptions=True)


async def _timer(clock: Clock, seconds: float) -> None:
    await clock.sleep(max(seconds, 0))

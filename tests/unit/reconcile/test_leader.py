"""Leader election over a real server in memory, under virtual time: never two leaders, never none for long."""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from dray.all_in_one import leadership
from dray.api.generated.coordination import Lease, LeaseSpec
from dray.api.kinds import LEASES
from dray.api.meta import Object, ObjectMeta
from dray.api.status import ApiError
from dray.api.times import MicroTime
from dray.client import Client, WatchEvent
from dray.reconcile import Clock, VirtualClock
from dray.reconcile.leader import SHORT_SECONDS, LeaderElector, LeadershipLost, holder
from local_server import LocalServer, local_server

NAME = "kube-scheduler"
RENEWED = MicroTime.of(datetime.fromtimestamp(1000, UTC))


class Unreliable:
    """A client whose requests fail or hang while it is told so."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.trouble: str = ""
        self.cannot_watch = False
        self.breaks_watch = False
        self.heard = 0

    async def watch(self, *arguments: Any, **named: Any) -> AsyncIterator[WatchEvent]:
        if self.cannot_watch:
            raise ApiError(403, "Forbidden", "no watches")
        async for event in self._client.watch(*arguments, **named):
            if self.breaks_watch:
                self.breaks_watch = False
                raise ConnectionError("reset")
            self.heard += 1
            yield event

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(*arguments: Any, **named: Any) -> Any:
            if self.trouble == "hangs":
                await asyncio.Event().wait()
            if self.trouble == "takes turns":
                for _ in range(20):
                    await asyncio.sleep(0)
            if self.trouble == "fails":
                raise ConnectionError("no route")
            if self.trouble == "refuses":
                raise ApiError(503, "ServiceUnavailable", "not now")
            return await getattr(self._client, name)(*arguments, **named)

        return call


class Candidate:
    """A replica: works forever when it leads, and says what became of it."""

    def __init__(self, server: LocalServer, identity: str, clock: Clock | None = None) -> None:
        self.client = Unreliable(server.component("kube-scheduler"))
        self.waits: list[str] = []
        client = cast(Client, self.client)
        self.elector = LeaderElector(client, NAME, identity, clock or server.clock, on_wait=self.waits.append)
        self.works = False
        self.stop = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(self.elector.run(self._work))

    async def _work(self) -> None:
        self.works = True
        try:
            await self.stop.wait()
        finally:
            self.works = False

    async def end(self) -> BaseException | None:
        self.task.cancel()
        (outcome,) = await asyncio.gather(self.task, return_exceptions=True)
        return outcome


async def stored(server: LocalServer) -> Lease:
    lease: Object = await server.client().get(LEASES, "kube-system", NAME)
    assert isinstance(lease, Lease)
    return lease


@pytest.mark.req("implied-7")
async def test_the_first_leads_and_the_second_follows_when_it_stops() -> None:
    async with local_server() as server:
        first = Candidate(server, "a")
        await server.clock.advance(1)
        second = Candidate(server, "b")
        await server.clock.advance(60)
        assert (first.works, second.works) == (True, False)
        assert second.elector.holder == "a"
        assert (first.waits, second.waits) == ([], ["held by a"])  # said once
        first.stop.set()
        await server.clock.advance(3)
        assert (first.works, second.works) == (False, True)
        assert first.task.done()
        spec = (await stored(server)).spec
        assert (spec.holder_identity, spec.lease_transitions, spec.lease_duration_seconds) == ("b", 1, 15)
        await second.end()
        assert (await stored(server)).spec.holder_identity == ""


@pytest.mark.req("implied-7")
@pytest.mark.parametrize("trouble", ["fails", "refuses", "hangs"])
async def test_a_leader_that_cannot_renew_stops_before_anybody_else_starts(trouble: str) -> None:
    async with local_server() as server:
        first, second = Candidate(server, "a"), Candidate(server, "b")
        await server.clock.advance(30)
        first.client.trouble = trouble
        stopped = started = 0
        for second_passed in range(1, 31):
            await server.clock.advance(1)
            assert not (first.works and second.works)
            stopped = stopped or (0 if first.works else second_passed)
            started = started or (second_passed if second.works else 0)
        assert 8 <= stopped <= 12
        assert 13 <= started <= 19
        with pytest.raises(LeadershipLost):
            await first.task
        await second.end()


async def test_short_trouble_is_survived() -> None:
    async with local_server() as server:
        first = Candidate(server, "a")
        for _ in range(5):
            first.client.trouble = ""
            await server.clock.advance(5)
            first.client.trouble = "fails"
            await server.clock.advance(7)
        assert first.works
        await first.end()


class Stopping:
    """A clock of a process that stands still, now and then, while it sleeps."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._missed = 0.0
        self.stops = 0.0
        self.now = clock.now

    def monotonic(self) -> float:
        return self._clock.monotonic() + self._missed

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._missed += self.stops
        self.stops = 0.0


@pytest.mark.parametrize("is_taken", [False, True])
async def test_a_leader_that_stood_still_goes_on_unless_somebody_else_has_led(is_taken: bool) -> None:
    async with local_server() as server:
        clock = Stopping(server.clock)
        first = Candidate(server, "a", clock)
        first.client.trouble = "takes turns"
        await server.clock.advance(5)
        clock.stops = 60.0
        if is_taken:
            await server.client().patch(LEASES, "kube-system", NAME, {"spec": {"holderIdentity": "thief"}})
        await server.clock.advance(5)
        assert first.works is not is_taken
        if is_taken:
            with pytest.raises(LeadershipLost):
                await first.task
        else:
            await first.end()


@pytest.mark.req("implied-7")
async def test_a_leader_that_sees_another_holder_stops_at_once() -> None:
    async with local_server() as server:
        first = Candidate(server, "a")
        await server.clock.advance(5)
        await server.client().patch(LEASES, "kube-system", NAME, {"spec": {"holderIdentity": "thief"}})
        await server.clock.advance(2)
        with pytest.raises(LeadershipLost, match="held by thief"):
            await first.task
        assert (await stored(server)).spec.holder_identity == "thief"


async def test_clocks_need_not_agree() -> None:
    """The holder's wall clock is an hour behind: its lease still counts, as long as it changes."""

    async with local_server() as server:
        first = Candidate(server, "a")
        await server.clock.advance(5)
        server.clock.jump(-3600)
        second = Candidate(server, "b")
        await server.clock.advance(20)
        server.clock.jump(7200)
        await server.clock.advance(20)
        assert (first.works, second.works) == (True, False)
        await first.end()
        await second.end()


async def test_what_the_work_raises_is_raised_and_the_lease_is_free() -> None:
    async with local_server() as server:

        async def fail() -> None:
            raise RuntimeError("broken")

        elector = LeaderElector(server.component(NAME), NAME, "a", server.clock)
        with pytest.raises(RuntimeError, match="broken"):
            await elector.run(fail)
        assert (await stored(server)).spec.holder_identity == ""
        assert not elector.is_leader


def test_periods_must_make_sense() -> None:
    with pytest.raises(ValueError, match="lease > renew > retry"):
        LeaderElector(cast(Client, None), NAME, "a", VirtualClock(), lease_seconds=5, renew=10)


class Succession:
    """Two clusters in one process each; the second begins so many seconds after the first."""

    def __init__(self, server: LocalServer, *, cannot_watch: bool = False) -> None:
        self.server = server
        self.cannot_watch = cannot_watch
        self.works: list[int] = []
        self.clients: list[Unreliable] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def begin(self, after: float) -> None:
        for number in range(2):
            client = Unreliable(self.server.client())
            client.cannot_watch = self.cannot_watch
            elector = leadership.candidate(cast(Client, client), self.server.clock)
            self.clients.append(client)
            self.tasks.append(asyncio.ensure_future(elector.run(functools.partial(self._work, number))))
            await self.server.clock.advance(5 + after)
        assert self.works == [0]

    async def _work(self, number: int) -> None:
        self.works.append(number)
        await asyncio.Event().wait()

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.mark.parametrize("after", [0.0, 0.1, 0.25, 0.29])
@pytest.mark.parametrize(("cannot_watch", "late"), [(False, 0.0), (True, leadership.RETRY_SECONDS)])
async def test_the_work_of_who_was_killed_is_taken_over_when_its_lease_ends(
    after: float, cannot_watch: bool, late: float
) -> None:
    """Who may not watch the lease has seen its last renewal at its next look only."""
    async with local_server() as server:
        both = Succession(server, cannot_watch=cannot_watch)
        await both.begin(after)
        both.clients[0].trouble = "hangs"
        assert both.clients[1].heard > 0 or cannot_watch
        await server.clock.advance(SHORT_SECONDS - leadership.RETRY_SECONDS - 0.01)
        assert both.works == [0]
        await server.clock.advance(leadership.RETRY_SECONDS + late + 0.02)
        assert both.works == [0, 1]
        await both.end()


async def test_a_lease_that_is_given_back_is_taken_at_once() -> None:
    async with local_server() as server:
        both = Succession(server)
        await both.begin(0.1)
        both.tasks[0].cancel()
        await server.clock.advance(0.001)
        assert both.works == [0, 1]
        await both.end()


async def test_a_watch_that_breaks_is_begun_again() -> None:
    async with local_server() as server:
        both = Succession(server)
        await both.begin(0.0)
        client = both.clients[1]
        client.breaks_watch = True
        await server.clock.advance(1)
        assert not client.breaks_watch
        before = client.heard
        await server.clock.advance(5)
        assert client.heard - before > 10
        await both.end()


@pytest.mark.parametrize(
    ("spec", "held_by"),
    [
        (LeaseSpec(holder_identity="a", renew_time=RENEWED, lease_duration_seconds=15), "a"),
        (LeaseSpec(holder_identity="a", renew_time=RENEWED, lease_duration_seconds=5), ""),
        (LeaseSpec(holder_identity="", renew_time=RENEWED, lease_duration_seconds=15), ""),
        (LeaseSpec(holder_identity="a"), ""),
    ],
)
def test_a_lease_that_is_not_renewed_is_held_by_nobody(spec: LeaseSpec, held_by: str) -> None:
    lease = Lease(kind="Lease", api_version=LEASES.api_version, metadata=ObjectMeta(name=NAME), spec=spec)
    assert holder(lease, 1010.0) == held_by
    assert holder(None, 1010.0) == ""


@pytest.mark.parametrize(("longest", "seconds"), [(15, [2, 4, 8, 15, 15]), (0, [2, 2, 2, 2, 2])])
async def test_who_cannot_keep_up_with_a_short_lease_takes_a_longer_one(longest: float, seconds: list[int]) -> None:
    async with local_server() as server:
        client = Unreliable(server.component("kube-scheduler"))
        elector = LeaderElector(
            cast(Client, client), NAME, "one", server.clock, lease_seconds=2, renew=1.7, longest=longest
        )
        seen = []
        for _ in seconds:
            client.trouble = ""
            run = asyncio.get_running_loop().create_task(elector.run(asyncio.Event().wait))  # type: ignore[arg-type]
            await server.clock.advance(1)
            seen.append((await stored(server)).spec.lease_duration_seconds)
            client.trouble = "fails"
            await server.clock.advance(0.8 * (seen[-1] or 0))
            assert not run.done()
            await server.clock.advance(0.2 * (seen[-1] or 0) + 1)
            (outcome,) = await asyncio.gather(run, return_exceptions=True)
            assert isinstance(outcome, LeadershipLost)
        assert seen == seconds

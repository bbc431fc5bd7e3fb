"""A whole control plane that has a bad day: people act, things break, and after every write nothing may be wrong.

    seed ─▶ who runs where, what people do, what fails when ─▶ storm ─▶ calm ─▶ everything is as it should be

Everything is drawn from the seed and runs on virtual time: the same seed is the same day, write for write.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from dray.process import virtual_loop
from dray.process.virtual_loop import LoopClock
from fault_simulation.api_server import ApiServer
from fault_simulation.company import Company
from fault_simulation.coverage import Coverage
from fault_simulation.custody import Custody
from fault_simulation.device_evictions import DeviceEvictions
from fault_simulation.device_safety import DeviceSafety
from fault_simulation.gang_safety import GangSafety
from fault_simulation.ledger import Ledger
from fault_simulation.network import CALM, Connection, Faults, Network
from fault_simulation.node_rates import NodeRates
from fault_simulation.outcome import find_leftovers
from fault_simulation.people import People
from fault_simulation.processes import (
    CONTROLLERS,
    DEVICE_EVICTION,
    KUBELETS,
    NODE_EVICTION,
    OneProcess,
    Process,
    Program,
    control,
    run_nodes,
    schedule,
)
from fault_simulation.reservation_safety import ReservationSafety
from fault_simulation.server_group import ServerGroup

CALM_SECONDS = 900.0
"""Longer than the longest patience in the system: tolerations, backoffs and forgotten expectations end within 300 s."""

PUNCTUAL_SECONDS = 2.0
SKEW = 30.0


class Report(msgspec.Struct, frozen=True):
    """What became of a day."""

    seed: int
    problems: tuple[str, ...]
    writes: int
    trace: str
    """The same for the same history."""
    met: dict[tuple[str, str], int] = {}
    """How often each fault happened in each state (`coverage`)."""


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """How bad it is."""

    steps: int = 50
    nodes: int = 3
    schedulers: int = 2
    together: bool = False
    """Whether the server knows the one scheduler and the claim controller, as in `dray up`."""
    servers: int = 1
    """API servers: one with its own storage, or several on one etcd."""
    faults: Faults = Faults(
        refuse=0.03, lose=0.03, delay=0.02, conflict=0.02, slow=0.1, expire=0.2, drop=0.02, stall=0.05
    )
    kills: float = 0.15
    """How often a process dies in a step."""
    restarts: float = 0.04
    """How often the API server does."""
    jumps: float = 0.05
    """How often the wall clock is set."""
    jump: float = 1.0
    """How many times five minutes, or five seconds, it is set by."""
    skew: float = 0.0
    """How many seconds the clocks of several servers are off, at most."""
    elections: float = 0.0
    """How often etcd chooses another leader."""
    crowd: int = 0
    """How many pods share one device that breaks in the middle of the day."""
    haste: int = 3
    """How much people do at once, at most."""
    habits: dict[str, int] = {}
    """What people do more or less often than usual."""
    punctual: bool = False
    """Whether evictions must be on time all day long, not only when everything is calm again."""


BAD_DAY = Day()
ONE_SCHEDULER = Day(schedulers=1)
ALL_IN_ONE = Day(schedulers=1, together=True)
SEVERAL_SERVERS = Day(servers=3, elections=0.1, restarts=0.1, kills=0.05, steps=30)
CROWDED = Day(crowd=30, steps=30)
SCARCE = Day(nodes=2, habits={"create_pod": 20, "create_gang": 6, "delete_pod": 3})
"""More is asked for than there is, so that the more important make others go."""
GOOD_DAY = Day(faults=CALM, kills=0, restarts=0, jumps=0, crowd=30, steps=30, punctual=True)


def day_of(seed: int) -> Day:
    """Most days are bad, each in one of several ways."""
    one = ONE_SCHEDULER if seed // 5 % 2 else ALL_IN_ONE
    return (BAD_DAY, one, SCARCE, CROWDED, GOOD_DAY)[seed % 5]


def several_servers(seed: int) -> Day:
    """Two to four servers on one etcd. On some days their clocks differ."""
    return replace(
        SEVERAL_SERVERS,
        servers=2 + seed % 3,
        schedulers=1 + seed % 2,
        together=seed % 4 == 0,
        skew=SKEW if seed % 5 == 0 else 0.0,
    )


class Simulation:
    """One day. Make it in a running VirtualLoop."""

    def __init__(self, seed: int, day: Day) -> None:
        self._random = random.Random(seed)
        self._day = day
        self._clock = LoopClock()
        self.ledger = Ledger(self._clock)
        DeviceSafety(self.ledger, is_single=day.schedulers == 1)
        GangSafety(self.ledger)
        company = Company(self.ledger)
        ReservationSafety(self.ledger)
        self.coverage = Coverage(self.ledger)
        self._process = OneProcess() if day.together else None
        self._server: ApiServer | ServerGroup
        started = self._process.wire if self._process is not None else None
        if day.servers == 1:
            self._server = ApiServer(self._clock, self.ledger.witness, seed, started)
        else:
            self._server = ServerGroup(
                self._clock, self.ledger.witness, seed, day.servers, self.coverage.met, skew=day.skew, started=started
            )
        self.network = Network(self._server, random.Random(seed + 1))
        self.network.on_fault.append(self.coverage.met)
        quiet = Network(self._server, random.Random(seed + 2))
        quiet.on_arrival = self.network.on_arrival
        client = Connection(quiet, "admin", "people", lambda: True)
        self._people = People(client, self.ledger, self._random, day.nodes, day.habits)
        self._places: dict[str, str] = {}
        """In which process each controller is."""
        self._processes = [
            Process(name, program, self.network, self.ledger) for name, program in self._plan_processes(seed)
        ]
        self._evictions = DeviceEvictions(self.ledger, self._clock, self._starts_of(DEVICE_EVICTION))
        node_rates = NodeRates(self.ledger, self._clock, self._starts_of(NODE_EVICTION))
        custody = Custody(self.ledger)
        self.network.on_sent += [self._evictions.on_sent, node_rates.on_sent, company.on_sent]
        self.network.on_arrival += [self._evictions.on_arrival, custody.on_arrival]

    def _starts_of(self, controller: str) -> list[float]:
        """When a controller was started, which grows."""
        return next(process.starts for process in self._processes if process.name == self._places[controller])

    def _plan_processes(self, seed: int) -> Iterator[tuple[str, Program]]:
        for number in range(self._day.schedulers):
            yield f"scheduler-{number}", schedule(self._clock, self._process)
        names = list(CONTROLLERS)
        self._random.shuffle(names)
        groups = self._random.randint(1, 3)
        for number in range(groups):
            wanted = names[number::groups]
            self._places |= dict.fromkeys(wanted, f"controllers-{number}")
            yield f"controllers-{number}", control(self._clock, wanted, random.Random(seed + 10 + number))
        yield KUBELETS, run_nodes(self._clock)

    async def run(self) -> None:
        """Lives through the day; stops when something is wrong."""
        await self._server.start()
        for process in self._processes:
            process.start()
        await self._people.set_up()
        if self._day.crowd:
            await self._people.gather(self._day.crowd)
        for step in range(self._day.steps):
            if self._day.crowd and step == self._day.steps // 2:
                self._server.is_stormy = False
                await self._people.strike()
            await self._step()
            if self._day.punctual:
                self._blame_all(self._evictions.find_overdue(PUNCTUAL_SECONDS))
            if self.ledger.problems:
                return
        await self._calm_down()
        await asyncio.sleep(CALM_SECONDS)
        await self._server.settle()
        self._blame_all(self._server.differences())
        self._blame_all(find_leftovers(self.ledger, self._evictions))

    def _blame_all(self, problems: Iterable[str]) -> None:
        for problem in problems:
            self.ledger.blame(problem)

    async def stop(self) -> None:
        """Ends everything."""
        for process in self._processes:
            await process.kill()
        await self._server.close()

    async def _step(self) -> None:
        chance, day = self._random.random, self._day
        self.network.faults = day.faults if chance() < 0.7 else CALM
        self._server.is_stormy = self.network.faults is not CALM
        for _ in range(self._random.randint(1, day.haste)):
            await self._people.act()
        if chance() < day.kills:
            await self._kill_or_start()
        if chance() < day.restarts:
            await self._restart_server()
        if day.elections and chance() < day.elections:
            self.coverage.met("leader lost")
            self._server.lose_leader()
        if chance() < day.jumps:
            self.coverage.met("clock set")
            self._clock.jump(day.jump * self._random.choice([-300.0, -5.0, 5.0, 300.0]))
        await asyncio.sleep(self._random.choice([0.0, 0.01, 0.2, 1.0, 5.0, 20.0]))

    async def _kill_or_start(self) -> None:
        process = self._random.choice(self._processes)
        self.coverage.met("process killed" if process.is_running else "process started")
        if process.is_running:
            await process.kill()
            if self._random.random() < 0.5:
                process.start()
        else:
            process.start()

    async def _restart_server(self) -> None:
        crashes = self._random.random() < 0.5
        self.coverage.met("server crashed" if crashes else "server stopped")
        await self._server.stop(crash=crashes)
        await asyncio.sleep(self._random.choice([0.0, 1.0, 10.0]))
        await self._server.start()

    async def _calm_down(self) -> None:
        """Nothing fails any more, and everybody is at work."""
        self.network.faults = CALM
        self._server.is_stormy = False
        for process in self._processes:
            if not process.is_running:
                process.start()
        await self._people.restore()


class _Alarm(logging.Handler):
    """Errors in the log are problems."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(logging.ERROR)
        self._ledger = ledger

    def emit(self, record: logging.LogRecord) -> None:
        why = record.exc_info[1] if record.exc_info else ""
        self._ledger.blame(f"logged: {record.getMessage()} {why!r}")


@contextmanager
def _alarmed(ledger: Ledger) -> Iterator[None]:
    """Warnings are what a bad day is made of: they are not even written."""
    handler = _Alarm(ledger)
    log = logging.getLogger("dray")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)


def simulate(seed: int, day: Day | None = None) -> Report:
    """Lives through the day that a seed stands for, or through another one."""

    async def main() -> Report:
        simulation = Simulation(seed, day or day_of(seed))
        ledger = simulation.ledger
        own = asyncio.current_task()
        assert own is not None
        ledger.end_day = own.cancel
        with _alarmed(ledger):
            try:
                await simulation.run()
            except asyncio.CancelledError:
                own.uncancel()
            finally:
                problems, writes, trace = tuple(ledger.problems), ledger.writes, ledger.trace
                await simulation.stop()
        return Report(seed, problems, writes, trace, dict(simulation.coverage.counts))

    return virtual_loop.run(main())

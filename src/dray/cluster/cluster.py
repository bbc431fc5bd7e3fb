"""The cluster: started in the order in which its parts need each other, stopped the other way round."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from dray.cluster.overview import Overview, Totals
from dray.cluster.supervision import Supervisor
from dray.controllers import Informers, Manager
from dray.reconcile import RealClock
from dray.reconcile.clock import as_time
from dray.scheduler.scheduler import Scheduler
from dray.server.instance import Instance, Settings
from dray.server.security.identity import MASTERS, authenticated
from dray.simulation import Profile, Registration, Simulator, register

SCHEDULER = "kube-scheduler"
CONTROLLERS = "kube-controller-manager"
SIMULATION = "system:dray:simulation"
NODE_LIFECYCLE = "node-lifecycle-controller"
DEVICE_EVICTION = "device-taint-eviction-controller"
READY_SECONDS = 30.0
LOOK_SECONDS = 0.005


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. With a `profile`, `nodes` machines of it are simulated besides those that are there already."""

    server: Settings
    controllers: tuple[str, ...] = ("*",)
    nodes: int = 0
    profile: Profile | None = None


def _wanted(plan: Plan) -> tuple[str, ...]:
    """The controllers to run: with device taints turned off, nobody is evicted for them (5055-114, 5055-115)."""
    if "DRADeviceTaints" in plan.server.disabled_gates:
        return (*plan.controllers, f"-{DEVICE_EVICTION}")
    return plan.controllers


class Cluster:
    """A control plane with everything. `start`, then `totals` as often as one likes, then `stop`."""

    def __init__(self, plan: Plan) -> None:
        """Opens the state directory. Raises StateDirectoryError, StoreError or SelectionError."""
        self.plan = plan
        self.instance = Instance(plan.server)
        self.registration = Registration((), 0)
        clock = self._clock = RealClock()
        own = self.instance.client_of(authenticated(SIMULATION, (MASTERS,)))
        self._client = own
        self._informers = Informers(own, clock)
        self.manager = Manager(
            self.instance.local_client(CONTROLLERS),
            clock,
            wanted=_wanted(plan),
            client_for=self.instance.local_client,
            informers=self._informers,
        )
        self.overview = Overview(self._informers)
        self.simulator = Simulator(own, clock, self._informers, untaint=NODE_LIFECYCLE not in self.manager.controllers)
        self.scheduler = self._new_scheduler()
        self._supervisor = Supervisor(clock)

    async def start_server(self) -> None:
        """The API server listens. Raises OSError, StateDirectoryError or StoreError; `stop` must follow in any case."""
        await self.instance.start()

    async def start_components(self) -> None:
        """Everything else runs and has seen what there is; simulated nodes are ready.

        Raises RegistrationError or ApiError if the nodes of the profile cannot be.
        """
        run = self._supervisor.start
        run("informers", self._informers.run)
        run("scheduler", self._run_scheduler)
        run("controllers", self.manager.run)
        run("simulated nodes", self.simulator.run)
        plan = self.plan
        if plan.profile is not None:
            self.registration = await register(self._client, plan.profile, plan.nodes, as_time(self._clock.now()))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                await self.manager.ready()
                while not (self.simulator.knows(self.registration.nodes) and self.simulator.idle):
                    await asyncio.sleep(LOOK_SECONDS)

    def totals(self) -> Totals:
        """The cluster in numbers."""
        return self.overview.totals(self.scheduler.cluster.tracker.pools, self.manager.controllers.values())

    def problems(self) -> dict[str, str]:
        """By component, why it does not work now; empty if all do."""
        unwell = {name: problem for name, problem in self.manager.health().items() if problem}
        return {**self._supervisor.problems, **unwell}

    async def stop(self) -> None:
        """Stops everything; what was acknowledged is on disk. Idempotent."""
        await self._supervisor.stop()
        await self.instance.stop()

    async def _run_scheduler(self) -> None:
        """A scheduler that failed is replaced, not resumed: what it knew may be wrong."""
        if self.scheduler.decided:
            self.scheduler = self._new_scheduler()
        await self.scheduler.run()

    def _new_scheduler(self) -> Scheduler:
        gates = self.plan.server.disabled_gates
        return Scheduler(self.instance.local_client(SCHEDULER), self._clock, disabled_gates=gates)

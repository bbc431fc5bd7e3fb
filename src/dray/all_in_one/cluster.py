"""The cluster: started in the order in which its parts need each other, stopped the other way round."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
from prometheus_client import CollectorRegistry

from dray.all_in_one import leadership
from dray.all_in_one.dashboards import admin_link, mount_dashboard
from dray.api.kinds import SLICES
from dray.api.nodes import is_known_unready, is_ready
from dray.api.resource import ResourceSlice
from dray.api.well_known import DEFAULT_SCHEDULER
from dray.controllers import ControllerSettings, Manager
from dray.controllers.catalog import CATALOG
from dray.controllers.node_lifecycle import NodeLifecycleController
from dray.controllers.resource_claim import ResourceClaimController
from dray.hub_agent import Access, Agent, Membership, Observer
from dray.live.counted_devices import CountedDevices
from dray.live.device_metrics import DeviceMetrics
from dray.live.overview import Overview, Totals
from dray.process.clock import Clock, as_time
from dray.process.supervision import Supervisor
from dray.reconcile import Informers, RealClock
from dray.scheduler.metrics import SchedulerMetrics
from dray.scheduler.scheduler import FILTER_SECONDS, Scheduler
from dray.server.discovery import pages
from dray.server.instance import Instance, ServerSettings
from dray.server.security.identity import MASTERS, authenticated
from dray.simulation import Profile, Registration, Simulator, register
from dray.simulation.provisioner import Provisioner

SCHEDULER = "kube-scheduler"
CONTROLLERS = "kube-controller-manager"
SIMULATION = "system:dray:simulation"
NODE_LIFECYCLE = "node-lifecycle-controller"
READY_SECONDS = 30.0
LOOK_SECONDS = 0.005


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. With a `profile`, `nodes` machines of it are simulated besides those that are there already."""

    server: ServerSettings
    controllers: tuple[str, ...] = ("*",)
    settings: ControllerSettings = ControllerSettings()
    filter_seconds: float = FILTER_SECONDS
    """How long the scheduler may look for devices on one node."""
    nodes: int = 0
    profile: Profile | None = None
    membership: Membership | None = None
    """The hub to join, if any."""


def _settings(plan: ClusterSettings, instance: Instance) -> ControllerSettings:
    """Of the controllers, with the gates of the server, one switch for all (5055-114, 5055-115), and its authority."""
    return msgspec.structs.replace(
        plan.settings,
        disabled_gates=plan.server.disabled_gates,
        root_certificate=instance.credentials.authority.pair.certificate,
    )


class Cluster:
    """A control plane with everything. `start`, then `totals` as often as one likes, then `stop`."""

    def __init__(self, plan: ClusterSettings, clock: Clock | None = None) -> None:
        """Opens the state directory. Raises StateDirectoryError, StoreError, SelectionError or SettingsError."""
        self.plan = plan
        clock = self._clock = clock or RealClock()
        self.instance = Instance(plan.server, clock=clock)
        self.dashboard = mount_dashboard(self.instance, clock)
        self.registration = Registration()
        self.has_started = False
        """Whether all that runs here had seen what there is, and simulated nodes were ready, when `start` ended."""
        own = self.instance.client_of(authenticated(SIMULATION, (MASTERS,)))
        self._client = own
        self._informers = Informers(own, clock)
        self.manager = Manager(
            self.instance.local_client(CONTROLLERS),
            clock,
            wanted=plan.controllers,
            settings=_settings(plan, self.instance),
            client_for=self.instance.local_client,
            informers=self._informers,
            foreign_kinds=self.instance.foreign_kinds,
        )
        claims = self.manager.controllers.get(ResourceClaimController.name)
        if isinstance(claims, ResourceClaimController):
            account = CATALOG[ResourceClaimController.name].account
            self.instance.local_client(account).make_claims_with_pods(claims.note_made)
        devices = CountedDevices()
        self.overview = Overview(self._informers, devices)
        self.simulator = Simulator(own, clock, self._informers, untaint=NODE_LIFECYCLE not in self.manager.controllers)
        registry = CollectorRegistry()
        self._scheduler_metrics = SchedulerMetrics(registry, DEFAULT_SCHEDULER)
        self.scheduler = self._new_scheduler()
        self.instance.local_client(SCHEDULER).give_nodes_with_pods(
            lambda pod, claims: self.scheduler.place(pod, claims)  # the one that runs: one that failed is replaced
        )
        registry.register(DeviceMetrics(devices))
        self.instance.metrics.include(self.manager.metrics)
        self.instance.metrics.include(registry, lambda: devices.look(self.scheduler.cluster))
        self._supervisor = Supervisor(clock)
        self.leadership = leadership.candidate(own, clock) if plan.server.etcd is not None else None
        """Who of several on one etcd does the work; None where there is one."""
        self.agent = self._new_agent(plan.membership) if plan.membership is not None else None

    async def start_server(self) -> None:
        """The API server listens. Raises OSError, StateDirectoryError or StoreError; `stop` must follow in any case."""
        self.instance.store.sweep.hold()
        await self.instance.start()

    async def start_components(self) -> None:
        """Everything else runs and has seen what there is; simulated nodes are ready.

        Raises RegistrationError or ApiError if the nodes of the profile cannot be.
        """
        try:
            await self._start_components()
        finally:
            self.instance.store.sweep.release(asyncio.get_running_loop().call_soon)

    async def _start_components(self) -> None:
        run = self._supervisor.start
        run("informers", self._informers.run)
        work = {
            "scheduler": self._run_scheduler,
            "controllers": self.manager.run,
            "simulated nodes": self.simulator.run,
            "simulated volumes": Provisioner(self._client, self._clock, self._informers).run,
        }
        if self.leadership is None:
            for name, each in work.items():
                run(name, each)
        else:
            elector = self.leadership
            run("leadership", lambda: leadership.lead(elector, work, self._clock))
        if self.agent is not None:
            run("hub agent", self.agent.run)
        plan = self.plan
        while self.leadership is not None and not self.leadership.holder:
            await asyncio.sleep(LOOK_SECONDS)
        if not self.leads:
            return
        if plan.profile is not None:
            self.registration = await register(self._client, plan.profile, plan.nodes, as_time(self._clock.now()))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                await self.manager.ready()
                while not self._is_settled():
                    await asyncio.sleep(LOOK_SECONDS)
                self.has_started = True
        await self.overview.look(self.scheduler.cluster)  # before memory is made small, which takes turns of the loop

    def _is_settled(self) -> bool:
        """Whether the scheduler knows the simulated nodes as they are, and their slices: all are counted then."""
        nodes, slices = self.registration.nodes, self._informers.of(SLICES, ResourceSlice)
        return (
            self.simulator.knows(nodes)
            and self.simulator.idle
            and len(slices) >= self.registration.slices
            and all(map(self._is_settled_node, nodes))
        )

    def _is_settled_node(self, name: str) -> bool:
        """Whether a node that says it is ready has lost the taint of new nodes, if somebody is there to take it off."""
        info = self.scheduler.cluster.nodes.get(name)
        is_watched = NodeLifecycleController.name in self.manager.controllers
        return info is not None and not (is_watched and is_ready(info.node) and is_known_unready(info.node))

    @property
    def leads(self) -> bool:
        """Whether scheduler, controllers and simulated nodes run here, and not at another server of the cluster."""
        return self.leadership is None or self.leadership.is_leader

    @property
    def leader(self) -> str:
        """Who does the work, of several on one etcd."""
        return "" if self.leadership is None else self.leadership.holder

    def dashboard_link(self) -> str:
        """Opens the dashboard as the admin, once, within an hour."""
        return admin_link(self.dashboard, self.instance)

    async def totals(self) -> Totals:
        """The cluster in numbers."""
        await self.overview.look(self.scheduler.cluster)
        return self.overview.totals(self.manager.controllers.values())

    def problems(self) -> dict[str, str]:
        """By component, why it does not work now; empty if all do."""
        unwell = {name: problem for name, problem in self.manager.health().items() if problem}
        if self.agent is not None and self.agent.problem:
            unwell[f"hub agent of {self.agent.name}"] = self.agent.problem
        return {**self._supervisor.problems, **unwell}

    async def stop(self) -> None:
        """Stops everything; what was acknowledged is on disk. Idempotent."""
        await self._supervisor.stop()
        if self.agent is not None:
            await self.agent.leave()
        await self.dashboard.close()
        await self.instance.stop()

    async def _run_scheduler(self) -> None:
        """A scheduler that failed, or led before, is replaced, not resumed: what it knew may be wrong."""
        if self.scheduler.has_begun:
            self.scheduler = self._new_scheduler()
        await self.scheduler.run()

    def _new_scheduler(self) -> Scheduler:
        gates = self.plan.server.disabled_gates
        client = self.instance.local_client(SCHEDULER)
        return Scheduler(
            client,
            self._clock,
            informers=self._informers,
            filter_seconds=self.plan.filter_seconds,
            disabled_gates=gates,
            metrics=self._scheduler_metrics,
        )

    def _new_agent(self, membership: Membership) -> Agent:
        observer = Observer(
            self._client,
            self._informers,
            lambda: self.scheduler.cluster,
            pages.version()["gitVersion"],
        )
        return Agent(membership.cluster, Access(membership), observer.look, self._clock)

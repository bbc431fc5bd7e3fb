"""The processes of a simulated control plane, each of which can be killed at any moment and started again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final

from dray.api.generated.core import Pod
from dray.api.resource import ResourceClaim
from dray.controllers import Manager
from dray.reconcile import Clock, Informers
from dray.scheduler.first_places import Placement
from dray.scheduler.scheduler import Scheduler
from dray.server.local import LocalClient
from dray.simulation import Simulator
from fault_simulation.ledger import Ledger
from fault_simulation.network import Connection, Network

Connect = Callable[[str], Connection]
Program = Callable[[Connect], Coroutine[Any, Any, None]]

KUBELETS: Final = "kubelets"
DEVICE_EVICTION: Final = "device-taint-eviction-controller"
NODE_EVICTION: Final = "taint-eviction-controller"
CONTROLLERS: Final = (
    "resourceclaim-controller",
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "podgroup-protection-controller",
    "resourcequota-controller",
    DEVICE_EVICTION,
    "node-lifecycle-controller",
    NODE_EVICTION,
)


class _Life:
    """From a start to the next death."""

    def __init__(self) -> None:
        self.is_over = False


class Process:
    """A program that runs until it is killed. One that ends by itself is a problem."""

    def __init__(self, name: str, program: Program, network: Network, ledger: Ledger) -> None:
        self.name = name
        self.starts: list[float] = []
        """When it was started, by the clock that never jumps."""
        self._program = program
        self._network = network
        self._ledger = ledger
        self._life = _Life()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started and not killed since."""
        return self._task is not None

    def start(self) -> None:
        """Starts with nothing but what is stored."""
        life = self._life = _Life()
        self.starts.append(self._ledger.clock.monotonic())

        def connect(account: str) -> Connection:
            return Connection(self._network, account, self.name, lambda: not life.is_over)

        self._task = asyncio.get_running_loop().create_task(self._run(self._program(connect)))

    async def kill(self) -> None:
        """Ends at once: nothing that it does from now on has any effect."""
        self._life.is_over = True
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self, program: Coroutine[Any, Any, None]) -> None:
        try:
            await program
            why = "it ended"
        except Exception as error:
            why = repr(error)
        self._ledger.blame(f"{self.name} stopped by itself: {why}")


class OneProcess:
    """What knows each other if all of it runs in one process, as in `dray up`: pods come with claims and their node."""

    def __init__(self) -> None:
        self.scheduler: Scheduler | None = None

    def wire(self, component: Callable[[str], LocalClient]) -> None:
        """A server has started; `component` makes its clients."""
        component("resource-claim-controller").make_claims_with_pods(lambda *_: None)
        component("kube-scheduler").give_nodes_with_pods(self._place)

    def _place(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Placement | None:
        return None if self.scheduler is None else self.scheduler.place(pod, claims)


def schedule(clock: Clock, known_to: OneProcess | None = None) -> Program:
    """A scheduler, which the server knows if all is one process."""

    async def program(connect: Connect) -> None:
        scheduler = Scheduler(connect("kube-scheduler"), clock)
        if known_to is not None:
            known_to.scheduler = scheduler
        try:
            await scheduler.run()
        finally:
            if known_to is not None:
                known_to.scheduler = None

    return program


def control(clock: Clock, wanted: Iterable[str], randomness: random.Random) -> Program:
    """Some controllers."""

    async def program(connect: Connect) -> None:
        client = connect("kube-controller-manager")
        await Manager(client, clock, wanted=wanted, client_for=connect, randomness=randomness).run()

    return program


def run_nodes(clock: Clock) -> Program:
    """The kubelets of all nodes."""

    async def program(connect: Connect) -> None:
        client = connect("admin")
        informers = Informers(client, clock)
        simulator = Simulator(client, clock, informers, untaint=False)
        async with asyncio.TaskGroup() as group:
            group.create_task(informers.run())
            group.create_task(simulator.run())

    return program

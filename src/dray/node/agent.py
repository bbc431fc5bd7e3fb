"""The agent: everything of this package, wired together, on one root directory.

ROOT/plugins_registry/    sockets of drivers that want to be registered
ROOT/plugins/             where drivers keep their own sockets
ROOT/dra_manager_state    the checkpoint
ROOT/pods/                logs and exit codes of containers (process runtime)
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dray.api.generated.core import Pod
from dray.api.kinds import PODS
from dray.client import Informer
from dray.files import Directory
from dray.node import checkpoint, device_status, node_object
from dray.node.checkpoint import Checkpoint, CheckpointError, State
from dray.node.claim_record import ClaimBook
from dray.node.claim_work import ClaimWork
from dray.node.confirmation import Confirmation
from dray.node.driver_calls import DriverCalls
from dray.node.drivers import Drivers
from dray.node.endpoints.callers import Callers
from dray.node.endpoints.server import Endpoints, EndpointSettings, serve
from dray.node.endpoints.serving_certificate import CertificateMissing
from dray.node.environment import Environments
from dray.node.health import DeviceKey, HealthTable
from dray.node.health_watch import HealthWatch
from dray.node.heartbeat import Heartbeat, NodeTaken
from dray.node.metrics import ANY_DRIVER, NodeMetrics
from dray.node.plugin_watch import PluginWatch
from dray.node.pod_worker import NodeServices
from dray.node.pod_workers import PodWorkers
from dray.node.room import Room
from dray.node.runtime import Runtime
from dray.node.slices import DEFAULT_DELAY, NodeClient, SliceWiper
from dray.plugins import contracts, unix
from dray.process.tasks import cancel_all
from dray.reconcile import Clock, EventRecorder

if TYPE_CHECKING:
    from dray.process.component_endpoints import ComponentEndpoints

log = logging.getLogger(__name__)

COMPONENT: Final = "kubelet"
LOCK: Final = "agent.lock"
WRITES_AT_ONCE: Final = 32
SHORTEST_SOCKET_NAME: Final = len("a.io-reg.sock")


class AgentError(Exception):
    """The agent cannot run; the message says why and what to do."""


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to run. `root` is this agent's alone."""

    name: str
    root: Path
    address: str = ""
    """The node's; by default found out."""
    wipe_delay: float = DEFAULT_DELAY
    call_seconds: float = contracts.CALL_SECONDS
    metrics_address: str = "127.0.0.1"
    metrics_port: int | None = None
    """Where /metrics is served; 0 for a free port, None for nowhere."""
    endpoints: EndpointSettings | None = None
    """How logs and commands are served, if they are."""
    cdi_vendors: Mapping[str, tuple[str, ...]] = {}
    """By driver, vendors of CDI devices that are not named after it."""
    handle_claims: bool = True
    """Without it pods run as if they had no claims, drivers are not asked, and the checkpoint stays as it is."""


class Agent:
    """One node. `ready` is set once pods are worked on."""

    def __init__(
        self, settings: NodeSettings, client: NodeClient, runtime: Runtime, clock: Clock, boot: str = ""
    ) -> None:
        """`boot` tells starts of the machine apart; by default the kernel says. Raises AgentError."""
        self.settings = settings
        self._boot = boot or node_object.boot_id()
        self._problem = ""
        self._root = _open_root(settings.root)
        self.book = self._load()
        self.metrics = NodeMetrics(self._claims_in_use)
        self.drivers = Drivers()
        self.health = HealthTable()
        self.metrics_port: int | None = None
        self._endpoints: ComponentEndpoints | None = None
        self.ready = asyncio.Event()
        self._runtime = runtime
        address = self._address = settings.address or node_object.local_address()
        self._client = client
        self._clock = clock
        self._console_endpoints: Endpoints | None = None
        self._recorder = EventRecorder(client, COMPONENT, clock)
        self._heartbeat = Heartbeat(client, settings.name, address, runtime.name, clock)
        calls = DriverCalls(self.drivers, self.metrics, clock, settings.call_seconds)
        saved = self._saved = Checkpoint(settings.root, lambda: State(self._boot, tuple(self.book)))
        claims = ClaimWork(
            client,
            self.book,
            saved,
            calls,
            self.metrics,
            clock,
            vendors=settings.cdi_vendors,
            handled=settings.handle_claims,
        )
        self._pods: Informer[Pod] = Informer(client, PODS, fields=f"spec.nodeName={settings.name}", sleep=clock.sleep)
        self.workers = PodWorkers(
            NodeServices(
                client=client,
                clock=clock,
                runtime=runtime,
                claims=claims,
                environments=Environments(client),
                health=self.health,
                room=Room(node_object.capacity()),
                recorder=self._recorder,
                metrics=self.metrics,
                address=address,
                note=self._pods.put,
                writes=asyncio.Semaphore(WRITES_AT_ONCE),
            )
        )
        self._wiper = SliceWiper(client, settings.name, self.drivers, clock, settings.wipe_delay)
        self._health_watch = HealthWatch(self.drivers, self.health, clock, self._on_health)
        self._confirmation = Confirmation(claims, self.drivers, clock)
        self._plugins = PluginWatch(settings.root / "plugins_registry", self.drivers, clock)
        self.drivers.on_change(lambda _: self.workers.wake())

    async def run(self) -> None:
        """Runs until cancelled; containers go on. Raises AgentError or ApiError."""
        with _locked(self._root):
            tasks: list[asyncio.Task[None]] = []
            try:
                await self._start_endpoints()
                await self._start_console_endpoints()
                await self._register()
                loop = asyncio.get_running_loop()
                tasks += [loop.create_task(one) for one in self._parts()]
                await self._pods.synced()
                # Only now is it known which pods are gone; before, all that is here might still be wanted.
                self.workers.take_down({uid for record in self.book for uid in record.pods})
                self.workers.take_down(self._runtime.known_pods())
                self.ready.set()
                await asyncio.gather(*tasks)
            finally:
                self.ready.clear()
                await cancel_all(tasks)
                await self.workers.close()
                await self._confirmation.close()
                await self.drivers.close()
                await self._runtime.close()
                await self._saved.close()
                if self._endpoints is not None:
                    await self._endpoints.stop()
                if self._console_endpoints is not None:
                    await self._console_endpoints.stop()

    def _parts(self) -> Iterator[Coroutine[Any, Any, None]]:
        self._pods.on_change(self.workers.on_pod)
        yield self._heartbeat.run()
        if self.settings.handle_claims:
            yield self._wiper.run()
            yield self._plugins.run()
            yield self._health_watch.run()
        yield self._pods.run()

    async def _register(self) -> None:
        try:
            node = await self._heartbeat.register()
        except NodeTaken as error:
            raise AgentError(str(error)) from None
        if self._problem:
            await self._recorder.warning(node, "DamagedCheckpoint", self._problem)

    async def _start_endpoints(self) -> None:
        """Health and metrics, if they are wanted; only then is there memory for them."""
        port = self.settings.metrics_port
        if port is None:
            return
        from dray.process.component_endpoints import ComponentEndpoints

        self._endpoints = ComponentEndpoints(self.metrics.registry(), self._problems)
        try:
            self.metrics_port = await self._endpoints.start(self.settings.metrics_address, port)
        except OSError as error:
            raise AgentError(
                f"cannot serve metrics on {self.settings.metrics_address}:{port}: {error.strerror or error}. "
                "Give another --metrics-port, or 0 for a free one."
            ) from None

    async def _start_console_endpoints(self) -> None:
        """Logs and commands, if they are wanted. Raises AgentError."""
        wanted, settings = self.settings.endpoints, self.settings
        if wanted is None:
            return
        try:
            callers = Callers(self._client, settings.name, self._clock)
            served = await serve(wanted, self._pods, self._runtime.console, callers, self._address, settings.root)
        except (CertificateMissing, OSError) as error:
            raise AgentError(
                f"cannot serve logs and commands on {self._address}: {error}. Give another --port, 0 for a free one, "
                "or -1 to serve none."
            ) from None
        self._console_endpoints = served
        self._heartbeat.serving = node_object.Serving(served.port, served.fingerprint)

    def _problems(self) -> dict[str, str]:
        return {"pods": "" if self.ready.is_set() else "waiting for the API server"}

    def _load(self) -> ClaimBook:
        if not self.settings.handle_claims:
            return ClaimBook()
        try:
            found = checkpoint.load(self.settings.root, self._boot)
        except CheckpointError as error:
            raise AgentError(str(error)) from None
        if found.problem:
            self._problem = found.problem
            log.error("%s; claims are prepared again as their pods need them", found.problem)
        if found.state.boot != self._boot:
            # What drivers had set up (CDI files, kernel state) did not survive the restart of the machine.
            return ClaimBook(record.unconfirmed() for record in found.state.claims)
        return ClaimBook(found.state.claims)

    def _on_health(self, changed: set[DeviceKey]) -> None:
        self.workers.wake(device_status.pods_with(self.book, changed))

    def _claims_in_use(self) -> dict[str, int]:
        return {ANY_DRIVER: len(self.book), **self.book.in_use()}


def _open_root(path: Path) -> Directory:
    """The root directory, with what must be in it. Only trusted users can write there. Raises AgentError."""
    too_long = len(os.fsencode(path / "plugins_registry")) + 1 + SHORTEST_SOCKET_NAME - unix.LONGEST_PATH
    if too_long > 0:
        raise AgentError(
            f"{path} as root directory leaves no room for the sockets of drivers, whose paths have at most "
            f"{unix.LONGEST_PATH} bytes. Give a --root that is at least {too_long} bytes shorter."
        )
    try:
        root = Directory.open(path, create=0o755, tighten=True)
        for name in ("plugins", "plugins_registry"):
            root.child(name, create=0o755).close()
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename not in (None, str(path)) else error.strerror
        raise AgentError(f"cannot use {path} as root directory: {what}. Give another --root.") from None
    return root


@contextlib.contextmanager
def _locked(root: Directory) -> Iterator[None]:
    """The root directory is this agent's alone meanwhile. Raises AgentError."""
    handle = _open_lock(root)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 32, 0).decode(errors="replace").strip()
            raise AgentError(
                f"another dray node (pid {holder}) uses {root.path}. Stop it, or give another --root."
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)


def _open_lock(root: Directory) -> int:
    try:
        return root.create(LOCK, flags=os.O_RDWR)
    except FileExistsError:
        return root.open_file(LOCK, os.O_RDWR)

"""A whole API server on a state directory: opens the store, makes what is missing, listens, stops.

This is the one place in the package that wires its parts together.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from dray.api import codec, registry
from dray.api.meta import Object
from dray.api.times import Time
from dray.server import first_objects, identity_actions, pages, published_authority, review_actions
from dray.server.actions import ActionTable
from dray.server.admission import default_chain
from dray.server.app import App
from dray.server.audit import AuditLog
from dray.server.discovery import Discovery
from dray.server.engine import Engine
from dray.server.gate import SecurityGate
from dray.server.handling import Observer
from dray.server.health import Check, Health
from dray.server.http import Limits, Server
from dray.server.local import LocalClient, component_identity
from dray.server.logs import RequestLog
from dray.server.metrics import Metrics
from dray.server.openapi.pages import OpenApi
from dray.server.role_aggregation import aggregate_roles, keep_aggregated
from dray.server.routes import Table
from dray.server.security import default_roles
from dray.server.security.authentication import Authenticator
from dray.server.security.credentials import Credentials
from dray.server.security.identity import MASTERS, Identity, authenticated
from dray.server.security.kubeconfig import server_url
from dray.server.security.state_directory import StateDirectory
from dray.server.security.tokens import ServiceAccountTokens
from dray.server.stored_roles import StoredRoles
from dray.store import StorageError, Store, open_store

COMPACT_SECONDS = 60.0

log = logging.getLogger(__name__)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is started."""

    directory: Path
    bind: str = "127.0.0.1"
    port: int = 6443
    tls: bool = True
    names: tuple[str, ...] = ()
    tokens: dict[str, Identity] = msgspec.field(default_factory=dict)
    disabled_gates: frozenset[str] = frozenset()
    disabled_versions: frozenset[str] = frozenset()
    audit_log: Path | None = None
    log_requests: bool = False
    limits: Limits = Limits()


def decode_stored(resource: str, data: bytes) -> Object:
    """An object as the store kept it."""
    plural, _, group = resource.partition(".")
    kind = registry.by_resource(group, plural)
    if kind is None:
        raise codec.DecodeError(f"the store holds {resource}, which this version does not know")
    return codec.decode(data, kind.hub)


class WallClock:
    """The time of day. Requests of one second share one `Time`."""

    def __init__(self) -> None:
        self._second = -1
        self._time = Time("")

    def __call__(self) -> Time:
        second = int(time.time())
        if second != self._second:
            self._second, self._time = second, Time.of(datetime.fromtimestamp(second, UTC))
        return self._time


class Instance:
    """A running server. `url` is where it listens, `kubeconfig` the file that leads there."""

    def __init__(self, settings: Settings) -> None:
        """Opens the state directory. Raises StateDirectoryError or StoreError."""
        self.settings = settings
        directory = StateDirectory(settings.directory)
        self.store: Store = open_store(directory.path, decode_stored)
        names = (settings.bind, *settings.names)
        self.credentials = Credentials(directory, names, datetime.now(UTC))
        self.roles = StoredRoles(self.store)
        admission = default_chain(self.roles)
        self.engine = Engine(self.store, WallClock(), admission, disabled_gates=settings.disabled_gates)
        self.actions = ActionTable()
        self.metrics = Metrics(self.store)
        self.url = ""
        self._http: Server | None = None
        self._audit: AuditLog | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.settings.directory / "kubeconfig"

    async def start(self) -> None:
        """Makes the first objects, listens, writes the kubeconfig.

        Raises OSError if the port is taken or the audit log cannot be written. Either way, `stop` must follow.
        """
        self._tasks.append(asyncio.get_running_loop().create_task(self._compact_often()))
        await first_objects.ensure(self.engine, default_roles.default_objects())
        await published_authority.publish(self.engine, self.credentials.authority.pair.certificate)
        await aggregate_roles(self.engine, self.roles)
        self._tasks.append(asyncio.get_running_loop().create_task(keep_aggregated(self.engine, self.roles)))
        settings = self.settings
        self._http = Server(self._build(), settings.limits)
        context = self.credentials.tls_context() if settings.tls else None
        port = await self._http.listen(settings.bind, settings.port, context)
        self.url = server_url(settings.bind, port, tls=settings.tls)
        self.credentials.write_admin_kubeconfig(self.url)

    def _build(self) -> App:
        table = Table(self.settings.disabled_versions)
        clock = time.time
        accounts = ServiceAccountTokens(self.credentials.signing_key, self.engine.get, clock)
        admin = authenticated("kubernetes-admin", (MASTERS,))
        authenticator = Authenticator({self.credentials.admin_token: admin, **self.settings.tokens}, accounts, clock)
        identity_actions.register(self.actions, accounts)
        review_actions.register(self.actions, authenticator, self.roles)
        discovery = Discovery(table, f"{self.settings.bind}:{self.settings.port}")
        exact, prefixes = self._health_pages()
        exact["/metrics"] = self.metrics.page
        prefixes["/openapi/"] = OpenApi(table).page
        served = pages.Pages(discovery, exact, prefixes)
        gate = SecurityGate(authenticator, self.roles)
        return App(self.engine, table, gate, served, self.actions, self._observers())

    def _health_pages(self) -> tuple[dict[str, pages.Page], dict[str, pages.Page]]:
        """Pages by exact path and by prefix. A restart does not help a full disk, so `/livez` does not look at it."""
        checks: dict[str, Check] = {"ping": lambda: "", "store": self._store_problem}
        found = [
            Health("/livez", {"ping": checks["ping"]}),
            Health("/healthz", checks),
            Health("/readyz", {**checks, "shutdown": self._shutdown_problem}),
        ]
        return {health.path: health.page for health in found}, {f"{health.path}/": health.page for health in found}

    def _store_problem(self) -> str:
        return "the store is closed" if self.store.closed else str(self.store.problem or "")

    def _shutdown_problem(self) -> str:
        return "the server is shutting down" if self._http is None or self._http.stopping else ""

    def _observers(self) -> list[Observer]:
        observers: list[Observer] = [self.metrics]
        if self.settings.audit_log is not None:
            self._audit = AuditLog(self.settings.audit_log)
            self._audit.start()
            observers.append(self._audit)
        if self.settings.log_requests:
            observers.append(RequestLog())
        return observers

    async def _compact_often(self) -> None:
        """Lets go of history that is too old, also of resources that nobody writes to any more."""
        while True:
            await asyncio.sleep(COMPACT_SECONDS)
            try:
                await self.store.compact()
            except StorageError as error:
                log.error("cannot remove old revisions: %s", error)

    def local_client(self, component: str) -> LocalClient:
        """A client without HTTP for a component (`kube-scheduler`, a controller), with its rights and no more.

        Raises ValueError if no role is meant for such a component.
        """
        return self.client_of(component_identity(component))

    def client_of(self, identity: Identity) -> LocalClient:
        """A client without HTTP that acts as an identity."""
        return LocalClient(self.engine, identity, self.roles, self.actions)

    async def stop(self, patience: float = 3.0) -> None:
        """Lets requests in progress finish, then closes everything. Idempotent."""
        if self._http is not None:
            await self._http.stop(patience)
            self._http = None
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._tasks.clear()
        await self.store.close()
        if self._audit is not None:
            await self._audit.close()
            self._audit = None

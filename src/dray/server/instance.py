"""A whole API server on a state directory: opens the store, makes what is missing, listens, stops.

This is the one place in the package that wires its parts together.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from dray.api import codec, registry
from dray.api.meta import Object
from dray.api.times import Time
from dray.server import first_objects, identity_actions, pages, review_actions
from dray.server.actions import ActionTable
from dray.server.admission import default_chain
from dray.server.app import App
from dray.server.discovery import Discovery
from dray.server.engine import Engine
from dray.server.gate import SecurityGate
from dray.server.http import Server
from dray.server.openapi.pages import OpenApi
from dray.server.routes import Table
from dray.server.security import default_roles
from dray.server.security.authentication import Authenticator
from dray.server.security.credentials import Credentials
from dray.server.security.identity import MASTERS, Identity, authenticated
from dray.server.security.kubeconfig import server_url
from dray.server.security.rbac import Rbac, Stored
from dray.server.security.state_directory import StateDirectory
from dray.server.security.tokens import ServiceAccountTokens
from dray.store import EventType, Key, Store, open_store

RBAC_GROUP = "rbac.authorization.k8s.io"


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


def decode_stored(resource: str, data: bytes) -> Object:
    """An object as the store kept it."""
    plural, _, group = resource.partition(".")
    kind = registry.by_resource(group, plural)
    if kind is None:
        raise codec.DecodeError(f"the store holds {resource}, which this version does not know")
    return codec.decode(data, kind.hub)


def current_time() -> Time:
    """The wall clock."""
    return Time.of(datetime.now(UTC))


class Instance:
    """A running server. `url` is where it listens, `kubeconfig` the file that leads there."""

    def __init__(self, settings: Settings) -> None:
        """Opens the state directory. Raises StateDirectoryError or StoreError."""
        self.settings = settings
        directory = StateDirectory(settings.directory)
        self.store: Store = open_store(directory.path, decode_stored)
        names = (settings.bind, *settings.names)
        self.credentials = Credentials(directory, names, datetime.now(UTC))
        self.engine = Engine(self.store, current_time, default_chain(), disabled_gates=settings.disabled_gates)
        self.rbac = Rbac()
        self.url = ""
        self._http: Server | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.settings.directory / "kubeconfig"

    async def start(self) -> None:
        """Makes the first objects, listens, writes the kubeconfig. Raises OSError if the port is taken."""
        self._follow_roles()
        await first_objects.ensure(self.engine, default_roles.default_objects())
        settings = self.settings
        self._http = Server(self._build())
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
        actions = ActionTable()
        identity_actions.register(actions, accounts)
        review_actions.register(actions, authenticator, self.rbac)
        discovery = Discovery(table, f"{self.settings.bind}:{self.settings.port}")
        health = pages.health({"ping": lambda: ""})
        exact = {"/livez": health, "/readyz": health, "/healthz": health}
        served = pages.Pages(discovery, exact, {"/openapi/": OpenApi(table).page})
        return App(self.engine, table, SecurityGate(authenticator, self.rbac), served, actions)

    def _follow_roles(self) -> None:
        """Feeds the authorizer with stored roles and bindings, now and whenever they change."""
        for kind in registry.kinds():
            if kind.group != RBAC_GROUP:
                continue
            listing = self.store.list(kind.resource)
            for record in listing.records:
                self._apply_role(kind.kind, record.key, record.obj)
            self._tasks.append(asyncio.get_running_loop().create_task(self._watch_roles(kind.kind, kind.resource)))

    def _apply_role(self, kind: str, key: Key, obj: Stored | None) -> None:
        self.rbac.apply(kind, key.namespace, key.name, obj)

    async def _watch_roles(self, kind: str, resource: str) -> None:
        with self.store.watch(resource, self.store.revision) as watcher:
            while True:
                for event in await watcher.next():
                    gone = event.type is EventType.DELETED
                    self._apply_role(kind, event.record.key, None if gone else event.record.obj)

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


def disabled_versions(runtime_config: Iterable[str]) -> frozenset[str]:
    """The versions that `--runtime-config` turns off. Raises ValueError for what it cannot be."""
    served = {kind.api_version_of(version) for kind in registry.kinds() for version in kind.versions}
    off = set()
    for setting in runtime_config:
        version, _, value = setting.partition("=")
        if version not in served:
            raise ValueError(f"--runtime-config: {version!r} is not served; there is {', '.join(sorted(served))}")
        if value.lower() not in ("true", "false"):
            raise ValueError(f"--runtime-config: give {version}=true or {version}=false, not {setting!r}")
        if value.lower() == "false":
            off.add(version)
    return frozenset(off)

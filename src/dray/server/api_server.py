"""The API over a store: the one place that wires the parts of this package together.

Everything from outside is given: the store (on whatever engine), the clock, the keys, where to listen, who observes.
A state directory, `dray up`, tests and fixtures all make an `ApiServer`; without listeners it serves this process only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dray.api.registry import Kind
from dray.custom import definition_rules
from dray.custom.kinds import DEFINITIONS, served_kind
from dray.process import memory
from dray.process.clock import Clock
from dray.process.health import Check, Health
from dray.process.http import Answer, Application, Limits, Listener, Request, Response, Server
from dray.server.admission import DynamicAdmission, default_chain
from dray.server.app import App
from dray.server.custom.conversions import Conversions
from dray.server.custom.defined_kinds import DefinedKinds
from dray.server.custom.upkeep import keep_definitions
from dray.server.discovery import pages, service_account_issuer
from dray.server.discovery.groups import Discovery
from dray.server.discovery.openapi.pages import OpenApi
from dray.server.engine import Engine, look_up_in
from dray.server.fairness import Fairness
from dray.server.indexes.stored_roles import StoredRoles
from dray.server.kubelets.proxy import Kubelets, NoKubelets
from dray.server.local import Calm, LocalClient, component_identity
from dray.server.observers.handling import Observer
from dray.server.observers.metrics import Metrics
from dray.server.routes import Table
from dray.server.security import default_roles
from dray.server.security.authentication import Authenticator
from dray.server.security.gate import SecurityGate
from dray.server.security.identity import Identity
from dray.server.security.tokens import ServiceAccountTokens
from dray.server.subresources.table import strategies
from dray.server.upkeep import first_objects
from dray.server.upkeep.event_expiry import keep_recent
from dray.server.upkeep.policy_type_checks import keep_checked
from dray.server.warm_up import warm_up
from dray.store import StorageError, Store

COMPACT_SECONDS = 60.0

log = logging.getLogger(__name__)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a server is to be like."""

    signing_key: bytes
    """Signs the tokens of ServiceAccounts."""
    tokens: Mapping[str, Identity] = {}
    """Who is known by a token that the server did not issue."""
    disabled_gates: frozenset[str] = frozenset()
    disabled_versions: frozenset[str] = frozenset()
    disabled_plugins: frozenset[str] = frozenset()
    """Rules of admission that do not take part, by what switches them off."""
    limits: Limits = Limits()
    listeners: tuple[Listener, ...] = ()
    anonymous: bool = True
    """Whether requests without credentials are those of `system:anonymous`; else they are refused."""
    kubelets: Kubelets = NoKubelets()
    """Who answers for containers."""
    address: str = ""
    """Host and port that discovery tells clients to come back to."""
    around: Callable[[Application], Application] | None = None
    """What requests over HTTP go through first, such as faults that a test asks for."""


class Mounted(Protocol):
    """Answers requests below a path, and looks at each before its body is read."""

    def admit(self, request: Request) -> Response | None:
        """The answer if a request is refused by its head; else it says whose account the body is on."""
        ...

    async def __call__(self, request: Request) -> Answer:
        """Answers."""
        ...


class ApiServer:
    """A server. `prepare` stores what every cluster has; `serve` listens until `stop`. The store stays open."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        options: Options,
        *,
        observers: Sequence[Observer] = (),
        randomness: random.Random | None = None,
    ) -> None:
        """`observers` hear of every request; names and uids come from `randomness`."""
        self.store = store
        self.roles = StoredRoles(store)
        self.metrics = Metrics(store)
        self.ports: tuple[int, ...] = ()
        """Where it listens, once it does."""
        self._clock = clock
        self._options = options
        accounts = ServiceAccountTokens(options.signing_key, look_up_in(store), clock.now)
        authenticator = Authenticator(options.tokens, accounts, clock.now, anonymous=options.anonymous)
        self.defined_kinds = DefinedKinds(store)
        table = Table(options.disabled_versions, self.defined_kinds)
        rules = {DEFINITIONS.resource: definition_rules.rules(lambda: self.defined_kinds.known)}
        self._dynamic_admission = DynamicAdmission(store, self.roles)
        self.engine = Engine(
            store,
            table,
            clock,
            default_chain(self.roles, self._dynamic_admission, options.disabled_plugins),
            strategies(accounts, authenticator, self.roles, rules),
            disabled_gates=options.disabled_gates,
            randomness=randomness,
        )
        self._conversions = self.engine.conversions = Conversions(self.engine)
        self.application = App(
            self.engine,
            SecurityGate(authenticator, self.roles),
            self._pages(table, accounts),
            (self.metrics, *observers),
            Fairness(),
            options.kubelets,
        )
        """Answers requests, whoever brings them."""
        self.authenticator = authenticator
        self._mounted: dict[str, Mounted] = {}
        self._mounted_below: tuple[str, ...] = ()
        self._http: Server | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def _pages(self, table: Table, accounts: ServiceAccountTokens) -> pages.Pages:
        """Pages by exact path and by prefix. A restart does not help a full disk, so `/livez` does not look at it."""
        checks: dict[str, Check] = {"ping": lambda: "", "store": self._store_problem}
        health = [
            Health("/livez", {"ping": checks["ping"]}),
            Health("/healthz", checks),
            Health("/readyz", {**checks, "shutdown": self._shutdown_problem}),
        ]
        exact = {each.path: pages.anybody(each.page) for each in health}
        prefixes = {f"{path}/": page for path, page in exact.items()}
        exact["/metrics"] = self.metrics.page
        exact |= service_account_issuer.pages(accounts.public_key, self._own_address)
        prefixes["/openapi/"] = OpenApi(table).page
        return pages.Pages(Discovery(table, self._options.address), exact, prefixes)

    def _own_address(self) -> str:
        """Host and port; the port is known once it listens."""
        host, _, port = self._options.address.rpartition(":")
        return f"{host}:{self.ports[0] if self.ports else port}"

    def _store_problem(self) -> str:
        return "the store is closed" if self.store.closed else str(self.store.problem or "")

    def _shutdown_problem(self) -> str:
        return "the server is shutting down" if self._http is None or self._http.leaving else ""

    async def prepare(self, *, with_roles: bool = True) -> None:
        """Stores the namespaces that every cluster has, and the default roles and bindings. Raises StorageError."""
        await first_objects.ensure(self.engine, default_roles.default_objects() if with_roles else ())

    async def serve(self) -> None:
        """Listens, and keeps the store tidy. Raises OSError if it cannot listen. Either way, `stop` must follow."""
        self.keep(self._compact_often())
        self.store.sweep.on_end = self._give_back
        self.keep(keep_recent(self.engine, self._clock))
        self.keep(keep_checked(self.engine, self._clock))
        self.keep(keep_definitions(self.engine, self.defined_kinds, self._clock))
        around = self._options.around
        application = self._application if around is None else around(self._application)
        at_once = self.application.at_once if around is None else lambda _request: None
        self._http = Server(application, self._options.limits, self._admit, at_once)
        self.ports = tuple([await self._http.listen(listener) for listener in self._options.listeners])
        engine = self.engine
        copies = (engine.published_pools, engine.held_devices, self.roles.pods_on_node, engine.service_addresses)
        self.keep(warm_up(engine, self._clock, copies))

    def mount(self, path: str, application: Mounted) -> None:
        """Has somebody else answer everything below a path (`/name/`), who also finds out who asks. Before `serve`."""
        self._mounted[path] = application
        self._mounted_below = tuple(each[:-1] for each in self._mounted)

    def _mounted_at(self, request: Request) -> Mounted | None:
        asked = request.path
        if not asked.startswith(self._mounted_below):
            return None
        for path, application in self._mounted.items():
            if asked.startswith(path[:-1]) and (len(asked) < len(path) or asked[len(path) - 1] == "/"):
                return application
        return None

    def _application(self, request: Request) -> Coroutine[Any, Any, Answer]:
        return (self._mounted_at(request) or self.application)(request)

    def _admit(self, request: Request) -> Response | None:
        return (self._mounted_at(request) or self.application).admit(request)

    def keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Goes on with some work until `stop`."""
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    def _give_back(self) -> None:
        asyncio.get_running_loop().run_in_executor(None, memory.trim)

    async def _compact_often(self) -> None:
        """Lets go of history that is too old, also of resources that nobody writes to any more."""
        while True:
            await self._clock.sleep(COMPACT_SECONDS)
            try:
                await self.store.compact()
            except StorageError as error:
                log.error("cannot remove old revisions: %s", error)

    async def foreign_kinds(self) -> Sequence[Kind]:
        """The kinds that definitions define, each in the version that is preferred."""
        found = (served_kind(definition) for definition in self.defined_kinds.definitions)
        return tuple(kind for kind in found if kind is not None)

    def local_client(self, component: str) -> LocalClient:
        """A client without HTTP for a component (`kube-scheduler`, a controller), with its rights and no more.

        Raises ValueError if no role is meant for such a component.
        """
        return self.client_of(component_identity(component))

    def client_of(self, identity: Identity, calm: Calm | None = None) -> LocalClient:
        """A client without HTTP that acts as an identity. Its watches gather changes while `calm` lasts."""
        return LocalClient(self.engine, identity, self.roles, calm)

    def leave(self) -> None:
        """Says that it is not ready, and goes on until it is stopped: balancers send their clients elsewhere."""
        if self._http is not None:
            self._http.leave()

    async def stop(self, patience: float = 3.0) -> None:
        """Lets requests in progress finish, then ends everything but the store. Idempotent."""
        if self._http is not None:
            await self._http.stop(patience)
            self._http = None
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._tasks.clear()
        await self._dynamic_admission.close()
        self.engine.workers.close()
        await self._conversions.close()

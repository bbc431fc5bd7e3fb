"""What every verb works with: the store, the clock, the switches, the strategies and the admission chain."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

import msgspec

from dray.api.generated.core import Namespace, Pod
from dray.api.kinds import NAMESPACES
from dray.api.meta import Object
from dray.api.pod_groups import group_of
from dray.api.registry import RESOURCE_GROUP, Kind
from dray.api.resource import ResourceClaim
from dray.api.tenants import tenant
from dray.api.times import Time
from dray.api.well_known import NAME_LETTERS
from dray.process.clock import Clock, as_time
from dray.server.beside import Beside
from dray.server.indexes.held_devices import HeldDevices
from dray.server.indexes.pod_index import PodIndex
from dray.server.indexes.published_pools import PublishedPools
from dray.server.indexes.service_addresses import ServiceAddresses
from dray.server.routes import Route, Table
from dray.server.security.identity import Identity
from dray.server.security.tokens import ObjectLookup
from dray.server.strategies import Strategies
from dray.server.unread import UnreadAnswers
from dray.store import Basis, Event, Finish, Key, Record, Store
from dray.validation import Context

# Of five letters, by twos: one number makes a whole suffix.
_PAIRS = [first + second for first in NAME_LETTERS for second in NAME_LETTERS]
_SUFFIXES = len(NAME_LETTERS) ** 5

# The bits of a UUID that say how it was made.
_NO_VERSION = ~(0xF << 76 | 0x3 << 62)
_VERSION_4 = 0x4 << 76 | 0x2 << 62


P = ParamSpec("P")
R = TypeVar("R")


class Turn(Protocol):
    """The caller's share of the server, which a request takes up while it is worked on."""

    def step_out(self) -> None:
        """The request waits for somebody else, and takes up nothing meanwhile."""
        ...

    def step_in(self) -> None:
        """The request goes on."""
        ...


class Call(msgspec.Struct):
    """One request to the verbs.

    What the caller should be told is collected in `warnings`, and what the audit log should have in `annotations`.
    What is large, in bytes or in number of objects, is worked on beside the loop (`Engine.beside`).
    """

    route: Route
    caller: Identity
    now: Time
    dry_run: bool = False
    field_manager: str = ""
    options: Mapping[str, Any] = {}
    """What the caller says about how to do it, by the names that Kubernetes' options have."""
    is_unnamed: bool = False
    """Whether the caller names no object: the server chooses its name, or it is one of a collection."""
    warnings: list[str] = []
    annotations: dict[str, str] = {}
    turn: Turn | None = None
    """What to step out of while the request waits for somebody else; None where there are no turns."""
    is_large: bool = False
    policy_seconds: float = 0.0
    """Processor time that policies have taken beside the loop."""
    _key: Key | None = None

    @property
    def key(self) -> Key:
        """Where the object is stored."""
        if self._key is None:
            route = self.route
            self._key = Key(route.kind.storage.resource, route.namespace, route.name)
        return self._key


class Admission(Protocol):
    """What may change or refuse a write, by raising ApiError. It may take its time, and nothing is locked meanwhile."""

    @property
    def is_idle(self) -> bool:
        """Whether people have configured nothing that is to be asked."""
        ...

    async def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """The object as it should be stored."""
        ...

    async def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Refuses a create (no `old`), update or delete (no `new`)."""
        ...

    async def post(self, engine: Engine, call: Call, posted: Object) -> Object:
        """What is posted where nothing is stored (a binding, an eviction, a review), as it should be taken."""
        ...


class FirstClaims(Protocol):
    """Makes the claims that a new pod wants from templates, to be stored with it."""

    async def of(self, pod: Pod) -> tuple[Pod, list[ResourceClaim]] | None:
        """The pod, which names them in its status, and the claims; None if they are to be made later."""
        ...

    def stored(self, pod: Pod, claims: Sequence[ResourceClaim]) -> None:
        """They are stored."""
        ...


class Placement(Protocol):
    """A node for a pod that is about to be stored, and its claims with their devices; others cannot have these."""

    @property
    def node(self) -> str:
        """The node of the pod."""
        ...

    @property
    def claims(self) -> Sequence[ResourceClaim]:
        """The claims with what they get."""
        ...

    def stored(self, pod: Pod) -> None:
        """All of it is stored."""
        ...

    def failed(self) -> None:
        """Nothing of it is stored."""
        ...

    def lost(self) -> None:
        """Nobody waits for the outcome of the write."""
        ...


class PlacedPod(NamedTuple):
    """A pod with its node, how the store completes its claims with their devices, and what that is judged by."""

    pod: Pod
    claims: list[tuple[Key, Finish]]
    basis: Basis
    placement: Placement


class FirstNodes(Protocol):
    """Gives new pods their nodes, to be stored with them."""

    async def of(self, pod: Pod, claims: Sequence[ResourceClaim]) -> PlacedPod | None:
        """The pod with its node, and the claims made for it with their devices; None if it gets one later."""
        ...


class Converter(Protocol):
    """Objects, records and events in the version of a kind. Raises ApiError."""

    async def convert(self, kind: Kind, objects: Sequence[Any]) -> list[Any]:
        """Objects, in the same order."""
        ...

    async def records(self, kind: Kind, records: Sequence[Record]) -> list[Record]:
        """Records, in the same order."""
        ...

    async def events(self, kind: Kind, events: Sequence[Event]) -> list[Event]:
        """Events, in the same order."""
        ...


def look_up_in(store: Store) -> ObjectLookup:
    """Looks objects up in a store."""

    def look_up(resource: str, namespace: str, name: str) -> Object | None:
        record = store.get((resource, namespace, name))
        return None if record is None else record.obj

    return look_up


class Engine:
    """The parts that all verbs share. Names and uids come from injected randomness, times from an injected clock.

    `kinds` are those that the server has; nothing that a request passes looks them up elsewhere.
    """

    def __init__(
        self,
        store: Store,
        kinds: Table,
        clock: Clock,
        admission: Admission,
        strategies: Strategies,
        *,
        disabled_gates: frozenset[str] = frozenset(),
        randomness: random.Random | None = None,
    ) -> None:
        self.store = store
        self.published_pools = PublishedPools(store)
        self.service_addresses = ServiceAddresses(store)
        self.held_devices = HeldDevices(store, self.published_pools)
        self.pods_of_group = PodIndex(store, group_of)
        self.kinds = kinds
        self.get = look_up_in(store)
        """A stored object, for verbs and admission that need to look at others."""
        self._now = clock.now
        self._second = -1.0
        self._time = as_time(0)
        self.admission = admission
        self.strategies = strategies
        self.conversions: Converter | None = None
        """Converts custom objects between versions; None where nobody serves any."""
        self.first_claims: FirstClaims | None = None
        """Makes claims with pods; None where whoever makes them runs elsewhere, or nowhere."""
        self.first_nodes: FirstNodes | None = None
        """Gives pods their nodes as they are stored; None where the scheduler runs elsewhere, or nowhere."""
        self.disabled_gates = disabled_gates
        self.workers = Beside()
        self.unread = UnreadAnswers()
        # Uids must be unique, not secret: one seed from the system is enough, and asking it each time is slow.
        self._random = randomness or random.Random()

    async def beside(self, call: Call, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """What a pure function gives, worked out beside the loop when it is the caller's turn."""
        return await self.workers.run(tenant(call.caller.user), function, *args, **kwargs)

    def new_uid(self) -> str:
        """A fresh uid: a random UUID (version 4). `uuid.UUID` does the same in three times the time."""
        digits = f"{self._random.getrandbits(128) & _NO_VERSION | _VERSION_4:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def new_suffix(self) -> str:
        """The end of a generated name, in letters and digits that do not spell words."""
        number = self._random.randrange(_SUFFIXES)
        return f"{_PAIRS[number % 729]}{_PAIRS[number // 729 % 729]}{NAME_LETTERS[number // 729**2]}"

    def clock(self) -> Time:
        """The time of day, cut to the second, as the API writes it: most of what is written is, in the same one."""
        now = self._now()
        if now // 1 != self._second:
            self._second, self._time = now // 1, as_time(now)
        return self._time

    def seconds(self) -> float:
        """The time of day in seconds since the epoch."""
        return self._now()

    def namespace(self, name: str) -> Namespace | None:
        """A namespace, if it exists."""
        record: Record | None = self.store.get((NAMESPACES.resource, "", name))
        return None if record is None else record.obj

    def context(self, call: Call) -> Context:
        """The circumstances that validation needs to know."""
        return Context(
            now=call.now,
            disabled_gates=self.disabled_gates,
            namespace_labels=self._namespace_labels(call.route),
            version=call.route.version,
        )

    def _namespace_labels(self, route: Route) -> Mapping[str, str] | None:
        """Only the rules for devices ask for them, and only of claims with admin access."""
        if route.kind.group != RESOURCE_GROUP or not route.namespace:
            return None
        return _NamespaceLabels(self, route.namespace)


class _NamespaceLabels(Mapping[str, str]):
    """The labels of a namespace, looked up when somebody asks; none if there is no such namespace."""

    __slots__ = ("_engine", "_name")

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name

    def _labels(self) -> Mapping[str, str]:
        found = self._engine.namespace(self._name)
        return {} if found is None else found.metadata.labels

    def __getitem__(self, key: str) -> str:
        return self._labels()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels())

    def __len__(self) -> int:
        return len(self._labels())

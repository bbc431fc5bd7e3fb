"""What every verb works with: the store, the clock, the switches and the admission chain."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import msgspec

from dray.api.generated.core import Namespace
from dray.api.meta import Object
from dray.api.registry import RESOURCE_GROUP, by_kind
from dray.api.times import Time
from dray.server.held_devices import HeldDevices
from dray.server.routes import Route
from dray.server.security.identity import Identity
from dray.store import Key, Record, Store
from dray.validation import Context

NAMESPACES = by_kind("v1", "Namespace")

# Of five letters, by twos: one number makes a whole suffix.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]
_SUFFIXES = len(_LETTERS) ** 5

# The bits of a UUID that say how it was made.
_NO_VERSION = ~(0xF << 76 | 0x3 << 62)
_VERSION_4 = 0x4 << 76 | 0x2 << 62


class Call(msgspec.Struct):
    """One request to the verbs. What the caller should be told is collected in `warnings`."""

    route: Route
    caller: Identity
    now: Time
    dry_run: bool = False
    field_manager: str = ""
    warnings: list[str] = []
    _key: Key | None = None

    @property
    def key(self) -> Key:
        """Where the object is stored."""
        if self._key is None:
            route = self.route
            self._key = Key(route.kind.storage.resource, route.namespace, route.name)
        return self._key


class Admission(Protocol):
    """What may change or refuse a write, by raising ApiError."""

    def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """The object as it should be stored."""
        ...

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Refuses a create (no `old`), update or delete (no `new`)."""
        ...


class Engine:
    """The parts that all verbs share. Names and uids come from injected randomness, times from an injected clock."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], Time],
        admission: Admission,
        *,
        disabled_gates: frozenset[str] = frozenset(),
        randomness: random.Random | None = None,
    ) -> None:
        self.store = store
        self.held_devices = HeldDevices(store)
        self.clock = clock
        self.admission = admission
        self.disabled_gates = disabled_gates
        # Uids must be unique, not secret: one seed from the system is enough, and asking it each time is slow.
        self._random = randomness or random.Random()

    def new_uid(self) -> str:
        """A fresh uid: a random UUID (version 4). `uuid.UUID` does the same in three times the time."""
        digits = f"{self._random.getrandbits(128) & _NO_VERSION | _VERSION_4:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def new_suffix(self) -> str:
        """The end of a generated name, in letters and digits that do not spell words."""
        number = self._random.randrange(_SUFFIXES)
        return f"{_PAIRS[number % 729]}{_PAIRS[number // 729 % 729]}{_LETTERS[number // 729**2]}"

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """A stored object, for verbs and admission that need to look at others."""
        record = self.store.get(Key(resource, namespace, name))
        return None if record is None else record.obj

    def namespace(self, name: str) -> Namespace | None:
        """A namespace, if it exists."""
        record: Record | None = self.store.get(Key(NAMESPACES.resource, "", name))
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

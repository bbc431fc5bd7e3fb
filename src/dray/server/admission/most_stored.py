"""What nodes, drivers and other identities may have stored where no namespace bounds them.

| What | On whose account | Most |
|---|---|---|
| ResourceSlices of a node | the node's, whoever writes them | 64 MiB |
| mirror pods and PodCertificateRequests of a node | the node's, each kind by itself | 32 MiB |
| CertificateSigningRequests | their author's; the ServiceAccounts of a namespace are one | 32 MiB |
| Events | their writer's; the ServiceAccounts of a namespace are one | 32 MiB in an hour |
| one object that a node writes; of a pod that is there, its status | | 1.5 MiB, as much as etcd takes by itself |

An object counts for its bytes and 1 KiB more. Beyond that, whatever grows is refused, and what is there can be deleted.
Events go by themselves after an hour (`upkeep.event_expiry`), so what is written in an hour is what there is. That is
counted by each server for itself, and anew after a restart; all else is counted from what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

from dray.api import codec
from dray.api.generated.certificates import CertificateSigningRequest, PodCertificateRequest
from dray.api.generated.core import Event, Pod
from dray.api.kinds import PODS
from dray.api.meta import Object
from dray.api.pods import MIRROR_ANNOTATION
from dray.api.resource import ResourceSlice
from dray.api.status import ApiError
from dray.api.tenants import tenant
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine
from dray.server.fairness import is_vital
from dray.server.indexes.holdings import Holdings
from dray.server.indexes.stored_roles import StoredRoles
from dray.server.security.node_restriction import is_node
from dray.server.upkeep.event_expiry import KEPT_SECONDS
from dray.store import GROWTH, OBJECT_BYTES, growth_beyond

MOST_SLICES: Final = 64 << 20
MOST: Final = 32 << 20
MOST_OF_NODE_OBJECT: Final = 3 << 19
MOST_WRITERS: Final = 4096
"""So many writers of events are remembered; then those who have written least lately are forgotten."""


class _Account(NamedTuple):
    """On whose account something is, and how many bytes may be on it."""

    whose: str
    holder: str
    most: int


class MostStored(Plugin):
    """Refuses what would make somebody's part of the store too large."""

    kinds = frozenset({"ResourceSlice", "CertificateSigningRequest", "PodCertificateRequest", "Pod", "Event"})

    def __init__(self, roles: StoredRoles) -> None:
        self._roles = roles
        self._holdings: dict[str, Holdings] = {}
        self._events = EventBudget()

    def looks_at(self, kind: str, verb: str, part: str) -> bool:
        """At nothing that goes away; of pods at new ones."""
        if not super().looks_at(kind, verb, part) or verb.startswith("delete"):
            return False
        return kind != "Pod" or (verb == "create" and not part)

    def check(
        self, engine: Engine, call: Call, new: Object | None, old: Object | None
    ) -> Coroutine[Any, Any, None] | None:
        """Raises ApiError for what is on a full account and grows."""
        if isinstance(new, Event):
            self._check_event(engine, call, new)
        elif isinstance(new, Pod):
            if old is None and is_node(call.caller):
                node = new.spec.node_name
                _check(engine, call, new, _Account("node", node, MOST), self._mirror_pods(engine, node))
        elif isinstance(new, ResourceSlice):
            if node := _node_of_slice(new):
                return self._check_held(engine, call, new, _Account("node", node, MOST_SLICES), _node_of_slice)
        elif isinstance(new, CertificateSigningRequest):
            return self._check_held(engine, call, new, _Account("user", _author(new), MOST), _author)
        elif isinstance(new, PodCertificateRequest):
            account = _Account("node", _node_of_request(new), MOST)
            return self._check_held(engine, call, new, account, _node_of_request)
        return None

    def _check_held(
        self, engine: Engine, call: Call, new: Object, account: _Account, holder_of: Callable[[Any], str]
    ) -> Coroutine[Any, Any, None] | None:
        """The first time, all that is stored has to be read, which takes turns."""
        resource = call.route.kind.storage.resource
        held = self._holdings.get(resource)
        if held is None:
            held = self._holdings[resource] = Holdings(engine.store, resource, holder_of)
        if not held.is_read:
            return _check_once_read(engine, call, new, account, held)
        _check(engine, call, new, account, held.of(account.holder))
        return None

    def _mirror_pods(self, engine: Engine, node: str) -> int:
        """How much mirror pods of a node take, which are few."""
        total = 0
        for pod in self._roles.pods_on_node(node):
            if MIRROR_ANNOTATION in pod.metadata.annotations:
                record = engine.store.get((PODS.resource, pod.metadata.namespace, pod.metadata.name))
                total += OBJECT_BYTES + (record.size if record is not None else 0)
        return total

    def _check_event(self, engine: Engine, call: Call, event: Event) -> None:
        caller = call.caller
        if caller.is_master or is_vital(caller, None) or call.dry_run:
            return
        writer, size = tenant(caller.user), OBJECT_BYTES + len(codec.encode(event))
        wait = self._events.take(writer, size, engine.seconds())
        if wait > 0:
            why = f'user "{writer}" has written {MOST} bytes of Events in an hour, and may not write more now'
            raise errors.too_many_requests(why, int(wait) + 1)


async def check_size(engine: Engine, call: Call, new: Object) -> None:
    """Refuses an object of a node that is larger than any node needs: they write many that are not on their account.

    Of a pod that is there only the status counts, for nothing else of it is the node's. Raises ApiError.
    """
    is_status = isinstance(new, Pod) and call.route.subresource == "status"
    own = Pod(status=new.status) if is_status and isinstance(new, Pod) else new
    size = len(await engine.beside(call, codec.encode, own))
    if size <= MOST_OF_NODE_OBJECT:
        return
    whole = len(await engine.beside(call, codec.encode, new)) if is_status else size
    if whole > _stored_size(engine, call) + GROWTH:
        what = f"{call.route.kind.kind} {new.metadata.name!r}"
        why = f"{what} has {size} bytes, and one that a node writes may have {MOST_OF_NODE_OBJECT}"
        raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")


class EventBudget:
    """What each writer has written of late: full budgets refill in an hour."""

    def __init__(self) -> None:
        self._written: dict[str, tuple[float, float]] = {}
        """Bytes, and when they were that many; who wrote last is last."""

    def take(self, writer: str, size: int, now: float) -> float:
        """Counts what is written, and is 0; or counts nothing, and is how many seconds to wait."""
        written, then = self._written.pop(writer, (0.0, now))
        written = max(0.0, written - max(0.0, now - then) * MOST / KEPT_SECONDS)
        wait = (written + size - MOST) * KEPT_SECONDS / MOST
        self._written[writer] = (written if wait > 0 else written + size, now)
        if len(self._written) > MOST_WRITERS:
            self._forget(now)
        return max(0.0, wait)

    def _forget(self, now: float) -> None:
        """Lets go of the half that has written least, counted as of now."""

        def left(item: tuple[str, tuple[float, float]]) -> float:
            written, then = item[1]
            return written - (now - then) * MOST / KEPT_SECONDS

        most = sorted(self._written.items(), key=left)[len(self._written) // 2 :]
        self._written = dict(most)


def _node_of_slice(found: ResourceSlice) -> str:
    return found.spec.node_name or ""


def _node_of_request(found: PodCertificateRequest) -> str:
    return found.spec.node_name


def _author(found: CertificateSigningRequest) -> str:
    return tenant(found.spec.username)


def _stored_size(engine: Engine, call: Call) -> int:
    """The bytes of what is stored where a call writes; 0 if nothing is."""
    record = engine.store.get(call.key) if call.route.name else None
    return 0 if record is None else record.size


async def _check_once_read(engine: Engine, call: Call, new: Object, account: _Account, held: Holdings) -> None:
    await held.read()
    _check(engine, call, new, account, held.of(account.holder))


def _check(engine: Engine, call: Call, new: Object, account: _Account, held: int) -> None:
    if held < account.most:
        return
    before = _stored_size(engine, call)
    if before and len(codec.encode(new)) - before <= growth_beyond(held, account.most):
        return
    kind = call.route.kind
    whose = f'{account.whose} "{account.holder}"'
    why = f"{whose} has {held} bytes of {kind.plural} stored, and may have {account.most}: delete some first"
    raise errors.forbidden(kind, new.metadata.name, why)

"""A client for components in the same process: the same verbs, rules and rights, without HTTP and without encoding."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from dray.api import codec
from dray.api.generated.apps import ControllerRevision, ReplicaSet
from dray.api.generated.batch import Job
from dray.api.generated.core import Endpoints, Event, Pod
from dray.api.generated.discovery import EndpointSlice
from dray.api.generated.rbac import ClusterRoleBinding, RoleBinding
from dray.api.kinds import CLAIMS, EVENTS, PODS
from dray.api.meta import DeleteOptions, Object
from dray.api.pods import binding_of
from dray.api.registry import Kind
from dray.api.resource import ResourceClaim
from dray.api.struct import encode_value
from dray.api.well_known import SYSTEM_NAMESPACE
from dray.client.interface import ObjectList, PatchFormat, WatchEvent, WatchExpired
from dray.server import errors, transactions
from dray.server.beside import LARGE
from dray.server.bodies import number_ranges
from dray.server.bodies.options import WriteOptions, list_options
from dray.server.engine import Call, Engine, Placement
from dray.server.latest import by_latest
from dray.server.patch.formats import Patch
from dray.server.routes import Route
from dray.server.security.authorization import Attributes, Authorizer, forbidden, selected_fields, selected_name
from dray.server.security.default_roles import default_objects
from dray.server.security.identity import Identity, authenticated, service_account_groups, service_account_user
from dray.server.verbs import deletes, patches, reads, writes
from dray.store import Closed, EventType, Expired, Record, Slow, StorageError, folded
from dray.store import Event as Change

T = TypeVar("T", bound=Object)

AT_ONCE = 32
"""Objects that are decoded before others get a turn of the loop."""

_OF_SERVICES = (Endpoints, EndpointSlice)
_OF_USERS = (Pod, ReplicaSet, Job, ControllerRevision, *_OF_SERVICES)
"""What components make of templates and services: nobody has seen how long it is."""


def component_identity(component: str) -> Identity:
    """The identity with the least-privilege role of a component of dray.

    `kube-scheduler` and `kube-controller-manager` are users, as in Kubernetes; a controller is the ServiceAccount of
    its name. Raises ValueError if no role is meant for it.
    """
    users, accounts = _components()
    for user in (f"system:{component}", component):
        if user in users:
            return authenticated(user)
    if component in accounts:
        user = service_account_user(SYSTEM_NAMESPACE, component)
        return authenticated(user, service_account_groups(SYSTEM_NAMESPACE))
    raise ValueError(f"no role is meant for a component {component!r}; there are {', '.join(component_names())}")


def component_names() -> list[str]:
    """Every component that a role is meant for."""
    users, accounts = _components()
    return sorted({*accounts, *(user.removeprefix("system:") for user in users)})


@cache
def _components() -> tuple[frozenset[str], frozenset[str]]:
    """The users and the ServiceAccounts that the default bindings give roles to."""
    subjects = [
        subject
        for obj in default_objects()
        if isinstance(obj, ClusterRoleBinding | RoleBinding)
        for subject in obj.subjects
    ]
    users = frozenset(subject.name for subject in subjects if subject.kind == "User")
    accounts = frozenset(subject.name for subject in subjects if subject.kind == "ServiceAccount")
    return users, accounts


Calm: TypeAlias = Callable[[], Awaitable[None]]
"""A pause."""


class LocalClient:
    """Acts as one identity; what that one may not do is refused as it would be over HTTP."""

    def __init__(self, engine: Engine, identity: Identity, authorizer: Authorizer, calm: Calm | None = None) -> None:
        """A watch gathers changes while `calm` lasts, and tells what they come to: it costs what is different then."""
        self._engine = engine
        self._calm = calm
        self._identity = identity
        self._authorizer = authorizer
        self._granted: set[tuple[str, str, str, str]] = set()
        self._granted_in = -1

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """One object."""
        with _AS_API_ERRORS:
            call = self._call("get", kind, namespace, name)
            await reads.see(self._engine, None)
            return cast(Object, writes.current(self._engine, call).obj)

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> ObjectList:
        """All objects that selectors select."""
        with _AS_API_ERRORS:
            call = self._call("list", kind, namespace, fields=fields)
            options = list_options({"labelSelector": labels, "fieldSelector": fields})
            page = await reads.list_page(self._engine, call, options)
            return ObjectList(await _objects(page.records), page.meta.resource_version)

    async def watch(
        self, kind: Kind, namespace: str = "", *, revision: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent]:
        """Changes after a revision, as the stored objects themselves."""
        with _AS_API_ERRORS:
            call = self._call("watch", kind, namespace, fields=fields)
            options = list_options({"labelSelector": labels, "fieldSelector": fields})
            test = reads.matcher(call, options)
            watcher = self._engine.store.watch(kind.storage.resource, int(revision), namespace or None)
        with watcher:
            while True:
                with _AS_API_ERRORS:
                    events = await watcher.next()
                    if self._calm is not None:
                        await self._calm()
                        events = folded([*events, *watcher.read()])
                for event in events:
                    seen = _seen(event, test)
                    if seen is not None:
                        yield seen

    @by_latest
    async def create(self, obj: T) -> T:
        """Stores a new object."""
        with _AS_API_ERRORS:
            kind = self._engine.kinds.kind_of(obj)
            call = self._call("create", kind, obj.metadata.namespace)
            if isinstance(obj, _OF_USERS):
                call.is_large = len(codec.encode(obj)) > LARGE
            post = self._engine.strategies.post(kind, "")
            if post is not None:
                posted = await self._engine.admission.post(self._engine, call, obj)
                return cast(T, await post.do(self._engine, call, posted))
            return cast(T, (await writes.create(self._engine, call, obj)).obj)

    @by_latest
    async def update(self, obj: T, subresource: str = "") -> T:
        """Replaces an object."""
        with _AS_API_ERRORS:
            kind, meta = self._engine.kinds.kind_of(obj), obj.metadata
            call = self._call("update", kind, meta.namespace, meta.name, subresource)
            call.is_large = isinstance(obj, _OF_SERVICES) and len(codec.encode(obj)) > LARGE
            record = await writes.update(
                self._engine, call, lambda _: obj, expected=meta.resource_version, uid=meta.uid
            )
            return cast(T, record.obj)

    @by_latest
    async def update_with_status(self, obj: T) -> T:
        """Replaces an object and its status at once: judged as two updates, stored as one."""
        with _AS_API_ERRORS:
            kind, meta = self._engine.kinds.kind_of(obj), obj.metadata
            call = self._call("update", kind, meta.namespace, meta.name)
            status = self._call("update", kind, meta.namespace, meta.name, "status")
            record = await writes.update(
                self._engine,
                call,
                lambda _: obj,
                expected=meta.resource_version,
                uid=meta.uid,
                then=status,
            )
            return cast(T, record.obj)

    @by_latest
    async def bind_with_claims(
        self, pod: Pod, node: str, claims: Sequence[ResourceClaim]
    ) -> Sequence[ResourceClaim] | None:
        """Gives a pod its node, and claims their devices, in one write; None if that cannot be here and now."""
        with _AS_API_ERRORS:
            if not transactions.are_possible(self._engine):
                return None
            call = self._call("create", PODS, pod.metadata.namespace, pod.metadata.name, "binding")
            allocations = [self._allocation(claim) for claim in claims]
            return await transactions.bind(self._engine, call, binding_of(pod, node), allocations)

    def _allocation(self, claim: ResourceClaim) -> transactions.Allocation:
        meta = claim.metadata
        update = self._call("update", CLAIMS, meta.namespace, meta.name)
        return transactions.Allocation(claim, update, self._call("update", CLAIMS, meta.namespace, meta.name, "status"))

    @by_latest
    async def create_events(self, events: Sequence[Event]) -> Sequence[Event] | None:
        """Stores events in one write; None if that cannot be here and now."""
        with _AS_API_ERRORS:
            if not transactions.are_possible(self._engine):
                return None
            namespaces = dict.fromkeys(event.metadata.namespace for event in events)
            calls = {namespace: self._call("create", EVENTS, namespace) for namespace in namespaces}
            return await transactions.create_events(self._engine, calls, events)

    @by_latest
    async def create_claims(self, pod: Pod, claims: Mapping[str, ResourceClaim]) -> Sequence[ResourceClaim] | None:
        """Stores claims and their names in the pod's status in one write; None if that cannot be here and now."""
        meta = pod.metadata
        with _AS_API_ERRORS:
            if not transactions.are_possible(self._engine):
                return None
            call = self._call("create", CLAIMS, meta.namespace)
            note = self._call("update", PODS, meta.namespace, meta.name, "status")
            return await transactions.create_claims(self._engine, call, note, pod, claims)

    @by_latest
    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Any,
        *,
        format: PatchFormat = PatchFormat.MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        """Changes an object by a patch."""
        with _AS_API_ERRORS:
            call = self._call("patch", kind, namespace, name, subresource)
            call.field_manager = field_manager
            value = msgspec.to_builtins(patch, enc_hook=encode_value)
            wanted = Patch(format.value, value, number_ranges.may_be_among(value))
            given = WriteOptions(field_manager=field_manager, force=force or None)
            return cast(Object, (await patches.patch(self._engine, call, wanted, given)).record.obj)

    @by_latest
    async def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None) -> None:
        """Deletes an object."""
        with _AS_API_ERRORS:
            call = self._call("delete", kind, namespace, name)
            await deletes.delete(self._engine, call, deletes.checked(options or DeleteOptions()))

    async def delete_collection(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> None:
        """Deletes all objects that selectors select, one by one."""
        with _AS_API_ERRORS:
            self._call("deletecollection", kind, namespace, fields=fields)
        for obj in (await self.list(kind, namespace, labels=labels, fields=fields)).items:
            await self.delete(kind, obj.metadata.namespace, obj.metadata.name)

    @by_latest
    async def post(
        self, kind: Kind, namespace: str, name: str, subresource: str, body: Mapping[str, Any] | Object
    ) -> dict[str, Any]:
        """Posts to a subresource."""
        with _AS_API_ERRORS:
            call = self._call("create", kind, namespace, name, subresource)
            post = self._engine.strategies.post(kind, subresource)
            if post is None:
                raise errors.page_not_found()
            posted = body if isinstance(body, Object) else _typed(body, post.takes)
            posted = await self._engine.admission.post(self._engine, call, posted)
            return cast(dict[str, Any], codec.to_builtins(await post.do(self._engine, call, posted)))

    def make_claims_with_pods(self, told: Callable[[Pod, Sequence[ResourceClaim]], None]) -> None:
        """From now on claims from templates are stored together with their pods, as this identity would have made them.

        `told` hears of each pod and its claims.
        """

        def call_in(namespace: str) -> Call:
            return self._call("create", CLAIMS, namespace)

        self._engine.first_claims = transactions.ClaimsWithPods(self._engine, call_in, told)

    def give_nodes_with_pods(self, place: Callable[[Pod, Sequence[ResourceClaim]], Placement | None]) -> None:
        """From now on pods get their node, and their claims devices, as they are stored, where `place` finds them one.

        It is given the claims that are stored with the pod. The rights are those of this identity.
        """

        def calls(pod: Pod, claims: Sequence[ResourceClaim]) -> tuple[Call, list[transactions.Allocation]]:
            meta = pod.metadata
            binding = self._call("create", PODS, meta.namespace, meta.name, "binding")
            return binding, [self._allocation(claim) for claim in claims]

        self._engine.first_nodes = transactions.NodesWithPods(self._engine, calls, place)

    def _call(
        self, verb: str, kind: Kind, namespace: str, name: str = "", subresource: str = "", fields: str = ""
    ) -> Call:
        """The call, if the identity may make it; `fields` is what a list, watch or deletecollection selects by."""
        if not kind.module:
            kind = self._engine.kinds.served(kind)
        generation = self._authorizer.generation
        if generation != self._granted_in:
            self._granted_in = generation
            self._granted.clear()
        if (verb, kind.resource, subresource, namespace) not in self._granted:
            self._check(verb, kind, namespace, name, subresource, fields)
        route = Route(verb, kind, kind.versions[0], namespace if kind.namespaced else "", name, subresource)
        return Call(route, self._identity, self._engine.clock(), warnings=[])

    def _check(self, verb: str, kind: Kind, namespace: str, name: str, subresource: str, selector: str) -> None:
        """Raises ApiError unless the identity may do this. What it may do whatever the name is asked once."""
        unnamed = Attributes(verb, kind.group, kind.plural, subresource, namespace)
        if self._authorizer.allowed(self._identity, unnamed).allowed:
            self._granted.add((verb, kind.resource, subresource, namespace))
            return
        fields = selected_fields(verb, selector)
        name = name or selected_name(verb, fields)
        attributes = Attributes(verb, kind.group, kind.plural, subresource, namespace, name, fields=fields)
        decision = self._authorizer.allowed(self._identity, attributes)
        if not decision.allowed:
            raise forbidden(self._identity, attributes, decision)


async def _objects(records: Sequence[Record]) -> tuple[Object, ...]:
    """The objects of records, a few at a time: after a start they have to be decoded."""
    found: list[Object] = []
    for start in range(0, len(records), AT_ONCE):
        if start:
            await asyncio.sleep(0)
        found.extend(record.obj for record in records[start : start + AT_ONCE])
    return tuple(found)


class _ApiErrors:
    """What goes wrong in the store, as a client over HTTP would hear of it. A generator would cost more than a call."""

    def __enter__(self) -> None:
        """Nothing is needed before."""

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if error is None:
            return
        if isinstance(error, Expired | Slow):
            raise WatchExpired(str(error)) from None
        if isinstance(error, Closed):
            raise errors.shutting_down() from None
        if isinstance(error, StorageError):
            raise errors.storage(error) from error


_AS_API_ERRORS = _ApiErrors()


def _seen(event: Change, test: Callable[[Object], bool] | None) -> WatchEvent | None:
    """A change as somebody sees it who sees only what a selector selects."""
    after = event.type is not EventType.DELETED and (test is None or test(event.record.obj))
    before = event.previous is not None and (test is None or test(event.previous.obj))
    if after:
        return WatchEvent("MODIFIED" if before else "ADDED", event.record.obj)
    return WatchEvent("DELETED", event.record.obj) if before else None


def _typed(document: Mapping[str, Any], kind: type[Object]) -> Object:
    """Plain values as an object. Raises ApiError."""
    reading = codec.read(msgspec.to_builtins(document, enc_hook=encode_value), kind)
    if reading.obj is None:
        raise errors.bad_request("; ".join(map(str, reading.errors)))
    return reading.obj

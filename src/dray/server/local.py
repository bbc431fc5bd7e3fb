"""A client for components in the same process: the same verbs, rules and rights, without HTTP and without encoding."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from dray.api import codec
from dray.api.generated.core import Binding
from dray.api.generated.policy import Eviction
from dray.api.generated.rbac import ClusterRoleBinding, RoleBinding
from dray.api.meta import DeleteOptions, Object
from dray.api.registry import Kind, by_kind
from dray.api.struct import encode_value
from dray.client.interface import ObjectList, PatchFormat, WatchEvent, WatchExpired
from dray.server import deletes, errors, field_owners, patches, reads, writes
from dray.server.actions import ActionTable
from dray.server.engine import Call, Engine
from dray.server.gate import selected_name
from dray.server.http import Answer, Peer, Request, Stream
from dray.server.options import list_options
from dray.server.routes import Route
from dray.server.security.authorization import Attributes, Authorizer, forbidden
from dray.server.security.default_roles import default_objects
from dray.server.security.identity import Identity, authenticated, service_account_groups, service_account_user
from dray.store import Closed, Event, EventType, Expired, Slow, StorageError

T = TypeVar("T", bound=Object)

SYSTEM_NAMESPACE = "kube-system"


def component_identity(component: str) -> Identity:
    """The identity with the least-privilege role of a component of dray.

    `kube-scheduler` and `kube-controller-manager` are users, as in Kubernetes; a controller is the ServiceAccount of
    its name. Raises ValueError if no role is meant for it.
    """
    users, accounts = _components()
    if f"system:{component}" in users:
        return authenticated(f"system:{component}")
    if component in accounts:
        user = service_account_user(SYSTEM_NAMESPACE, component)
        return authenticated(user, service_account_groups(SYSTEM_NAMESPACE))
    known = sorted({*accounts, *(user.removeprefix("system:") for user in users)})
    raise ValueError(f"no role is meant for a component {component!r}; there are {', '.join(known)}")


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


class LocalClient:
    """Acts as one identity; what that one may not do is refused as it would be over HTTP."""

    def __init__(self, engine: Engine, identity: Identity, authorizer: Authorizer, actions: ActionTable) -> None:
        self._engine = engine
        self._identity = identity
        self._authorizer = authorizer
        self._actions = actions
        self._granted: set[tuple[str, str, str, str]] = set()
        self._granted_in = -1

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """One object."""
        with _AS_API_ERRORS:
            call = self._call("get", kind, namespace, name)
            return cast(Object, writes.current(self._engine, call).obj)

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> ObjectList[Object]:
        """All objects that selectors select."""
        with _AS_API_ERRORS:
            call = self._call("list", kind, namespace, selected=selected_name(fields))
            options = list_options({"labelSelector": labels, "fieldSelector": fields})
            page = reads.list_page(self._engine, call, options)
            return ObjectList(tuple(record.obj for record in page.records), page.meta.resource_version)

    async def watch(
        self, kind: Kind, namespace: str = "", *, revision: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent[Object]]:
        """Changes after a revision, as the stored objects themselves."""
        with _AS_API_ERRORS:
            call = self._call("watch", kind, namespace, selected=selected_name(fields))
            options = list_options({"labelSelector": labels, "fieldSelector": fields})
            test = reads.matcher(call, options)
            watcher = self._engine.store.watch(kind.storage.resource, int(revision), namespace or None)
        with watcher:
            while True:
                with _AS_API_ERRORS:
                    events = await watcher.next()
                for event in events:
                    seen = _seen(event, test)
                    if seen is not None:
                        yield seen

    async def create(self, obj: T) -> T:
        """Stores a new object."""
        kind = by_kind(obj.api_version, obj.kind)
        with _AS_API_ERRORS:
            call = self._call("create", kind, obj.metadata.namespace)
            action = self._actions.find(call.route)
            if action is not None:
                answer = await action(self._engine, call, _request("POST", {}, "application/json", obj))
                return codec.decode(_body(answer), type(obj))
            return cast(T, (await writes.create(self._engine, call, obj)).obj)

    async def update(self, obj: T, subresource: str = "") -> T:
        """Replaces an object."""
        kind, meta = by_kind(obj.api_version, obj.kind), obj.metadata
        with _AS_API_ERRORS:
            call = self._call("update", kind, meta.namespace, meta.name, subresource)
            record = await writes.update(
                self._engine, call, lambda _: obj, field_owners.track, expected=meta.resource_version, uid=meta.uid
            )
            return cast(T, record.obj)

    async def update_with_status(self, obj: T) -> T:
        """Replaces an object and its status at once: judged as two updates, stored as one."""
        kind, meta = by_kind(obj.api_version, obj.kind), obj.metadata
        with _AS_API_ERRORS:
            call = self._call("update", kind, meta.namespace, meta.name)
            status = self._call("update", kind, meta.namespace, meta.name, "status")
            record = await writes.update(
                self._engine,
                call,
                lambda _: obj,
                field_owners.track,
                expected=meta.resource_version,
                uid=meta.uid,
                then=status,
            )
            return cast(T, record.obj)

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
            query = {"fieldManager": field_manager, **({"force": "true"} if force else {})}
            request = _request("PATCH", query, format.value, patch)
            return cast(Object, (await patches.patch(self._engine, call, request)).record.obj)

    async def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None) -> None:
        """Deletes an object."""
        with _AS_API_ERRORS:
            call = self._call("delete", kind, namespace, name)
            await deletes.delete(self._engine, call, deletes.options(options, {}))

    async def delete_collection(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> None:
        """Deletes all objects that selectors select, one by one."""
        with _AS_API_ERRORS:
            self._call("deletecollection", kind, namespace, selected=selected_name(fields))
        for obj in (await self.list(kind, namespace, labels=labels, fields=fields)).items:
            await self.delete(kind, obj.metadata.namespace, obj.metadata.name)

    async def post(
        self, kind: Kind, namespace: str, name: str, subresource: str, body: Mapping[str, Any] | Object
    ) -> dict[str, Any]:
        """Posts to a subresource."""
        with _AS_API_ERRORS:
            call = self._call("create", kind, namespace, name, subresource)
            action = self._actions.find(call.route)
            if action is None:
                raise errors.page_not_found()
            answer = await action(self._engine, call, _request("POST", {}, "application/json", body))
            return cast(dict[str, Any], codec.parse_json(_body(answer)))

    def _call(
        self, verb: str, kind: Kind, namespace: str = "", name: str = "", subresource: str = "", selected: str = ""
    ) -> Call:
        """The call, if the identity may make it; `selected` is the name that a list or watch selects."""
        generation = self._authorizer.generation
        if generation != self._granted_in:
            self._granted_in = generation
            self._granted.clear()
        if (verb, kind.resource, subresource, namespace) not in self._granted:
            self._check(verb, kind, namespace, name or selected, subresource)
        route = Route(verb, kind, kind.versions[0], namespace if kind.namespaced else "", name, subresource)
        return Call(route, self._identity, self._engine.clock(), warnings=[])

    def _check(self, verb: str, kind: Kind, namespace: str, name: str, subresource: str) -> None:
        """Raises ApiError unless the identity may do this. What it may do whatever the name is asked once."""
        unnamed = Attributes(verb, kind.group, kind.plural, subresource, namespace)
        if self._authorizer.allowed(self._identity, unnamed).allowed:
            self._granted.add((verb, kind.resource, subresource, namespace))
            return
        attributes = Attributes(verb, kind.group, kind.plural, subresource, namespace, name)
        decision = self._authorizer.allowed(self._identity, attributes)
        if not decision.allowed:
            raise forbidden(self._identity, attributes, decision)


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
            raise errors.unavailable("the server is shutting down") from None
        if isinstance(error, StorageError):
            raise errors.internal(str(error)) from error


_AS_API_ERRORS = _ApiErrors()


def _seen(event: Event, test: Callable[[Object], bool] | None) -> WatchEvent[Object] | None:
    """A change as somebody sees it who sees only what a selector selects."""
    after = event.type is not EventType.DELETED and (test is None or test(event.record.obj))
    before = event.previous is not None and (test is None or test(event.previous.obj))
    if after:
        return WatchEvent("MODIFIED" if before else "ADDED", event.record.obj)
    return WatchEvent("DELETED", event.record.obj) if before else None


def _request(method: str, query: dict[str, str], content_type: str, body: Any) -> Request:
    headers = {"content-type": content_type}
    if isinstance(body, Binding | Eviction):
        return Request(method, "", query, headers, b"", Peer(""), document=body)
    if isinstance(body, Object):
        return Request(method, "", query, headers, codec.encode(body), Peer(""))
    return Request(method, "", query, headers, msgspec.json.encode(body, enc_hook=encode_value), Peer(""))


def _body(answer: Answer) -> bytes:
    if isinstance(answer, Stream):
        raise errors.method_not_allowed()
    return answer.body

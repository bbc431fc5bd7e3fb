"""A client for components in the same process: the same verbs, rules and rights, without HTTP and without encoding."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar, cast

import msgspec

from dray.api.meta import DeleteOptions, Object
from dray.api.registry import Kind, by_kind
from dray.client.interface import ObjectList, PatchFormat, WatchEvent, WatchExpired
from dray.server import deletes, errors, patches, reads, writes
from dray.server.actions import ActionTable
from dray.server.engine import Call, Engine
from dray.server.http import Peer, Request, Stream
from dray.server.options import list_options
from dray.server.routes import Route
from dray.server.security.authorization import Attributes, Authorizer, forbidden
from dray.server.security.identity import Identity
from dray.store import EventType, Expired, StoreError

T = TypeVar("T", bound=Object)


class LocalClient:
    """Acts as one identity; what that one may not do is refused as it would be over HTTP."""

    def __init__(self, engine: Engine, identity: Identity, authorizer: Authorizer, actions: ActionTable) -> None:
        self._engine = engine
        self._identity = identity
        self._authorizer = authorizer
        self._actions = actions

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """One object."""
        call = self._call("get", kind, namespace, name)
        return cast(Object, writes.current(self._engine, call).obj)

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> ObjectList[Object]:
        """All objects that selectors select."""
        call = self._call("list", kind, namespace)
        options = list_options({"labelSelector": labels, "fieldSelector": fields})
        page = reads.list_page(self._engine, call, options)
        return ObjectList(tuple(record.obj for record in page.records), page.meta.resource_version)

    async def watch(
        self, kind: Kind, namespace: str = "", *, revision: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent[Object]]:
        """Changes after a revision, as the stored objects themselves."""
        call = self._call("watch", kind, namespace)
        options = list_options({"labelSelector": labels, "fieldSelector": fields})
        test = reads.matcher(call, options)
        try:
            watcher = self._engine.store.watch(kind.resource, int(revision), namespace or None)
        except Expired as error:
            raise WatchExpired(str(error)) from None
        with watcher:
            while True:
                try:
                    events = await watcher.next()
                except StoreError as error:
                    raise WatchExpired(str(error)) from None
                for event in events:
                    after = event.type is not EventType.DELETED and (test is None or test(event.record.obj))
                    before = event.previous is not None and (test is None or test(event.previous.obj))
                    if after:
                        yield WatchEvent("MODIFIED" if before else "ADDED", event.record.obj)
                    elif before:
                        yield WatchEvent("DELETED", event.record.obj)

    async def create(self, obj: T) -> T:
        """Stores a new object."""
        kind = by_kind(obj.api_version, obj.kind)
        call = self._call("create", kind, obj.metadata.namespace)
        return cast(T, (await writes.create(self._engine, call, obj)).obj)

    async def update(self, obj: T, subresource: str = "") -> T:
        """Replaces an object."""
        kind, meta = by_kind(obj.api_version, obj.kind), obj.metadata
        call = self._call("update", kind, meta.namespace, meta.name, subresource)
        expected = meta.resource_version
        record = await writes.update(self._engine, call, lambda _: obj, patches.track, expected=expected, uid=meta.uid)
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
        call = self._call("patch", kind, namespace, name, subresource)
        call.field_manager = field_manager
        query = {"fieldManager": field_manager, "force": "true" if force else "false"}
        request = _request("PATCH", query, format.value, patch)
        return cast(Object, (await patches.patch(self._engine, call, request)).record.obj)

    async def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None) -> None:
        """Deletes an object."""
        call = self._call("delete", kind, namespace, name)
        await deletes.delete(self._engine, call, deletes.options(options, {}))

    async def post(
        self, kind: Kind, namespace: str, name: str, subresource: str, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Posts to a subresource."""
        call = self._call("create", kind, namespace, name, subresource)
        action = self._actions.find(call.route)
        if action is None:
            raise errors.page_not_found()
        answer = await action(self._engine, call, _request("POST", {}, "application/json", body))
        if isinstance(answer, Stream):
            raise errors.method_not_allowed()
        return cast(dict[str, Any], msgspec.json.decode(answer.body))

    def _call(self, verb: str, kind: Kind, namespace: str = "", name: str = "", subresource: str = "") -> Call:
        attributes = Attributes(verb, kind.group, kind.plural, subresource, namespace, name)
        decision = self._authorizer.allowed(self._identity, attributes)
        if not decision.allowed:
            raise forbidden(self._identity, attributes, decision)
        route = Route(verb, kind, kind.versions[0], namespace if kind.namespaced else "", name, subresource)
        return Call(route, self._identity, self._engine.clock(), warnings=[])


def _request(method: str, query: dict[str, str], content_type: str, body: Any) -> Request:
    data = msgspec.json.encode(body)
    return Request(method, "", query, {"content-type": content_type}, data, Peer(""))

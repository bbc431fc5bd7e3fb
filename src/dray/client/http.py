"""The client over HTTP(S): any Kubernetes API server, dray's own or another.

Objects go in and out in hub shape, whatever version the server has. Fields that only a newer server knows are not in
them, and still nothing is lost by writing: once this client has read an object of a kind with such fields, an `update`
of that kind reads the stored document first, changes in it what the caller changed, and sends the whole, bound to the
version it read. (A caller that only knows a few fields should patch: a patch cannot lose anything.)
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar, cast
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from dray.api import codec, wire
from dray.api.generated.core import Event, Pod
from dray.api.meta import DeleteOptions, Object
from dray.api.registry import Kind, by_kind
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.api.struct import encode_value
from dray.client import opaque_parts
from dray.client.documents import Form, graft, read_page
from dray.client.foreign_kinds import find_foreign_kinds
from dray.client.interface import ObjectList, PatchFormat, WatchEvent, WatchExpired
from dray.client.kubeconfig import Connection
from dray.client.served_versions import ServedVersions
from dray.client.transport import Transport, failure_of

T = TypeVar("T", bound=Object)

PAGE = 1000
WATCH_SECONDS = (300, 600)
"""A watch is asked to end after a time in this range, so that those of many clients do not all end at once."""
QUIET_SECONDS = 30.0
LONGEST_EVENT = 32 * 1024 * 1024
UPDATE_ATTEMPTS = 5


class HttpClient:
    """Implements `dray.client.Client`. Use it in one event loop, and close it."""

    def __init__(self, connection: Connection, **transport: Any) -> None:
        """`transport`: what `Transport` takes besides (agent, sleep, warn, credential). Raises KubeconfigError."""
        self._transport = Transport(connection, **transport)
        self._versions = ServedVersions(self._transport)
        self._incomplete: set[str] = set()

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends all connections."""
        await self._transport.close()

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """One object. Raises ApiError (404)."""
        form = await self._form(kind)
        return self._read(form, await self._request("GET", form, _path(form, namespace, name)))

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> ObjectList:
        """All objects that selectors select, read in pages that fit together."""
        try:
            return await self._list(kind, namespace, labels, fields, str(PAGE))
        except ApiError as error:
            if error.code != 410:
                raise
        # The pages took so long that the first one's revision is gone: ask for everything at once.
        return await self._list(kind, namespace, labels, fields, "")

    async def watch(
        self, kind: Kind, namespace: str = "", *, revision: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent]:
        """Changes after a revision. Raises WatchExpired when the server cannot go back that far."""
        form = await self._form(kind)
        seconds = random.randint(*WATCH_SECONDS)
        query = _selection(labels, fields) | {
            "watch": "true",
            "resourceVersion": revision,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        try:
            async with self._transport.stream(_path(form, namespace), query, seconds + QUIET_SECONDS) as chunks:
                async for line in _lines(chunks):
                    yield self._event(form, line)
        except ApiError as error:
            if error.code == 410:
                raise WatchExpired(str(error)) from None
            self._notice(form, error)
            raise

    async def create(self, obj: T) -> T:
        """Stores a new object. Raises ApiError (409 if it exists)."""
        form = await self._form(by_kind(obj.api_version, obj.kind))
        path = _path(form, obj.metadata.namespace)
        return cast(T, self._read(form, await self._request("POST", form, path, form.write(obj))))

    async def try_create(self, obj: T) -> T:
        """What the server would store for a new object: nothing is stored. Raises ApiError as `create` does.

        Fields that it does not know are missing, without a warning: whoever tries it looks.
        """
        form = await self._form(by_kind(obj.api_version, obj.kind))
        path = _path(form, obj.metadata.namespace)
        data = await self._request("POST", form, path, form.write(obj), {"dryRun": "All", "fieldValidation": "Ignore"})
        return cast(T, self._read(form, data))

    async def update(self, obj: T, subresource: str = "") -> T:
        """Replaces an object; with a resourceVersion only that version of it. Raises ApiError (409)."""
        form = await self._form(by_kind(obj.api_version, obj.kind))
        path = _path(form, obj.metadata.namespace, obj.metadata.name, subresource)
        if form.kind.resource not in self._incomplete:
            try:
                return cast(T, self._read(form, await self._request("PUT", form, path, form.write(obj))))
            except ApiError as error:
                if error.code != 422 or subresource or form.kind.resource not in opaque_parts.KINDS:
                    raise
                return cast(T, await self._update_finalizers(form, path, obj, error))
        for attempt in range(UPDATE_ATTEMPTS):
            body = await self._completed(form, obj)
            try:
                return cast(T, self._read(form, await self._request("PUT", form, path, body)))
            except ApiError as error:
                # Without a version in the object the caller wants to win; somebody else was between our two requests.
                if error.code != 409 or obj.metadata.resource_version or attempt == UPDATE_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    async def _update_finalizers(self, form: Form, path: str, obj: Object, refused: ApiError) -> Object:
        """Stores the finalizers of an object that is refused because the server told its opaque parts in other bytes.

        Raises ApiError: `refused` if there is nothing of the kind to it.
        """
        stored = self._read(form, await self._request("GET", form, path))
        if not opaque_parts.differ_in_finalizers(stored, obj):
            raise refused
        data = await self._transport.request("GET", path, accept=wire.MEDIA_TYPE)
        try:
            body = opaque_parts.with_finalizers(data, obj.metadata.finalizers)
        except wire.WireError:
            raise refused from None
        return self._read(form, await self._request("PUT", form, path, body, content_type=wire.MEDIA_TYPE))

    async def update_with_status(self, obj: T) -> T:
        """Replaces an object, then its status, with a request for each. Raises ApiError (409)."""
        stored = await self.update(obj)
        return await self.update(replace(stored, status=obj.status), subresource="status")  # type: ignore[attr-defined]  # a kind with a status

    async def bind_with_claims(self, _pod: Pod, _node: str, _claims: Sequence[ResourceClaim]) -> None:
        """Nothing: over HTTP each object is written by itself."""

    async def create_events(self, _events: Sequence[Event]) -> None:
        """Nothing: over HTTP each object is written by itself."""

    async def create_claims(self, _pod: Pod, _claims: Mapping[str, ResourceClaim]) -> None:
        """Nothing: over HTTP each object is written by itself."""

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
        """Changes an object by a patch (plain values, in hub shape). Raises ApiError."""
        form = await self._form(kind)
        query = {"fieldManager": field_manager} if field_manager else {}
        if force:
            query["force"] = "true"
        body = msgspec.json.encode(_in_version(form, patch), enc_hook=encode_value)
        path = _path(form, namespace, name, subresource)
        return self._read(form, await self._request("PATCH", form, path, body, query, format.value))

    async def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None) -> None:
        """Deletes an object. Raises ApiError (404, 409 for preconditions)."""
        form = await self._form(kind)
        body = codec.encode(options) if options is not None else None
        await self._request("DELETE", form, _path(form, namespace, name), body)

    async def delete_collection(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> None:
        """Deletes all objects that selectors select. Raises ApiError."""
        form = await self._form(kind)
        await self._request("DELETE", form, _path(form, namespace), query=_selection(labels, fields))

    async def post(
        self, kind: Kind, namespace: str, name: str, subresource: str, body: Mapping[str, Any] | Object
    ) -> dict[str, Any]:
        """Posts to a subresource. An eviction that a budget does not allow now (429) is for the caller to repeat."""
        form = await self._form(kind)
        path = _path(form, namespace, name, subresource)
        data = await self._request("POST", form, path, codec.encode(body), retry=subresource != "eviction")
        return cast(dict[str, Any], codec.parse_json(data))

    async def foreign_kinds(self) -> Sequence[Kind]:
        """The kinds that the server has and dray does not know. Raises ApiError or OSError if that cannot be told."""
        return await find_foreign_kinds(self._transport)

    async def read(self, path: str) -> bytes:
        """What the server says at a path that is no object, such as `/metrics`. Raises ApiError."""
        return await self._transport.request("GET", path)

    async def versions_of(self, group: str) -> tuple[str, ...]:
        """The versions of a group that the server has; none if it has no such group. Raises ApiError."""
        try:
            found = codec.parse_json(await self.read(f"/apis/{group}"))
        except ApiError as error:
            if error.code != 404:
                raise
            return ()
        return tuple(str(one["version"]) for one in found.get("versions", ()))

    async def resources_of(self, api_version: str) -> frozenset[str]:
        """The names of the resources in a version of a group. Raises ApiError."""
        return await self._versions.served(api_version)

    async def server_version(self) -> str:
        """What the server calls its version, such as `v1.37.0`; dray's has `+dray` in it. Raises ApiError."""
        found: dict[str, str] = codec.parse_json(await self._transport.request("GET", "/version"))
        return found.get("gitVersion", "")

    async def _list(self, kind: Kind, namespace: str, labels: str, fields: str, limit: str) -> ObjectList:
        form = await self._form(kind)
        query = _selection(labels, fields) | ({"limit": limit} if limit else {})
        items: list[Object] = []
        while True:
            page = read_page(form, await self._request("GET", form, _path(form, namespace), query=query))
            items.extend(self._read(form, bytes(item)) for item in page.items or ())
            if not page.metadata.continue_:
                return ObjectList(tuple(items), page.metadata.resource_version)
            query["continue"] = page.metadata.continue_

    def _event(self, form: Form, line: bytes) -> WatchEvent:
        try:
            event = _event_decoder.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ConnectionError(f"the watch of {form.kind.plural} was cut off in the middle: {error}") from None
        data = bytes(event.object)
        if event.type == "ERROR":
            raise failure_of(data)
        if event.type == "BOOKMARK":
            revision = msgspec.json.decode(data, type=_Bookmark).metadata.resource_version
            return WatchEvent(event.type, form.bookmark(revision))
        return WatchEvent(event.type, self._read(form, data))

    async def group_of(self, kind: Kind) -> str:
        """The group in which the server has a kind: dray's own where it is a custom resource. Raises ApiError."""
        return (await self._form(kind)).kind.group

    async def _form(self, kind: Kind) -> Form:
        return await self._versions.form_of(kind)

    def _read(self, form: Form, data: bytes) -> Object:
        obj, incomplete = form.read(data)
        if incomplete:
            self._incomplete.add(form.kind.resource)
        return obj

    async def _completed(self, form: Form, obj: Object) -> bytes:
        """The document of an object, with what the stored one has besides. Raises ApiError."""
        meta = obj.metadata
        stored = await self._request("GET", form, _path(form, meta.namespace, meta.name))
        before, _ = form.read(stored)
        expected, actual = meta.resource_version, before.metadata.resource_version
        if expected and expected != actual:
            message = (
                f'Operation cannot be fulfilled on {form.kind.resource} "{meta.name}": the object has been modified'
            )
            raise ApiError(409, "Conflict", message)
        document = graft(codec.parse_json(stored), form.plain(before), form.plain(obj))
        document["metadata"]["resourceVersion"] = actual
        return msgspec.json.encode(document)

    async def _request(
        self,
        method: str,
        form: Form,
        path: str,
        body: bytes | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        *,
        retry: bool = True,
    ) -> bytes:
        try:
            return await self._transport.request(method, path, query, body, content_type, retry=retry)
        except ApiError as error:
            is_page = self._notice(form, error)
            if error.code == 403 or is_page:
                # Rights are asked before the kind: who may not read what a server does not have gets 403 (RBAC).
                # Who may gets "page not found", which says nothing.
                await self._versions.check(form.kind)
            raise

    def _notice(self, form: Form, error: ApiError) -> bool:
        """Whether a page, other than an object, is missing: the server's versions have changed."""
        details = error.status.details
        is_page = error.code == 404 and (details is None or not details.name)
        if is_page:
            self._versions.forget(form.kind)
        return is_page


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Revision(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Bookmark(msgspec.Struct):
    metadata: _Revision


_event_decoder = msgspec.json.Decoder(_Event)


def _path(form: Form, namespace: str = "", name: str = "", subresource: str = "") -> str:
    parts = ["apis" if form.kind.group else "api", *form.api_version.split("/")]
    if namespace and form.kind.namespaced:
        parts += ["namespaces", namespace]
    parts += [form.kind.plural, *filter(None, (name, subresource))]
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _selection(labels: str, fields: str) -> dict[str, str]:
    return {name: value for name, value in (("labelSelector", labels), ("fieldSelector", fields)) if value}


def _in_version(form: Form, patch: Any) -> Any:
    """A patch for the version that is on the wire. Raises ApiError if it is about what looks different there."""
    if isinstance(patch, dict):
        touched = set(patch)
        if "apiVersion" in patch:
            patch = {**patch, "apiVersion": form.api_version}
    else:  # a JSON patch: operations with paths such as /spec/devices
        touched = {str(operation.get("path", "")).strip("/").split("/")[0] for operation in patch}
    if "spec" in touched and not form.has_hub_shape:
        message = f"the spec of a {form.kind.kind} cannot be patched in {form.api_version}: update the object instead"
        raise ApiError(400, "BadRequest", message)
    return patch


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a stream. Raises ConnectionError for one without end."""
    rest = b""
    async for chunk in chunks:
        first, *more = chunk.split(b"\n")
        rest += first
        for line in more:
            if rest.strip():
                yield rest
            rest = line
        if len(rest) > LONGEST_EVENT:
            raise ConnectionError(f"the server sent an event larger than {LONGEST_EVENT} bytes")
    if rest.strip():
        yield rest

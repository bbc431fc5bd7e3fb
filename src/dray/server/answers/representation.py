"""The form of an answer: objects as they are, only their metadata, or rows of a table, as the client accepts."""

from __future__ import annotations

from dray.api import codec
from dray.api.meta import ListMeta, ObjectMeta, Status, StatusDetails
from dray.api.registry import CLUSTER_GROUP, DRAY_GROUP, RESOURCE_GROUP, Kind
from dray.api.wire import MEDIA_TYPE
from dray.process.http import JSON, Request, Response
from dray.process.http.messages import YAML
from dray.server import errors, objects
from dray.server.answers.accepted import ANY_JSON, Accepted, accepted
from dray.server.answers.tables import Tables
from dray.server.beside import LARGE
from dray.server.engine import Call, Engine
from dray.server.protobuf import tables
from dray.server.strategies import View
from dray.server.verbs.reads import Page
from dray.store import Record

OFFERED = (JSON, YAML, MEDIA_TYPE)
OFFERED_TO_WATCHES = ("application/json;stream=watch", f"{MEDIA_TYPE};stream=watch")
ROW_OBJECTS = ("None", "Metadata", "Object")
"""What rows of a table can carry of their objects."""
_RETURNS_DELETED = frozenset({"pods", "services", "serviceaccounts", "persistentvolumes", "persistentvolumeclaims"})


def returns_deleted(kind: Kind, version: str) -> bool:
    """Whether a delete is answered with what was deleted, and not with a Status."""
    if kind.kind == "DeviceTaintRule" and version == "v1":
        return False  # its other versions keep to what they have always done
    return kind.group in (RESOURCE_GROUP, CLUSTER_GROUP, DRAY_GROUP) or kind.resource in _RETURNS_DELETED


class Representation:
    """Objects as they are."""

    content_type = JSON
    in_protobuf = False
    """Whether the client gets in protobuf what is JSON here; `other_forms`, long lists and watches see to that."""
    in_yaml = False
    """The same for YAML."""

    def __init__(self, call: Call) -> None:
        self._kind = call.route.kind
        self._version = call.route.version

    def render(self, record: Record) -> bytes:
        """One object."""
        return objects.render(self._kind, self._version, record)

    def is_ready(self, record: Record) -> bool:
        """Whether an object is there as it is shown, or so small that it does not matter."""
        return record.size <= LARGE or objects.is_stored_form(self._kind, self._version)

    def bookmark(self, meta: ObjectMeta) -> bytes:
        """An object that tells a watch of nothing but its metadata."""
        return objects.render_bookmark(self._kind.kind, self._kind.api_version_of(self._version), meta)

    def one(self, record: Record, code: int = 200) -> Response:
        """An answer with one object."""
        return Response(code, self.render(record), self.content_type)

    def many(self, page: Page) -> Response:
        """An answer with a list."""
        body = objects.render_list(self._kind, self._version, page.records, page.meta)
        return Response(200, body, self.content_type)

    def deleted(self, record: Record, *, gone: bool) -> Response:
        """The answer to a delete: the object for some kinds or while it stays, a Status otherwise."""
        kind = self._kind
        if not gone or returns_deleted(kind, self._version):
            return self.one(record)
        meta = record.obj.metadata
        details = StatusDetails(name=meta.name, group=kind.group, kind=kind.plural, uid=meta.uid)
        return Response(200, codec.encode(Status(status="Success", details=details)), self.content_type)


class _Made(Representation):
    """What is made of objects when it is asked for."""

    def is_ready(self, record: Record) -> bool:
        """Of what is large it is much work."""
        return record.size <= LARGE


class MetadataOnly(_Made):
    """Objects reduced to their metadata."""

    def render(self, record: Record) -> bytes:
        """One object's metadata."""
        return codec.encode(objects.metadata_only(record))

    def bookmark(self, meta: ObjectMeta) -> bytes:
        """A bookmark of the same kind as the objects: clients of metadata know no other."""
        return objects.render_bookmark(objects.METADATA_KIND, objects.METADATA_VERSION, meta)

    def many(self, page: Page) -> Response:
        """A list of metadata."""
        return Response(200, objects.render_metadata_list(page.records, page.meta), self.content_type)


class AsTable(_Made):
    """Rows for people."""

    def __init__(self, call: Call, form: str, include: str) -> None:
        super().__init__(call)
        if include not in ROW_OBJECTS:
            raise errors.bad_request(f"includeObject is {include!r}, and must be None, Metadata or Object")
        self._tables = Tables(call.route.kind, call.route.version, call.now, form, include)
        self._with_columns = True

    def render(self, record: Record) -> bytes:
        """A table of one row; in a watch only the first one repeats the columns."""
        meta = ListMeta(resource_version=record.obj.metadata.resource_version)
        data = self._tables.render([record], meta, columns=self._with_columns)
        self._with_columns = False
        return data

    def many(self, page: Page) -> Response:
        """A table of all rows."""
        return Response(200, self._tables.render(page.records, page.meta, columns=True), self.content_type)


class AsView(_Made):
    """A part of an object in a shape of its own."""

    def __init__(self, call: Call, view: View) -> None:
        super().__init__(call)
        self._show = view.show

    def render(self, record: Record) -> bytes:
        """The part of one object."""
        return codec.encode(self._show(record.obj))


def choose(engine: Engine, request: Request, call: Call) -> Representation:
    """What the client likes most of what it accepts and the server has. Raises ApiError if there is none."""
    if call.route.subresource:
        view = engine.strategies.view(call.route.kind, call.route.subresource)
        if view is not None:
            return AsView(call, view)
    header = request.headers.get("accept", JSON)
    if header == JSON or not header:
        return Representation(call)
    for wanted in accepted(header):
        if (form := _form(wanted, request, call)) is not None:
            form.in_protobuf = wanted.media == MEDIA_TYPE
            form.in_yaml = wanted.media == YAML
            return form
    raise errors.not_acceptable(OFFERED_TO_WATCHES if call.route.verb == "watch" else OFFERED)


def _form(wanted: Accepted, request: Request, call: Call) -> Representation | None:
    """What a client gets that accepts this; None if the server does not have it."""
    if wanted.media not in (*ANY_JSON, MEDIA_TYPE) and (wanted.media != YAML or call.route.verb == "watch"):
        return None
    match wanted.shape:
        case "Table" if wanted.media != MEDIA_TYPE and _is_stored(call):
            include = request.query.get("includeObject", "") or "Metadata"
            return AsTable(call, wanted.parameters.get("v", "v1"), include)
        case "PartialObjectMetadata" | "PartialObjectMetadataList" as form:
            is_one = form == "PartialObjectMetadata"
            return MetadataOnly(call) if _is_stored(call) and (is_one or not call.route.name) else None
        case "" if wanted.media != MEDIA_TYPE or _has_messages(call):
            return Representation(call)
    return None


def _is_stored(call: Call) -> bool:
    """What is only answered (a review) has neither rows nor metadata."""
    return bool(call.route.subresource) or "get" in call.route.kind.verbs or "list" in call.route.kind.verbs


def _has_messages(call: Call) -> bool:
    kind = call.route.kind
    return not kind.is_custom and tables.is_known(kind.api_version_of(call.route.version), kind.kind)


def check_plain(request: Request) -> None:
    """What is answered to a question, such as a review, has no table. Raises ApiError if nothing else is accepted."""
    header = request.header("accept")
    if header and all(wanted.shape for wanted in accepted(header)):
        raise errors.not_acceptable(OFFERED)

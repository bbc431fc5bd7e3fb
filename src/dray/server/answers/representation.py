"""The form of an answer: objects as they are, only their metadata, or rows of a table, as the client accepts."""

from __future__ import annotations

import msgspec

from dray.api import codec
from dray.api.meta import ListMeta, ObjectMeta, Status, StatusDetails
from dray.api.registry import CLUSTER_GROUP, DRAY_GROUP, RESOURCE_GROUP, Kind
from dray.api.text_memory import remember_texts
from dray.process.http import JSON, Request, Response
from dray.server import errors, objects
from dray.server.answers.tables import Tables
from dray.server.answers.yaml_answers import YAML
from dray.server.engine import Call, Engine
from dray.server.strategies import View
from dray.server.verbs.reads import Page
from dray.store import Record

OFFERED = (JSON, YAML)
OFFERED_TO_WATCHES = ("application/json;stream=watch",)
_RETURNS_DELETED = frozenset({"pods", "services", "serviceaccounts", "persistentvolumes", "persistentvolumeclaims"})


def returns_deleted(kind: Kind) -> bool:
    """Whether a delete is answered with what was deleted, and not with a Status."""
    return kind.group in (RESOURCE_GROUP, CLUSTER_GROUP, DRAY_GROUP) or kind.resource in _RETURNS_DELETED


class Representation:
    """Objects as they are."""

    content_type = JSON

    def __init__(self, call: Call) -> None:
        self._kind = call.route.kind
        self._version = call.route.version

    def render(self, record: Record) -> bytes:
        """One object."""
        return objects.render(self._kind, self._version, record)

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
        if not gone or returns_deleted(kind):
            return self.one(record)
        meta = record.obj.metadata
        details = StatusDetails(name=meta.name, group=kind.group, kind=kind.plural, uid=meta.uid)
        return Response(200, codec.encode(Status(status="Success", details=details)), self.content_type)


class MetadataOnly(Representation):
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


class AsTable(Representation):
    """Rows for people."""

    def __init__(self, call: Call, version: str, include: str) -> None:
        super().__init__(call)
        self._tables = Tables(call.route.kind, call.now, version, include)
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


class AsView(Representation):
    """A part of an object in a shape of its own."""

    def __init__(self, call: Call, view: View) -> None:
        super().__init__(call)
        self._show = view.show

    def render(self, record: Record) -> bytes:
        """The part of one object."""
        return codec.encode(self._show(record.obj))


class _Accepted(msgspec.Struct, frozen=True):
    media: str
    parameters: dict[str, str]


@remember_texts(256)
def _accepted(header: str) -> tuple[_Accepted, ...]:
    found = []
    for part in header.split(","):
        media, *rest = [piece.strip() for piece in part.split(";")]
        pairs = (piece.partition("=") for piece in rest)
        found.append(_Accepted(media.lower(), {name.strip(): value.strip() for name, _, value in pairs}))
    return tuple(found)


def choose(engine: Engine, request: Request, call: Call) -> Representation:
    """The first form that the client accepts and the server has. Raises ApiError if there is none."""
    if call.route.subresource:
        view = engine.strategies.view(call.route.kind, call.route.subresource)
        if view is not None:
            return AsView(call, view)
    header = request.header("accept")
    if not header or header == JSON:
        return Representation(call)
    is_watch = call.route.verb == "watch"
    for wanted in _accepted(header):
        if wanted.media not in (JSON, "application/*", "*/*") and (wanted.media != YAML or is_watch):
            continue
        match wanted.parameters.get("as", ""):
            case "Table":
                version = wanted.parameters.get("v", "v1")
                return AsTable(call, version, request.query.get("includeObject", "Metadata"))
            case "PartialObjectMetadata" | "PartialObjectMetadataList" as form:
                if form.endswith("List") and call.route.name:
                    continue
                return MetadataOnly(call)
            case "":
                return Representation(call)
    raise errors.not_acceptable(OFFERED_TO_WATCHES if is_watch else OFFERED)

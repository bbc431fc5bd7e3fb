"""What clients can ask for: one `Operation` per path and method, without regard to the form of a document."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dray.api import schema
from dray.api.registry import CLUSTER_GROUP, DRAY_GROUP, Kind, Subresource
from dray.api.schema import GroupVersionKind
from dray.api.schema.facts import META_PACKAGE
from dray.server.answers.representation import returns_deleted
from dray.server.discovery.openapi import custom_schemas, parameters
from dray.server.discovery.openapi.parameters import Parameter
from dray.server.patch.formats import FORMATS, STRATEGIC_PATCH
from dray.server.routes import served_subresources

STATUS = f"{META_PACKAGE}.Status"
PATCH_BODY = f"{META_PACKAGE}.Patch"
DELETE_OPTIONS = f"{META_PACKAGE}.DeleteOptions"
RESOURCE_LIST = f"{META_PACKAGE}.APIResourceList"

_ANSWERED_WITH_STATUS = frozenset({"Binding", "Eviction"})
"""Kinds that are posted to have something done, and never read."""

JSON_BODY = ("application/json", "application/yaml")


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method on one path. `body` and `result` are names of definitions; codes are those of success."""

    path: str
    method: str
    action: str
    id: str
    description: str
    result: str
    body: str = ""
    body_types: tuple[str, ...] = JSON_BODY
    body_required: bool = True
    parameters: tuple[Parameter, ...] = ()
    codes: tuple[int, ...] = (200,)
    gvk: GroupVersionKind | None = None

    @property
    def path_parameters(self) -> tuple[Parameter, ...]:
        """The placeholders in the path."""
        known = (parameters.NAME, parameters.NAMESPACE)
        return tuple(found for found in known if f"{{{found.name}}}" in self.path)


class _Place(msgspec.Struct, frozen=True):
    """A kind in a version, and where it is served."""

    kind: Kind
    version: str
    base: str

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.kind.group, self.version, self.kind.kind)

    @property
    def definition(self) -> str:
        if self.kind.is_custom:
            return custom_schemas.name_of(self.kind, self.version)
        return schema.for_kind(*self.gvk).name

    @property
    def list_definition(self) -> str:
        if self.kind.is_custom:
            return custom_schemas.name_of(self.kind, self.version, "List")
        return schema.for_kind(self.kind.group, self.version, self.kind.list_kind).name

    @property
    def collection(self) -> str:
        scope = "namespaces/{namespace}/" if self.kind.namespaced else ""
        return f"{self.base}/{scope}{self.kind.plural}"

    def id(self, verb: str, *rest: str) -> str:
        scope = "Namespaced" if self.kind.namespaced else ""
        return verb + group_word(self.kind.group) + self.version.capitalize() + scope + self.kind.kind + "".join(rest)


def group_word(group: str) -> str:
    """`resource.k8s.io` → `Resource`, the core group → `Core`."""
    return (group.split(".")[0] or "core").capitalize()


def base_path(group: str, version: str) -> str:
    """`/apis/GROUP/VERSION`, `/api/v1`."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def operations(group: str, version: str, kinds: list[Kind]) -> Iterator[Operation]:
    """Everything that can be asked of a group in a version."""
    base = base_path(group, version)
    yield Operation(
        path=f"{base}/",
        method="get",
        action="",
        id=f"get{group_word(group)}{version.capitalize()}APIResources",
        description="The resources of this group and version.",
        result=RESOURCE_LIST,
    )
    for kind in kinds:
        place = _Place(kind, version, base)
        yield from _on_collection(place)
        yield from _on_object(place)
        for subresource in served_subresources(kind):
            yield from _on_subresource(place, subresource)


def _on_collection(place: _Place) -> Iterator[Operation]:
    kind, plural = place.kind, place.kind.plural
    if "list" in kind.verbs:
        listing = Operation(
            path=place.collection,
            method="get",
            action="list",
            id=place.id("list"),
            description=f"List or watch {plural}.",
            result=place.list_definition,
            parameters=parameters.LIST,
            gvk=place.gvk,
        )
        yield listing
        if kind.namespaced:
            everywhere = f"{place.base}/{plural}"
            said = f"List or watch {plural} of all namespaces."
            name = place.id("list", "ForAllNamespaces")
            yield msgspec.structs.replace(listing, path=everywhere, description=said, id=name)
    if "create" in kind.verbs:
        yield _write(place, place.collection, "post", f"Create one of {plural}.", place.id("create"))
    if "deletecollection" in kind.verbs:
        yield Operation(
            path=place.collection,
            method="delete",
            action="deletecollection",
            id=place.id("deleteCollection"),
            description=f"Delete all selected {plural}.",
            result=place.list_definition,
            body=DELETE_OPTIONS,
            body_required=False,
            parameters=parameters.DELETE_COLLECTION,
            gvk=place.gvk,
        )


def _on_object(place: _Place) -> Iterator[Operation]:
    kind, one = place.kind, place.kind.kind
    path = f"{place.collection}/{{name}}"
    if "get" in kind.verbs:
        yield _read(place, path, f"Read one {one}.", place.id("read"))
    if "update" in kind.verbs:
        yield _write(place, path, "put", f"Replace one {one}.", place.id("replace"))
    if "patch" in kind.verbs:
        yield _patch(place, path, f"Change parts of one {one}, or apply it.", place.id("patch"))
    if "delete" in kind.verbs:
        yield Operation(
            path=path,
            method="delete",
            action="delete",
            id=place.id("delete"),
            description=f"Delete one {one}.",
            result=place.definition if returns_deleted(kind, place.version) else STATUS,
            body=DELETE_OPTIONS,
            body_required=False,
            parameters=parameters.DELETE,
            codes=(200, 202),
            gvk=place.gvk,
        )


def _on_subresource(place: _Place, subresource: Subresource) -> Iterator[Operation]:
    version = place.version if subresource.group == place.kind.group else subresource.version
    gvk = GroupVersionKind(subresource.group, version, subresource.kind)
    is_part = subresource.group == place.kind.group and subresource.kind == place.kind.kind
    definition = place.definition if is_part else schema.for_kind(*gvk).name
    path = f"{place.collection}/{{name}}/{subresource.name}"
    word, one = subresource.name.capitalize(), place.kind.kind

    def of(operation: Operation) -> Operation:
        body = definition if operation.method in ("put", "post") else operation.body
        result = STATUS if subresource.kind in _ANSWERED_WITH_STATUS else definition
        return msgspec.structs.replace(operation, result=result, body=body, gvk=gvk)

    if "get" in subresource.verbs:
        yield of(_read(place, path, f"Read {subresource.name} of one {one}.", place.id("read", word)))
    if "update" in subresource.verbs:
        yield of(_write(place, path, "put", f"Replace {subresource.name} of one {one}.", place.id("replace", word)))
    if "patch" in subresource.verbs:
        yield of(_patch(place, path, f"Change {subresource.name} of one {one}.", place.id("patch", word)))
    if "create" in subresource.verbs:
        yield of(_write(place, path, "post", f"Post {subresource.name} of one {one}.", place.id("create", word)))


def _read(place: _Place, path: str, description: str, name: str) -> Operation:
    return Operation(
        path=path,
        method="get",
        action="get",
        id=name,
        description=description,
        result=place.definition,
        gvk=place.gvk,
    )


def _write(place: _Place, path: str, method: str, description: str, name: str) -> Operation:
    return Operation(
        path=path,
        method=method,
        action=method,
        id=name,
        description=description,
        result=STATUS if place.kind.kind in _ANSWERED_WITH_STATUS else place.definition,
        body=place.definition,
        parameters=parameters.WRITE,
        codes=(200, 201),
        gvk=place.gvk,
    )


def _patch(place: _Place, path: str, description: str, name: str) -> Operation:
    # Kubernetes knows strategic merge for its built-in kinds only; the cluster kinds are custom resources there.
    is_custom = place.kind.is_custom or place.kind.group in (CLUSTER_GROUP, DRAY_GROUP)
    formats = tuple(one for one in FORMATS if one != STRATEGIC_PATCH) if is_custom else FORMATS
    return Operation(
        path=path,
        method="patch",
        action="patch",
        id=name,
        description=description,
        result=place.definition,
        body=PATCH_BODY,
        body_types=formats,
        parameters=parameters.PATCH,
        codes=(200, 201),
        gvk=place.gvk,
    )

"""A call as dynamic admission sees it: which operation on which resource, and the objects in any of its versions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from dray.admission.request import CREATE, DELETE, UPDATE, Request, Resource
from dray.api import registry, schema
from dray.api.kinds import NAMESPACES
from dray.api.meta import Object
from dray.api.registry import Kind
from dray.server.engine import Call, Engine
from dray.server.patch.inline import InlineDefinition
from dray.server.routes import Table
from dray.server.strategies import View
from dray.server.verbs import field_owners
from dray.validation import from_hub

META_VERSION = "meta.k8s.io/v1"
_OPTIONS = {CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions"}
"""A patch has the options of the create or update that it comes to."""


class AdmissionRequest:
    """One write. `new` and `old` are hub objects, or None; `new` is replaced by those who change it.

    `is_posted`: nothing of that name is stored, it is posted (a binding, an eviction).
    """

    def __init__(
        self, engine: Engine, call: Call, new: Object | None, old: Object | None, *, is_posted: bool = False
    ) -> None:
        route = call.route
        self.engine = engine
        self.call = call
        self.view: View | None = None
        if route.subresource and old is not None and new is not None:
            self.view = engine.strategies.view(route.kind, route.subresource)
        self.old = old
        self.new = new
        self.posts: type[Object] | None = type(new) if is_posted and new is not None else None
        operation = DELETE if new is None else CREATE if old is None else UPDATE
        resource, equivalents = _resources(engine.kinds, route.kind, route.version, route.subresource)
        subject = new if new is not None else old
        name = route.name or ("" if subject is None else subject.metadata.name)
        self.name = name or ("" if subject is None else subject.metadata.generate_name)
        """What errors call the object."""
        if call.is_unnamed and new is None:
            name = ""
        self.request = Request(
            operation=operation,
            resource=resource,
            subresource=route.subresource,
            namespace=name if route.kind is NAMESPACES else route.namespace,
            name=name,
            caller=call.caller,
            dry_run=call.dry_run,
            options=_options(call, operation),
            equivalents=equivalents,
        )

    def in_version(self, obj: Object | None, resource: Resource) -> Object | None:
        """An object as it is in the version of a resource, or as its subresource shows it."""
        if obj is None:
            return None
        if self.posts is not None:
            return obj
        if self.view is not None:
            return self.view.show(obj)
        group = resource.group
        return from_hub(obj, f"{group}/{resource.version}" if group else resource.version)

    @property
    def labelled(self) -> tuple[Object | None, Object | None]:
        """The new object and the old one as selectors see them: what a subresource shows has labels of its own."""
        view = self.view
        if view is None or self.new is None or self.old is None:
            return self.new, self.old
        return view.show(self.new), view.show(self.old)

    def kind_of(self, resource: Resource) -> Kind:
        """The kind of a resource, which is that of the request or another face of its objects."""
        kind = self.call.route.kind
        if (kind.group, kind.plural) == (resource.group, resource.plural) and resource.version in kind.versions:
            return kind
        served = self.engine.kinds.kinds_in(resource.group, resource.version)
        return next((each for each in served if each.plural == resource.plural), kind)

    def definition_of(self, resource: Resource) -> schema.Definition | InlineDefinition:
        """The schema of what is written, in the version of a resource."""
        if self.view is not None:
            return schema.for_kind(*registry.split_api_version(self.view.api_version), self.view.kind)
        if self.posts is not None:
            gvk = resource.gvk
            return schema.for_kind(gvk["group"], gvk["version"], gvk["kind"])
        route = replace(self.call.route, kind=self.kind_of(resource), version=resource.version)
        return field_owners.definition_of(Call(route, self.call.caller, self.call.now))

    def with_defaults(self, obj: Object) -> Object:
        """An object with the defaults of its kind, as they are set for such a request."""
        route, now = self.call.route, self.call.now
        if self.posts is not None:
            return obj
        if self.old is None:
            made: Object = self.engine.strategies.rules(route.kind).default(obj, now)
        else:
            made = self.engine.strategies.update(route.kind, route.subresource).default(obj, now)
        return made


def _options(call: Call, operation: str) -> dict[str, Any]:
    found: dict[str, Any] = {**call.options, "kind": _OPTIONS[operation], "apiVersion": META_VERSION}
    if call.dry_run:
        found["dryRun"] = ["All"]
    return found


@lru_cache(1024)
def _resources(table: Table, kind: Kind, version: str, subresource: str) -> tuple[Resource, tuple[Resource, ...]]:
    """The resource of a request, and the others that its objects are served as."""
    others = [
        _resource(other, its_version, subresource)
        for group, versions in table.versions.items()
        for its_version in versions
        for other in table.kinds_in(group, its_version)
        if _are_same(kind, other) and (group, its_version) != (kind.group, version)
    ]
    return _resource(kind, version, subresource), tuple(others)


def _are_same(kind: Kind, other: Kind) -> bool:
    """Whether two kinds are faces of the same objects."""
    return other.storage is kind.storage or (other.group, other.plural) == (kind.group, kind.plural)


def _resource(kind: Kind, version: str, subresource: str) -> Resource:
    part = next((each for each in kind.subresources if each.name == subresource), None)
    if part is None or part.kind == kind.kind:
        return Resource(kind.group, version, kind.plural, kind.kind)
    return Resource(kind.group, version, kind.plural, part.kind, part.group, part.version)

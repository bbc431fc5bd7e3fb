"""What a request asks for: one table from path and method to a verb on a resource, or to a page of the server.

/api/v1/namespaces/NS/pods/NAME/status
/apis/GROUP/VERSION/[watch/][namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import msgspec
from msgspec.structs import replace

from dray.api import registry
from dray.api.meta import Object
from dray.api.registry import Kind, Subresource
from dray.api.text_memory import remember_texts
from dray.custom.kinds import CustomKind, version_order
from dray.server import errors
from dray.server.bodies.options import is_true


class Route(msgspec.Struct, frozen=True):
    """A verb on a resource. `namespace` is empty for all namespaces and for cluster-scoped kinds."""

    verb: str
    kind: Kind
    version: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def api_version(self) -> str:
        """The `apiVersion` that the request is in."""
        return self.kind.api_version_of(self.version)


_COLLECTION_VERBS = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT_VERBS = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ACTIONS = frozenset({"binding", "eviction", "token"})
"""Subresources that one posts to."""
OF_KUBELETS = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources that lead to a node or a container: what they answer is not stored here."""
CONVERSATIONS = frozenset({"attach", "exec", "portforward"})
"""Those that a client talks with, and does not only read."""
_KUBELET_VERBS = _OBJECT_VERBS | {"POST": "create"}


def served_subresources(kind: Kind) -> tuple[Subresource, ...]:
    """The subresources of a kind that this server answers itself."""
    return tuple(found for found in kind.subresources if found.name not in OF_KUBELETS)


def offered_subresources(kind: Kind) -> tuple[Subresource, ...]:
    """Those, and the ones for which it leads to kubelets."""
    return tuple(found for found in kind.subresources if found.name != "proxy")


REMEMBERED = 256
"""Clients ask for the same few collections all the time: so many routes are looked up once."""


class CustomKinds(Protocol):
    """The kinds that others have defined, which change while the server runs."""

    generation: int

    @property
    def is_current(self) -> bool:
        """Whether `catch_up` has nothing to do."""
        ...

    def catch_up(self) -> None:
        """Takes in what has changed; `generation` is another then."""
        ...

    def __iter__(self) -> Iterator[Kind]:
        """One kind per served version."""
        ...


class Table:
    """The kinds that are served, by path. Versions can be switched off (`--runtime-config`)."""

    def __init__(self, disabled: frozenset[str] = frozenset(), custom: CustomKinds | None = None) -> None:
        """`disabled` names API versions, such as `resource.k8s.io/v1alpha3`; `custom` are the kinds of others."""
        self.disabled = disabled
        self._custom = custom
        self._fill()

    def _fill(self) -> None:
        """Takes in all kinds, built-in ones first."""
        self._generation = 0 if self._custom is None else self._custom.generation
        self._find = remember_texts(REMEMBERED)(self._look_up)
        self._versions: dict[str, list[str]] = {}
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self._by_name: dict[tuple[str, str], Kind] = {}
        self._by_version: dict[tuple[str, str], list[Kind]] = {}
        for kind in (*registry.kinds(), *(self._custom or ())):
            for version in kind.versions:
                self._by_name[kind.api_version_of(version), kind.kind] = kind
                if kind.api_version_of(version) in self.disabled:
                    continue
                self._kinds[kind.group, version, kind.plural] = kind
                self._by_version.setdefault((kind.group, version), []).append(kind)
                served = self._versions.setdefault(kind.group, [])
                if version not in served:
                    served.append(version)
        for group in {kind.group for kind in self._custom or ()}:
            self._versions[group].sort(key=version_order)

    def _catch_up(self) -> None:
        """Takes in what has changed since the last time."""
        custom = self._custom
        if custom is None:
            return
        if not custom.is_current:
            custom.catch_up()
        if custom.generation != self._generation:
            self._fill()

    @property
    def generation(self) -> int:
        """Changes whenever what is served does."""
        self._catch_up()
        return self._generation

    @property
    def versions(self) -> Mapping[str, list[str]]:
        """The versions of each group, preferred ones first."""
        self._catch_up()
        return self._versions

    def served(self, kind: Kind) -> Kind:
        """What the table has in the place of a kind that somebody else knows by its names; itself if nothing."""
        self._catch_up()
        return self._kinds.get((kind.group, kind.versions[0], kind.plural), kind)

    def kinds_in(self, group: str, version: str) -> list[Kind]:
        """The kinds of one group and version."""
        self._catch_up()
        return list(self._by_version.get((group, version), ()))

    def kind_of(self, obj: Object) -> Kind:
        """The kind of an object, in whatever version and whether or not that is switched off. Raises UnknownKind."""
        name = (obj.api_version, obj.kind)
        self._catch_up()
        return self._by_name.get(name) or registry.by_kind(*name)

    def find(self, method: str, path: str, query: Mapping[str, str]) -> Route:
        """The route of a request. Raises ApiError (404, 405)."""
        custom = self._custom
        if custom is not None and not (custom.is_current and custom.generation == self._generation):
            self._catch_up()
        return self._find(method, path, bool(query) and is_true(query.get("watch")))

    def _look_up(self, method: str, path: str, is_watch: bool) -> Route:
        parts = path.split("/")[1:]
        if parts and parts[-1] == "":
            parts.pop()
        group, version, rest = self._version(parts)
        if "" in rest:
            raise errors.page_not_found()
        if rest[0] == "watch" and len(rest) > 1 and rest[1] != "watch":  # a path may repeat it a thousand times
            return self._watch(method, [*parts[: -len(rest)], *rest[1:]])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and not (group == "" and rest[2] in ("status", "finalize")):
            namespace, rest = rest[1], rest[2:]
        kind = self._kinds.get((group, version, rest[0]))
        if kind is None or (namespace and not kind.namespaced) or len(rest) > 3 or not _are_names(namespace, *rest):
            raise errors.page_not_found()
        name = rest[1] if len(rest) > 1 else ""
        subresource = rest[2] if len(rest) > 2 else ""
        if kind.namespaced and name and not namespace:
            raise errors.page_not_found()
        if subresource and all(found.name != subresource for found in kind.subresources):
            raise errors.page_not_found()
        verb = _verb(kind, method, name, subresource, is_watch=is_watch)
        if verb == "create" and isinstance(kind, CustomKind) and kind.is_terminating:
            raise errors.terminating(kind, verb)
        if verb == "create" and kind.namespaced and not namespace:
            raise errors.method_not_allowed()
        return Route(verb, kind, version, namespace, name, subresource)

    def _watch(self, method: str, parts: list[str]) -> Route:
        """The old way to ask for a watch, by path, and the only one for a single object. Raises ApiError."""
        route = self._look_up(method, "/" + "/".join(parts), is_watch=False)
        if route.subresource:
            raise errors.page_not_found()
        if route.verb not in ("list", "get") or "watch" not in route.kind.verbs:
            raise errors.method_not_allowed()
        return replace(route, verb="watch")

    def _version(self, parts: list[str]) -> tuple[str, str, list[str]]:
        """Takes the group and version off a path; what is left has at least one part."""
        if len(parts) >= 2 and parts[0] == "api":
            group, version, rest = "", parts[1], parts[2:]
        elif len(parts) >= 3 and parts[0] == "apis":
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            raise errors.NotServed()
        if group not in self._versions:
            raise errors.NotServed()
        if not rest or version not in self._versions[group]:
            raise errors.page_not_found()
        return group, version, rest


def _are_names(namespace: str, *parts: str) -> bool:
    """Whether parts of a path can be names: nothing that leads elsewhere in a path."""
    return "" not in parts and not any(part in (".", "..") or "%" in part for part in (namespace, *parts))


def _verb(kind: Kind, method: str, name: str, subresource: str, *, is_watch: bool) -> str:
    if subresource in _ACTIONS:
        if method != "POST":
            raise errors.method_not_allowed()
        return "create"
    if subresource in OF_KUBELETS:
        return _KUBELET_VERBS.get(method, "get")
    verb = (_OBJECT_VERBS if name else _COLLECTION_VERBS).get(method)
    if verb is None or (subresource and verb == "delete"):
        raise errors.method_not_allowed()
    if verb == "list" and is_watch:
        verb = "watch"
    if verb not in kind.verbs and not subresource:
        raise errors.method_not_allowed()
    return verb

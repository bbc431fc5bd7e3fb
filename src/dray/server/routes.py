"""What a request asks for: one table from path and method to a verb on a resource, or to a page of the server.

/api/v1/namespaces/NS/pods/NAME/status
/apis/GROUP/VERSION/[namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]]
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from dray.api import registry
from dray.api.registry import Kind, Subresource
from dray.server.options import is_true


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


class NoSuchResource(LookupError):
    """The group and version are served, but not this resource, or not in this scope."""


class NoSuchPage(LookupError):
    """Nothing is served at the path."""


class NoSuchVerb(LookupError):
    """The resource is there, the method is not."""


_COLLECTION_VERBS = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT_VERBS = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ACTIONS = frozenset({"binding", "eviction", "token"})
"""Subresources that one posts to."""
OF_KUBELETS = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources that lead to a node or a container: there is a path to ask at, but nobody behind it who could answer."""
_KUBELET_VERBS = _OBJECT_VERBS | {"POST": "create"}


def served_subresources(kind: Kind) -> tuple[Subresource, ...]:
    """The subresources of a kind that this server has something to answer with."""
    return tuple(found for found in kind.subresources if found.name not in OF_KUBELETS)


REMEMBERED = 256
"""Clients ask for the same few collections all the time: so many routes are looked up once."""


class Table:
    """The kinds that are served, by path. Versions can be switched off (`--runtime-config`)."""

    def __init__(self, disabled: frozenset[str] = frozenset()) -> None:
        """`disabled` names API versions, such as `resource.k8s.io/v1alpha3`."""
        self.disabled = disabled
        self._find = lru_cache(maxsize=REMEMBERED)(self._look_up)
        self.versions: dict[str, list[str]] = {}
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        for kind in registry.kinds():
            for version in kind.versions:
                if kind.api_version_of(version) in disabled:
                    continue
                self._kinds[kind.group, version, kind.plural] = kind
                served = self.versions.setdefault(kind.group, [])
                if version not in served:
                    served.append(version)

    def kinds_in(self, group: str, version: str) -> list[Kind]:
        """The kinds of one group and version."""
        return [kind for (g, v, _), kind in self._kinds.items() if (g, v) == (group, version)]

    def serves(self, kind: Kind, version: str) -> bool:
        """Whether a kind is served in a version."""
        return (kind.group, version, kind.plural) in self._kinds

    def find(self, method: str, path: str, query: Mapping[str, str]) -> Route:
        """The route of a request. Raises NoSuchPage, NoSuchResource or NoSuchVerb."""
        return self._find(method, path, is_watch=bool(query) and is_true(query.get("watch")))

    def _look_up(self, method: str, path: str, *, is_watch: bool) -> Route:
        parts = path.split("/")[1:]
        if parts and parts[-1] == "":
            parts.pop()
        group, version, rest = self._version(parts)
        if "" in rest:
            raise NoSuchResource(path)
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and not (group == "" and rest[2] in ("status", "finalize")):
            namespace, rest = rest[1], rest[2:]
        kind = self._kinds.get((group, version, rest[0]))
        if kind is None or (namespace and not kind.namespaced) or len(rest) > 3 or not _are_names(namespace, *rest):
            raise NoSuchResource(path)
        name = rest[1] if len(rest) > 1 else ""
        subresource = rest[2] if len(rest) > 2 else ""
        if kind.namespaced and name and not namespace:
            raise NoSuchResource(path)
        if subresource and all(found.name != subresource for found in kind.subresources):
            raise NoSuchResource(path)
        verb = _verb(kind, method, name, subresource, is_watch=is_watch)
        if verb == "create" and kind.namespaced and not namespace:
            raise NoSuchVerb(method)
        return Route(verb, kind, version, namespace, name, subresource)

    def _version(self, parts: list[str]) -> tuple[str, str, list[str]]:
        """Takes the group and version off a path; what is left has at least one part."""
        if len(parts) >= 2 and parts[0] == "api":
            group, version, rest = "", parts[1], parts[2:]
        elif len(parts) >= 3 and parts[0] == "apis":
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            raise NoSuchPage("/".join(parts))
        if group not in self.versions:
            raise NoSuchPage("/".join(parts))
        if not rest or version not in self.versions[group]:
            raise NoSuchResource("/".join(parts))
        return group, version, rest


def _are_names(namespace: str, *parts: str) -> bool:
    """Whether parts of a path can be names: nothing that leads elsewhere in a path."""
    return "" not in parts and not any(part in (".", "..") or "%" in part for part in (namespace, *parts))


def _verb(kind: Kind, method: str, name: str, subresource: str, *, is_watch: bool) -> str:
    if subresource in _ACTIONS:
        if method != "POST":
            raise NoSuchVerb(method)
        return "create"
    if subresource in OF_KUBELETS:
        return _KUBELET_VERBS.get(method, "get")
    verb = (_OBJECT_VERBS if name else _COLLECTION_VERBS).get(method)
    if verb is None or (subresource and verb == "delete"):
        raise NoSuchVerb(method)
    if verb in ("list", "get") and is_watch and not subresource:
        verb = "watch"
    if verb not in kind.verbs and not subresource:
        raise NoSuchVerb(method)
    return verb

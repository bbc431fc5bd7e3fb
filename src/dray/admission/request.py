"""The request that is to be admitted, as rules, expressions and webhooks see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

__all__ = ["CREATE", "DELETE", "UPDATE", "Caller", "Request", "Resource"]

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"


class Resource(msgspec.Struct, frozen=True, eq=False):
    """A resource in one version, and the kind of its objects (or of what is posted to a subresource).

    There is one instance of each, so that what is known of one is found by it.
    """

    group: str
    version: str
    plural: str
    kind: str
    kind_group: str | None = None
    kind_version: str | None = None

    @property
    def gvk(self) -> dict[str, str]:
        """Group, version and kind as reviews write them."""
        group = self.group if self.kind_group is None else self.kind_group
        version = self.version if self.kind_version is None else self.kind_version
        return {"group": group, "version": version, "kind": self.kind}

    @property
    def gvr(self) -> dict[str, str]:
        """Group, version and resource as reviews write them."""
        return {"group": self.group, "version": self.version, "resource": self.plural}


class Caller(Protocol):
    """Who asks."""

    @property
    def user(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def groups(self) -> tuple[str, ...]: ...
    @property
    def extra(self) -> Mapping[str, tuple[str, ...]]: ...


class Request(msgspec.Struct, frozen=True, eq=False):
    """What is to be done. A request about a namespace has that namespace's name as its `namespace`, as in Kubernetes.

    `equivalents` are the other versions in which the same objects are served; `options` what the verb was told.
    """

    operation: str
    resource: Resource
    subresource: str
    namespace: str
    name: str
    caller: Caller
    dry_run: bool = False
    options: Mapping[str, Any] | None = None
    equivalents: tuple[Resource, ...] = ()

    @property
    def sort(self) -> tuple[str, Resource, str, bool]:
        """What rules look at, but for the name: the same for all requests of a sort."""
        return self.operation, self.resource, self.subresource, self.is_cluster_scoped

    @property
    def is_about_namespace(self) -> bool:
        """Whether the object itself is a namespace."""
        return self.resource.plural == "namespaces" and not self.resource.group

    @property
    def is_cluster_scoped(self) -> bool:
        """Whether the object is in no namespace."""
        return not self.namespace or self.is_about_namespace

    def user_info(self) -> dict[str, Any]:
        """Who asks, as reviews write it."""
        caller = self.caller
        found: dict[str, Any] = {"username": caller.user, "groups": list(caller.groups)}
        if caller.uid:
            found["uid"] = caller.uid
        if caller.extra:
            found["extra"] = {key: list(values) for key, values in caller.extra.items()}
        return found

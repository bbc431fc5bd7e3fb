"""The table of kinds: names, scope, versions and types of everything that dray knows.

Built-in kinds come from the facts in `schema/kinds.json`; the kinds that Kubernetes does not ship are listed here.
Types are imported only when asked for, so that `import dray` does not load a thousand structs.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable
from functools import cache, cached_property, partial
from importlib import import_module
from typing import Any, ClassVar

import msgspec

from dray.api.meta import Object

STABLE = re.compile(r"v[0-9]+")
RESOURCE_GROUP = "resource.k8s.io"
CLUSTER_GROUP = "cluster.open-cluster-management.io"
RBAC_GROUP = "rbac.authorization.k8s.io"
DRAY_GROUP = "dray.dev"
"""Of what Kubernetes does not have, and an API server of Kubernetes can have as custom resources."""
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

# Kinds that are served in alpha and beta versions too, and the order in which versions are preferred (SVS-13).
_SCHEDULING_GROUP = "scheduling.k8s.io"
_UNSTABLE_KINDS = frozenset({(_SCHEDULING_GROUP, "PodGroup"), (_SCHEDULING_GROUP, "Workload")})
VERSION_ORDER = ("v2", "v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha1")


LONGEST_MISTAKE = 64
"""Letters of a kind that is not there, in which another is looked for."""


class UnknownKind(LookupError):
    """No such kind, or not in that version; the message says what there is instead.

    It is worked out for whoever reads it: most ask whether there is a kind, and owners name kinds by the thousand.
    """

    def __init__(self, tell: Callable[[], str]) -> None:
        super().__init__(tell)
        self._tell = tell

    def __str__(self) -> str:
        return self._tell()


class Subresource(msgspec.Struct, frozen=True):
    """A part of an object, or an action on it, with a path of its own."""

    name: str
    kind: str
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = ()


class Kind(msgspec.Struct, frozen=True, dict=True, eq=False):
    """One kind in all the versions that it is served in. There is one instance per kind."""

    is_custom: ClassVar[bool] = False
    """Whether a definition in the store, and not dray, says what its objects are like."""

    group: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    versions: tuple[str, ...]
    """Preferred first. The first is also the hub: what everything inside dray works on."""
    verbs: tuple[str, ...] = ALL_VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    module: str = ""
    """Where the hub type is; `<module>.v1beta1` has the types of a version with other shapes.

    Empty for a kind that some server has and dray does not know: of its objects only the metadata is read.
    """

    @property
    def converts(self) -> bool:
        """Whether objects have to be converted by somebody else before they are stored, or shown."""
        return False

    @cached_property
    def resource(self) -> str:
        """The name in RBAC rules and in the store: `resourceslices.resource.k8s.io`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def api_version(self) -> str:
        """The `apiVersion` of the hub version."""
        return self.api_version_of(self.versions[0])

    @property
    def list_kind(self) -> str:
        """The kind of a list of such objects."""
        return f"{self.kind}List"

    def api_version_of(self, version: str) -> str:
        """The `apiVersion` of one of the versions."""
        return f"{self.group}/{version}" if self.group else version

    @cached_property
    def hub(self) -> type[Object]:
        """The struct of the hub version."""
        return _import(self.module, self.kind) if self.module else Object

    @cached_property
    def storage(self) -> Kind:
        """The kind that objects are stored as: this one, unless it is another face of the same objects."""
        home = _FACES.get((self.group, self.kind))
        return by_kind(*home) if home else self

    def type_of(self, version: str) -> type[Object]:
        """The struct of a version: the hub's, unless the version has other shapes."""
        other = _OTHER_SHAPES.get((self.group, version), {}).get(self.kind)
        return _import(other, self.kind) if other else self.hub

    @property
    def has_status(self) -> bool:
        """Whether `/status` exists."""
        return any(subresource.name == "status" for subresource in self.subresources)


_OTHER_SHAPES = {
    (RESOURCE_GROUP, "v1beta1"): dict.fromkeys(
        ("ResourceSlice", "ResourceClaim", "ResourceClaimTemplate"), "dray.api.resource.v1beta1"
    ),
    ("autoscaling", "v1"): {"HorizontalPodAutoscaler": "dray.api.autoscaling_v1"},
}


# One resource with two faces each: events, and what is a custom resource in dray's own group on other servers.
_FACES = {
    ("events.k8s.io", "Event"): ("v1", "Event"),
    (DRAY_GROUP, "ResourceSlicePatch"): (f"{RESOURCE_GROUP}/v1alpha3", "ResourceSlicePatch"),
    (DRAY_GROUP, "DeviceTaintRule"): (f"{RESOURCE_GROUP}/v1", "DeviceTaintRule"),
}


def _import(module: str, name: str) -> type[Object]:
    found: type[Object] = getattr(import_module(module), name)
    return found


_STATUS = ("get", "patch", "update")


def _own(group: str, kind: str, plural: str, *versions: str, **more: Any) -> Kind:
    module = "dray.api.cluster" if group == CLUSTER_GROUP else "dray.api.resource"
    status = Subresource("status", kind, group, versions[0], _STATUS)
    subresources = (status,) if more.pop("status", False) else ()
    namespaced = more.pop("namespaced", False)
    return Kind(
        group, kind, plural, kind.lower(), namespaced, versions, subresources=subresources, module=module, **more
    )


_OWN_KINDS = (
    _own(RESOURCE_GROUP, "ResourceSlicePatch", "resourceslicepatches", "v1alpha3"),
    _own(CLUSTER_GROUP, "ManagedCluster", "managedclusters", "v1", status=True, short_names=("mcl",)),
    _own(CLUSTER_GROUP, "ManagedClusterSet", "managedclustersets", "v1beta2", status=True, short_names=("mclset",)),
    _own(
        CLUSTER_GROUP,
        "ManagedClusterSetBinding",
        "managedclustersetbindings",
        "v1beta2",
        status=True,
        namespaced=True,
        short_names=("mclsetbinding",),
    ),
    _own(CLUSTER_GROUP, "Placement", "placements", "v1beta1", "v1alpha1", status=True, namespaced=True),
    _own(CLUSTER_GROUP, "PlacementDecision", "placementdecisions", "v1beta1", status=True, namespaced=True),
    _own(CLUSTER_GROUP, "AddOnPlacementScore", "addonplacementscores", "v1alpha1", status=True, namespaced=True),
    _own(DRAY_GROUP, "ResourceSlicePatch", "resourceslicepatches", "v1alpha1"),
    _own(DRAY_GROUP, "DeviceTaintRule", "devicetaintrules", "v1alpha1", status=True),
)


class _Fact(msgspec.Struct, rename="camel"):
    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()


def _module_of(group: str) -> str:
    if group == RESOURCE_GROUP:
        return "dray.api.resource"
    return f"dray.api.generated.{group.split('.')[0] or 'core'}"


def _built_in() -> list[Kind]:
    data = pkgutil.get_data("dray.api", "schema/kinds.json")
    assert data is not None
    facts: dict[tuple[str, str], list[_Fact]] = {}
    for fact in msgspec.json.decode(data, type=list[_Fact]):
        if STABLE.fullmatch(fact.version) or _has_all_versions(fact):
            facts.setdefault((fact.group, fact.kind), []).append(fact)
    return [_kind(sorted(versions, key=lambda fact: VERSION_ORDER.index(fact.version))) for versions in facts.values()]


def _has_all_versions(fact: _Fact) -> bool:
    """Whether a kind is served in every version that Kubernetes has of it."""
    return fact.group == RESOURCE_GROUP or (fact.group, fact.kind) in _UNSTABLE_KINDS


def _kind(facts: list[_Fact]) -> Kind:
    hub = facts[0]
    served = [
        fact.version
        for fact in facts
        if fact.version == hub.version
        or _has_all_versions(hub)
        or hub.kind in _OTHER_SHAPES.get((hub.group, fact.version), {})
    ]
    return Kind(
        hub.group,
        hub.kind,
        hub.plural,
        hub.singular,
        hub.namespaced,
        tuple(served),
        verbs=hub.verbs,
        short_names=hub.short_names,
        categories=hub.categories,
        subresources=hub.subresources,
        module=_module_of(hub.group),
    )


@cache
def kinds() -> tuple[Kind, ...]:
    """Every kind, built-in ones first."""
    return (*_built_in(), *_OWN_KINDS)


@cache
def _by_kind() -> dict[tuple[str, str], Kind]:
    return {(kind.group, kind.kind): kind for kind in kinds()}


@cache
def _by_plural() -> dict[tuple[str, str], Kind]:
    return {(kind.group, kind.plural): kind for kind in kinds()}


def split_api_version(api_version: str) -> tuple[str, str]:
    """`resource.k8s.io/v1` → ("resource.k8s.io", "v1"); `v1` → ("", "v1")."""
    group, _, version = api_version.rpartition("/")
    return group, version


@cache
def by_kind(api_version: str, kind: str) -> Kind:
    """The kind with this `apiVersion` and `kind`. Raises UnknownKind with what there is instead."""
    group, version = split_api_version(api_version)
    found = _by_kind().get((group, kind))
    if found is None:
        raise UnknownKind(partial(_unknown_kind, group, kind))
    if version not in found.versions:
        raise UnknownKind(partial(_unknown_version, api_version, found))
    return found


def by_resource(group: str, plural: str) -> Kind | None:
    """The kind that a path `/apis/<group>/<version>/<plural>` names."""
    return _by_plural().get((group, plural))


@cache
def other_face(kind: Kind) -> Kind | None:
    """The kind of dray's own group that stands for this one on servers that lack it."""
    return next((one for one in kinds() if one.group == DRAY_GROUP and one is not kind and one.storage is kind), None)


def faces(kind: Kind) -> tuple[Kind, ...]:
    """The kind, and the one of dray's own group that stands for it, if there is one."""
    other = other_face(kind)
    return (kind,) if other is None else (kind, other)


def _unknown_version(api_version: str, found: Kind) -> str:
    served = ", ".join(found.api_version_of(name) for name in found.versions)
    return f"{found.kind} has no version {api_version!r}; there is {served}"


def _unknown_kind(group: str, kind: str) -> str:
    elsewhere = [found.api_version for found in kinds() if found.kind == kind]
    if elsewhere:
        return f"no kind {kind!r} in group {group!r}; there is one in {', '.join(elsewhere)}"
    import difflib  # for whoever mistypes a kind, and no program that runs for months

    close = difflib.get_close_matches(kind[:LONGEST_MISTAKE], {found.kind for found in kinds()}, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"unknown kind {kind!r} in {group or 'core'!r}{hint}"

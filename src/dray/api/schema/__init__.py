"""What is known of every type of the API: fields, types, and how lists and maps merge. Facts only, no prose.

Patches, server-side apply and the OpenAPI documents work from here. A package of definitions (one group in one
version) is read from `definitions/` when it is first asked for and then kept; there is a fixed number of them. The
files are made by `tools/generate_api.py`; hand-written kinds add theirs through `structs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import msgspec

from dray.api import registry
from dray.api.schema.facts import META_PACKAGE, Definition, GroupVersionKind, Property

__all__ = [
    "Definition",
    "GroupVersionKind",
    "Property",
    "UnknownDefinitionError",
    "definition",
    "for_kind",
    "package",
    "package_of",
]

_FOLDER = Path(__file__).with_name("definitions")

# A package is called after the first label of its group, except for these.
_PACKAGE_OF_GROUP = {
    "": "io.k8s.api.core",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
    "internal.apiserver.k8s.io": "io.k8s.api.apiserverinternal",
    registry.CLUSTER_GROUP: "io.open-cluster-management.cluster",
    registry.DRAY_GROUP: "dev.dray",
}

_decoder = msgspec.json.Decoder(dict[str, Definition])


class UnknownDefinitionError(LookupError):
    """There is no definition of this name, or of this kind."""


def definition(name: str) -> Definition:
    """The definition with a full name, as `Property.ref` has it. Raises UnknownDefinitionError."""
    of_package, _, short = name.rpartition(".")
    found = package(of_package).get(short)
    if found is None:
        raise UnknownDefinitionError(f"no definition {name!r}")
    return found


def for_kind(group: str, version: str, kind: str) -> Definition:
    """The definition of a kind, of a list of it, or of a kind that all groups share (Status, DeleteOptions).

    Raises UnknownDefinitionError if there is no such kind in that version.
    """
    wanted = (group, version, kind)
    for name in (package_of(group, version), META_PACKAGE):
        found = package(name).get(kind)
        if found is not None and wanted in found.kinds:
            return found
    raise UnknownDefinitionError(f"no kind {kind!r} in {group or 'core'}/{version}")


def package_of(group: str, version: str) -> str:
    """The name of the package that holds a group in a version; it need not exist."""
    return f"{_PACKAGE_OF_GROUP.get(group) or 'io.k8s.api.' + group.split('.')[0]}.{version}"


def package(name: str) -> Mapping[str, Definition]:
    """The definitions of a package by short name; empty if there is no such package."""
    return _load(name) if name in _hand_written() or name in _files() else {}


@cache
def _files() -> frozenset[str]:
    return frozenset(path.name.removesuffix(".json") for path in _FOLDER.glob("*.json"))


@cache
def _hand_written() -> dict[str, tuple[str, str]]:
    """Group and version of each package that has hand-written structs."""
    groups = (registry.RESOURCE_GROUP, registry.CLUSTER_GROUP, registry.DRAY_GROUP)
    return {
        package_of(kind.group, version): (kind.group, version)
        for kind in registry.kinds()
        if kind.group in groups
        for version in kind.versions
    }


@cache
def _load(name: str) -> Mapping[str, Definition]:
    loaded: dict[str, Definition] = {}
    if name in _files():
        loaded = {
            short: msgspec.structs.replace(found, name=f"{name}.{short}")
            for short, found in _decoder.decode((_FOLDER / f"{name}.json").read_bytes()).items()
        }
    if name in _hand_written():
        # Walking structs costs an import of all of them, which whoever needs only built-in kinds is spared.
        from dray.api.schema import structs

        loaded = structs.extend(name, *_hand_written()[name], loaded)
    return MappingProxyType(loaded)

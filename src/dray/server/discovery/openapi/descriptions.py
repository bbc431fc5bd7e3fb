"""What types and fields are for, in dray's own words.

Hand-written kinds tell it themselves: a type by the docstring of its struct, a field by `field_texts`. Built-in kinds
that dray only passes on get a sentence made from their names.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from inspect import cleandoc

import msgspec

from dray.api import registry, schema
from dray.api.schema import Definition, Property
from dray.api.schema.facts import META_PACKAGE
from dray.server.discovery.openapi.field_texts import COMMON, OF_CLUSTERS, OF_DEVICES

_PYTHON_NAME = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")
_REQUIREMENT = re.compile(r" \([A-Z0-9]+-[0-9][0-9., -]*\)")  # says more to us than to users
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z]|\d|s?$)s?|[A-Z]?[a-z]+|[A-Z]+|\d+")


@cache
def _modules() -> dict[str, tuple[str, ...]]:
    """Where the hand-written structs of a package of definitions are, in the order to look."""
    resource, cluster = registry.RESOURCE_GROUP, registry.CLUSTER_GROUP
    found: dict[str, tuple[str, ...]] = {
        META_PACKAGE: ("dray.api.meta",),
        "io.k8s.api.core.v1": ("dray.api.node_selector",),
    }
    for version in registry.VERSION_ORDER:
        found[schema.package_of(cluster, version)] = ("dray.api.cluster",)
        found[schema.package_of(resource, version)] = ("dray.api.resource",)
        found[schema.package_of(registry.DRAY_GROUP, version)] = ("dray.api.resource",)
    found[schema.package_of(resource, "v1beta1")] = ("dray.api.resource.v1beta1", "dray.api.resource")
    return found


@cache
def _texts() -> dict[str, dict[str, str]]:
    """The texts for fields of a package of definitions."""
    found = {
        registry.RESOURCE_GROUP: OF_DEVICES,
        registry.DRAY_GROUP: OF_DEVICES,
        registry.CLUSTER_GROUP: OF_CLUSTERS,
    }
    versions = registry.VERSION_ORDER
    return {schema.package_of(group, version): texts for group, texts in found.items() for version in versions}


@cache
def _docstring(name: str) -> str:
    """The docstring of the hand-written struct of a definition, empty if there is none."""
    package, _, short = name.rpartition(".")
    for module in _modules().get(package, ()):
        struct = getattr(import_module(module), short, None)
        if isinstance(struct, type) and issubclass(struct, msgspec.Struct) and struct.__doc__:
            return _in_names_of_the_api(_REQUIREMENT.sub("", " ".join(cleandoc(struct.__doc__).split())))
    return ""


def _in_names_of_the_api(text: str) -> str:
    """A docstring as people read it who know the API: `evictionsPerSecond`, not what Python calls it."""
    return _PYTHON_NAME.sub(lambda found: re.sub(r"_(.)", lambda letter: letter[1].upper(), found[0]), text)


def of_definition(found: Definition) -> str:
    """What a type is for."""
    short = found.name.rpartition(".")[2]
    return COMMON.get(short) or _docstring(found.name) or f"{_sentence(words(short))}."


def of_field(owner: Definition, name: str, found: Property) -> str:
    """What a field is for."""
    package, _, short = owner.name.rpartition(".")
    texts = _texts().get(package, {})
    written = texts.get(f"{short}.{name}") or texts.get(name) or COMMON.get(name)
    if written:
        return written
    inner = next((part for part in (found.items, found.values) if part is not None), found)
    return (_docstring(inner.ref) if inner.ref else "") or f"{_sentence(words(name))} of the {words(short)}."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def words(name: str) -> str:
    """`podIPs` → `pod IPs`, `CSIDriverSpec` → `CSI driver spec`."""
    found = _WORD.findall(name)
    return " ".join(word if len(word) > 1 and word[:2].isupper() else word.lower() for word in found) or name

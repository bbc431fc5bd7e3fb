"""The kinds that a definition defines: one per served version, all of the same stored objects."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from dray.api import registry
from dray.api.custom import CustomObject
from dray.api.generated.apiextensions import CustomResourceDefinition, WebhookConversion
from dray.api.meta import Object
from dray.api.registry import Kind, Subresource
from dray.custom.defaulting import DefaultsTooLarge
from dray.custom.definition import Version, compile_version
from dray.custom.names import is_established
from dray.custom.object_rules import CustomRules

DEFINITIONS = registry.by_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
NAMESPACED = "Namespaced"
_STATUS_VERBS = ("get", "patch", "update")
_NAME = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")


def is_built_in(definition: CustomResourceDefinition) -> bool:
    """Whether dray serves the resource by itself, so that the definition, and its end, change nothing about it."""
    spec, accepted = definition.spec, definition.status.accepted_names
    return any(registry.by_resource(spec.group, plural) is not None for plural in (spec.names.plural, accepted.plural))


class CustomKind(Kind, frozen=True, dict=True, eq=False, kw_only=True):
    """One version of a custom resource. A definition that changes gives new instances."""

    is_custom: ClassVar[bool] = True

    definition: CustomResourceDefinition
    version: Version

    @property
    def list_kind(self) -> str:
        """The kind of a list of such objects, which the definition may choose."""
        return self.definition.status.accepted_names.list_kind

    @cached_property
    def hub(self) -> type[Object]:
        """All custom objects are of one type."""
        return CustomObject

    def type_of(self, version: str) -> type[Object]:  # noqa: ARG002 - what all kinds are asked
        """The same in every version."""
        return CustomObject

    @cached_property
    def webhook(self) -> WebhookConversion | None:
        """Who converts objects between versions; None if only their apiVersion differs."""
        conversion = self.definition.spec.conversion
        return conversion.webhook if conversion is not None and conversion.strategy == "Webhook" else None

    @cached_property
    def converts(self) -> bool:
        """Whether objects have to be converted by a webhook."""
        return self.webhook is not None

    @cached_property
    def rules(self) -> CustomRules:
        """How objects are written in this version."""
        return CustomRules(namespaced=self.namespaced, own_finalizers=True, version=self.version)

    @cached_property
    def since(self) -> int:
        """The revision from which on objects are stored as this version has them."""
        return int(self.definition.metadata.resource_version or 0)

    def shown(self, obj: CustomObject) -> CustomObject:
        """An object that was stored in another version, or under another schema, as this version has it.

        Without defaults, if they would make it too large.
        """
        content = self._pruned(obj)
        if self.version.default is not None:
            try:
                self.version.default(content)
            except DefaultsTooLarge:
                content = self._pruned(obj)
        return replace(obj, api_version=self.api_version, content=content)

    def _pruned(self, obj: CustomObject) -> dict[str, Any]:
        content: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(obj.content))
        if self.version.prune is not None:
            self.version.prune(content)
        return content

    @property
    def is_terminating(self) -> bool:
        """Whether the definition is on its way out: nothing new is created then."""
        return self.definition.metadata.deletion_timestamp is not None


def version_order(name: str) -> tuple[int, int, int, int, str]:
    """Sorts versions as Kubernetes prefers them: v2, v1, v1beta1, v1alpha1, and then all others by name."""
    found = _NAME.fullmatch(name)
    if found is None:
        return (1, 0, 0, 0, name)
    stage = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return (0, stage, -int(found[1]), -int(found[3] or 0), "")


def kinds_of(definition: CustomResourceDefinition) -> list[CustomKind]:
    """The kinds of all served versions, preferred ones first."""
    versions = sorted(definition.spec.versions, key=lambda version: version_order(version.name))
    made = {version.name: _kind(definition, compile_version(definition, version)) for version in versions}
    storage = next(made[version.name] for version in versions if version.storage)
    for kind in made.values():
        kind.__dict__["storage"] = storage
    return [made[version.name] for version in versions if version.served]


def served_kind(definition: CustomResourceDefinition) -> Kind | None:
    """The kind by its names alone, in the version that is preferred; None if it is not served, or dray has its own.

    This is all that those need who only look at metadata.
    """
    spec, names = definition.spec, definition.status.accepted_names
    versions = sorted((version.name for version in spec.versions if version.served), key=version_order)
    if not versions or not is_established(definition) or is_built_in(definition):
        return None
    return Kind(spec.group, names.kind, names.plural, names.singular, spec.scope == NAMESPACED, (versions[0],))


def _kind(definition: CustomResourceDefinition, version: Version) -> CustomKind:
    spec, names = definition.spec, definition.status.accepted_names
    subresources = []
    if version.has_status:
        subresources.append(Subresource("status", names.kind, spec.group, version.name, _STATUS_VERBS))
    if version.scale is not None:
        subresources.append(Subresource("scale", "Scale", "autoscaling", "v1", _STATUS_VERBS))
    return CustomKind(
        group=spec.group,
        kind=names.kind,
        plural=names.plural,
        singular=names.singular,
        namespaced=spec.scope == NAMESPACED,
        versions=(version.name,),
        short_names=names.short_names,
        categories=names.categories,
        subresources=tuple(subresources),
        module=__name__,
        definition=definition,
        version=version,
    )

"""Rules for the kinds that have none of their own: what the schema requires and which values it lists.

Kubernetes has hand-written rules for these kinds too; the schema gives the ones that people run into. Required texts
must not be empty, and a text from a closed set must be one of the set. Nothing below `status` is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dray.api import codec, schema
from dray.api.field import key_path, not_supported, required
from dray.api.registry import Kind
from dray.validation.context import Context, Errors
from dray.validation.metadata import DNS_SUBDOMAIN, PATH_SEGMENT
from dray.validation.rules import Rules

_SKIPPED: Final = frozenset(("apiVersion", "kind", "metadata", "status"))
_DEPTH: Final = 32

# Kinds whose changes are not counted: they have no generation in Kubernetes either.
_WITHOUT_GENERATION: Final = frozenset(
    (
        "ServiceAccount",
        "LimitRange",
        "Endpoints",
        "StorageClass",
        "VolumeAttachment",
        "CSINode",
        "VolumeAttributesClass",
        "ControllerRevision",
        "CSIStorageCapacity",
        "RuntimeClass",
        "APIService",
    )
)
# Groups from before status updates were limited to the status, and the kinds that came to them later.
_STATUS_WRITES_METADATA: Final = frozenset(
    ("", "apps", "autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy")
)
_STATUS_GUARDS_METADATA: Final = frozenset(("PodCertificateRequest", "ServiceCIDR"))
_MAY_BE_EMPTY: Final = frozenset(("group",))
"""The group of a resource is required, and empty for the oldest ones."""
_PATH_NAMES: Final = frozenset(("APIService", "CustomResourceDefinition", "ClusterTrustBundle"))


def rules_from_schema(kind: Kind, more: Callable[[Errors, Any, Any, Context], None] | None = None) -> Rules:
    """The rules for a kind, from its schema; `more` are checks of its own."""
    definition = schema.for_kind(kind.group, kind.versions[0], kind.kind)

    def check(errors: Errors, new: Any, old: Any, ctx: Context) -> None:
        check_object(errors, codec.to_builtins(new), definition, "")
        if more is not None:
            more(errors, new, old, ctx)

    return Rules(
        namespaced=kind.namespaced,
        name=PATH_SEGMENT if kind.kind in _PATH_NAMES else DNS_SUBDOMAIN,
        has_generation=kind.kind not in _WITHOUT_GENERATION,
        has_status=kind.has_status,
        status_guards_metadata=kind.group not in _STATUS_WRITES_METADATA or kind.kind in _STATUS_GUARDS_METADATA,
        check=check,
    )


def check_object(
    errors: Errors, value: dict[str, Any], definition: schema.Definition, path: str, depth: int = _DEPTH
) -> None:
    """What the schema says of an object, or of a part of one at a path."""
    for name, field in definition.properties.items():
        if not path and name in _SKIPPED:
            continue
        inner = f"{path}.{name}" if path else name
        must_say = name in definition.required and field.type == "string" and name not in _MAY_BE_EMPTY
        if must_say and not value.get(name):
            errors.append(required(inner))
        elif value.get(name) is not None:
            _check_value(errors, value[name], field, inner, depth)


def _check_value(errors: Errors, value: Any, field: schema.Property, path: str, depth: int) -> None:
    if depth == 0:
        return
    if field.enum and value and value not in field.enum:
        errors.append(not_supported(path, value, field.enum))
    elif field.ref and isinstance(value, dict):
        check_object(errors, value, schema.definition(field.ref), path, depth - 1)
    elif field.items is not None and isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check_value(errors, item, field.items, f"{path}[{index}]", depth - 1)
    elif field.values is not None and isinstance(value, dict):
        for key, item in value.items():
            _check_value(errors, item, field.values, key_path(path, key), depth - 1)

"""The definitions of dray's kinds as custom resources, for API servers that do not have them.

The schemas say what has which type, and what CEL can check at admission. What only dray can judge, such as selectors,
`dray validate` says before and the tracker after something is applied.
"""

from __future__ import annotations

from typing import Any, Final

from dray.api.registry import DRAY_GROUP, by_kind

Document = dict[str, Any]
VERSION: Final = "v1alpha1"

_TEXT: Final = {"type": "string"}
_TIME: Final = {"type": "string", "format": "date-time"}
_QUANTITY: Final = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_NAME: Final = {"type": "string", "minLength": 1, "maxLength": 253}
_KEY: Final = {"type": "string", "minLength": 1, "maxLength": 316}


def slice_patches() -> Document:
    """ResourceSlicePatch: attributes and capacities of devices that admins set."""
    attribute = _object(
        {
            "int": {"type": "integer", "format": "int64"},
            "bool": {"type": "boolean"},
            "string": {"type": "string", "maxLength": 64},
            "version": {"type": "string", "maxLength": 64},
            "ints": _list({"type": "integer", "format": "int64"}),
            "bools": _list({"type": "boolean"}),
            "strings": _list({"type": "string", "maxLength": 64}),
            "versions": _list({"type": "string", "maxLength": 64}),
            "null": {"type": "object"},
        }
    ) | {"minProperties": 1, "maxProperties": 1}
    capacity = _object(
        {
            "value": _QUANTITY,
            "requestPolicy": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
        required=("value",),
    )
    devices = _object(
        {
            "filter": _selector(),
            "priority": {"type": "integer", "format": "int32"},
            "attributes": {"type": "object", "maxProperties": 32, "additionalProperties": attribute},
            "capacity": {"type": "object", "maxProperties": 32, "additionalProperties": capacity},
        }
    )
    spec = _object({"devices": devices}, required=("devices",))
    columns = [
        _column("Driver", ".spec.devices.filter.driver"),
        _column("Pool", ".spec.devices.filter.pool"),
        _column("Device", ".spec.devices.filter.device"),
        _column("Priority", ".spec.devices.priority", "integer"),
    ]
    return _definition("ResourceSlicePatch", {"spec": spec}, columns)


def taint_rules() -> Document:
    """DeviceTaintRule: a taint for all devices that a selector finds."""
    taint = _object(
        {
            "key": _KEY,
            "value": {"type": "string", "maxLength": 63},
            "effect": {"type": "string", "enum": ["None", "NoSchedule", "NoExecute"]},
            "timeAdded": _TIME,
            "description": {"type": "string", "maxLength": 1024},
            "data": {"x-kubernetes-preserve-unknown-fields": True},
            "evictionsPerSecond": {"type": "integer", "format": "int64", "minimum": 1},
        },
        required=("key", "effect"),
    )
    spec = _object({"deviceSelector": _selector(), "taint": taint}, required=("taint",))
    condition = _object(
        {
            "type": _TEXT,
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "observedGeneration": {"type": "integer", "format": "int64"},
            "lastTransitionTime": _TIME,
            "reason": _TEXT,
            "message": {"type": "string", "maxLength": 32768},
        },
        required=("type", "status", "lastTransitionTime", "reason", "message"),
    )
    conditions = _list(condition, 8) | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    status = _object({"conditions": conditions})
    columns = [
        _column("Key", ".spec.taint.key"),
        _column("Value", ".spec.taint.value"),
        _column("Effect", ".spec.taint.effect"),
        _column("Driver", ".spec.deviceSelector.driver"),
        _column("Pool", ".spec.deviceSelector.pool"),
        _column("Device", ".spec.deviceSelector.device"),
    ]
    return _definition("DeviceTaintRule", {"spec": spec, "status": status}, columns)


def _selector() -> Document:
    cel = _object({"expression": {"type": "string", "maxLength": 10240}}, required=("expression",))
    return _object(
        {
            "deviceClassName": _NAME,
            "driver": _NAME,
            "pool": _NAME,
            "device": _NAME,
            "selectors": _list(_object({"cel": cel}, required=("cel",)), 32),
        }
    )


def _definition(kind: str, properties: Document, columns: list[Document]) -> Document:
    known = by_kind(f"{DRAY_GROUP}/{VERSION}", kind)
    schema = _object({"apiVersion": _TEXT, "kind": _TEXT, "metadata": {"type": "object"}, **properties}, ("spec",))
    schema["description"] = " ".join((known.hub.__doc__ or "").split())
    version: Document = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [*columns, _column("Age", ".metadata.creationTimestamp", "date")],
    }
    if "status" in properties:
        version["subresources"] = {"status": {}}
    names = {
        "kind": kind,
        "listKind": known.list_kind,
        "plural": known.plural,
        "singular": known.singular,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": known.resource, "labels": {"app.kubernetes.io/part-of": "dray"}},
        "spec": {"group": DRAY_GROUP, "names": names, "scope": "Cluster", "versions": [version]},
    }


def _object(properties: Document, required: tuple[str, ...] = ()) -> Document:
    found: Document = {"type": "object", "properties": properties}
    return found | {"required": list(required)} if required else found


def _list(items: Document, longest: int = 64) -> Document:
    return {"type": "array", "maxItems": longest, "items": items}


def _column(name: str, path: str, type_: str = "string") -> Document:
    return {"name": name, "jsonPath": path, "type": type_}

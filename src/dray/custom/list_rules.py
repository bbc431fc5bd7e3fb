"""What a schema must say of a list that is a set or a map: elements that can be told apart."""

from __future__ import annotations

from dray.api.field import forbidden, invalid, not_supported, required
from dray.api.generated.apiextensions import JSONSchemaProps
from dray.validation.context import Errors

LIST_TYPES = ("atomic", "set", "map")
MOST_UNKNOWN = 10


def check_list(errors: Errors, schema: JSONSchemaProps, path: str) -> None:
    """What is wrong with the list type of a schema, and with its keys."""
    kind, keys = schema.x_kubernetes_list_type, schema.x_kubernetes_list_map_keys
    item = schema.items if isinstance(schema.items, JSONSchemaProps) else None
    if kind is not None and schema.type != "array":
        said = "must be array if x-kubernetes-list-type is specified"
        errors.append(invalid(f"{path}.type", schema.type, said) if schema.type else required(f"{path}.type", said))
    elif kind == "set" and item is not None:
        _check_set(errors, item, f"{path}.items")
    if kind is not None and kind not in LIST_TYPES:
        errors.append(not_supported(f"{path}.x-kubernetes-list-type", kind, LIST_TYPES))
    if keys and kind != "map":
        said = "must be map if x-kubernetes-list-map-keys is non-empty"
        place = f"{path}.x-kubernetes-list-type"
        errors.append(required(place, said) if kind is None else invalid(place, kind, said))
    if kind == "map":
        if not keys:
            said = "must not be empty if x-kubernetes-list-type is map"
            errors.append(required(f"{path}.x-kubernetes-list-map-keys", said))
        if schema.items is None:
            errors.append(required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map"))
        elif item is not None:
            _check_map(errors, schema, item, path)
    if kind in ("set", "map") and item is not None and item.nullable:
        errors.append(forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {kind}"))


def _check_set(errors: Errors, item: JSONSchemaProps, path: str) -> None:
    said = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if item.type == "array" and item.x_kubernetes_list_type not in (None, "atomic"):
        errors.append(invalid(f"{path}.x-kubernetes-list-type", item.x_kubernetes_list_type, said))
    if item.type == "object" and item.x_kubernetes_map_type != "atomic":
        errors.append(invalid(f"{path}.x-kubernetes-map-type", item.x_kubernetes_map_type, said))


def _check_map(errors: Errors, schema: JSONSchemaProps, item: JSONSchemaProps, path: str) -> None:
    if item.type != "object":
        said = "must be object if parent array's x-kubernetes-list-type is map"
        errors.append(invalid(f"{path}.items.type", item.type, said))
        return
    keys = schema.x_kubernetes_list_map_keys
    place = f"{path}.x-kubernetes-list-map-keys"
    if len(set(keys)) < len(keys):
        errors.append(invalid(place, keys, "must not contain duplicate entries"))
    always, unknown = set(item.required), 0
    for key in keys:
        found = item.properties.get(key)
        inner = f"{path}.items.properties[{key}]"
        if found is None:
            unknown += 1
            if unknown <= MOST_UNKNOWN:  # each is told with all keys
                errors.append(invalid(place, keys, "entries must all be names of item properties"))
            continue
        if found.type in ("array", "object"):
            said = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.append(invalid(f"{inner}.type", found.type, said))
        if key not in always and found.default is None:
            said = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            errors.append(required(f"{inner}.default", said))
        if found.nullable:
            said = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            errors.append(forbidden(f"{inner}.nullable", said))

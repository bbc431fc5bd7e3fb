"""How custom objects merge: the shapes of a structural schema, for server-side apply and the owners of fields."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from dray.api import schema
from dray.api.generated.apiextensions import JSONSchemaProps
from dray.api.schema import GroupVersionKind
from dray.custom.kinds import CustomKind
from dray.server.patch import shape
from dray.server.patch.fields import LEAF, FieldSet
from dray.server.patch.inline import InlineDefinition
from dray.server.patch.shape import FREE_FORM, Atomic, Keyed, Object, Scalar, Sequence, Shape, Unique

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class SchemaObject(Object):
    """An object as a schema has it."""

    def __init__(self, found: JSONSchemaProps, *, is_resource: bool) -> None:
        super().__init__({}, None)
        self._schema = found
        self._is_resource = is_resource

    @cached_property
    def declared(self) -> dict[str, tuple[str, Shape]]:
        """Step and shape of each declared field."""
        made = {name: (f"f:{name}", of_schema(part)) for name, part in self._schema.properties.items()}
        if self._is_resource:
            text = Scalar("string")
            meta = shape.of(schema.definition(_META))
            made |= {"apiVersion": ("f:apiVersion", text), "kind": ("f:kind", text), "metadata": ("f:metadata", meta)}
        return made

    @cached_property
    def values(self) -> Shape | None:
        """The shape of what a key that is not declared holds."""
        others = self._schema.additional_properties
        if isinstance(others, JSONSchemaProps):
            return of_schema(others)
        return FREE_FORM if others or self._schema.x_kubernetes_preserve_unknown_fields else None

    @cached_property
    def _leaves(self) -> bool:
        return not self.declared and isinstance(self.values, Scalar | Atomic)


def of_schema(found: JSONSchemaProps) -> Shape:
    """The shape of values of a schema."""
    if found.x_kubernetes_int_or_string:
        return Scalar("")
    match found.type:
        case "array":
            return _of_list(found)
        case "object":
            is_free = not found.properties and not isinstance(found.additional_properties, JSONSchemaProps)
            if is_free and not found.x_kubernetes_embedded_resource:
                content: Shape = FREE_FORM
            else:
                content = SchemaObject(found, is_resource=found.x_kubernetes_embedded_resource)
            return Atomic(content) if found.x_kubernetes_map_type == "atomic" else content
        case "string" | "boolean":
            return Scalar(found.type)
        case "integer" | "number":
            return Scalar("number")
    return FREE_FORM


def _of_list(found: JSONSchemaProps) -> Shape:
    items = found.items if isinstance(found.items, JSONSchemaProps) else None
    item = of_schema(items) if items is not None else FREE_FORM
    match found.x_kubernetes_list_type:
        case "set":
            return Unique(item)
        case "map" if items is not None:
            keys = found.x_kubernetes_list_map_keys
            defaults: dict[str, Any] = {
                key: items.properties[key].default
                for key in keys
                if key in items.properties and items.properties[key].default is not None
            }
            return Keyed(item, keys, defaults)
    return Atomic(Sequence(item))


def definition_of(kind: CustomKind) -> InlineDefinition:
    """What patches need to know of a kind; made once."""
    made: InlineDefinition | None = kind.__dict__.get("inline_definition")
    if made is None:
        found = kind.version.schema
        whole = SchemaObject(found, is_resource=True)
        all_but_status: FieldSet = {step: LEAF for name, (step, _) in whole.declared.items() if name != "status"}
        status: FieldSet = {"f:status": LEAF} if kind.version.has_status else {}
        resets = {"": status, "status": all_but_status, "scale": status}
        gvk = GroupVersionKind(kind.group, kind.versions[0], kind.kind)
        made = kind.__dict__["inline_definition"] = InlineDefinition((gvk,), whole, resets)
    return made

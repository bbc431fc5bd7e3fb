"""Objects with every field of their schema set."""

from __future__ import annotations

from typing import Any

from dray.api import registry, schema
from dray.api.schema import Definition, Property

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
SCALARS: dict[str, Any] = {"string": "text", "integer": 7, "number": 3, "boolean": True}
VALUES: dict[str, Any] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "100m",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "80%",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"any": ["thing", 1, None]},
    f"{META}.FieldsV1": {"f:metadata": {}},
    f"{META}.Time": "2026-06-01T12:00:00Z",
    f"{META}.MicroTime": "2026-06-01T12:00:00.000001Z",
}
GENERATED = [kind for kind in registry.kinds() if kind.module.startswith("dray.api.generated.")]


class Filler:
    """Builds JSON with every field set to something other than zero, except those left out by name."""

    def __init__(self, left_out: frozenset[str] = frozenset()) -> None:
        self._left_out = left_out
        self._above: list[str] = []

    def fill(self, definition: Definition) -> Any:
        if definition.name in VALUES:
            return VALUES[definition.name]
        if definition.type != "object":  # values of any type, in the schemas of custom resources
            return True
        self._above.append(definition.name)
        filled = {
            name: self._property(prop)
            for name, prop in definition.properties.items()
            if name not in self._left_out and self._ends(prop)
        }
        self._above.pop()
        return filled

    def _ends(self, prop: Property) -> bool:
        """Whether a property does not lead straight back to a type that is being filled."""
        inner = prop.items or prop.values or prop
        return inner.ref not in self._above and not inner.ref.endswith(("OrArray", "OrStringArray"))

    def _property(self, prop: Property) -> Any:
        if prop.ref:
            return self.fill(schema.definition(prop.ref))
        if prop.items is not None:
            return [self._property(prop.items)] * 2
        if prop.values is not None:
            return {"key": self._property(prop.values)}
        return SCALARS.get(prop.type, {"free": "form"})

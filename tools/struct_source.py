"""Source text of the struct modules in `dray.api.generated`, from the committed facts.

OpenAPI does not say how a Go field is written to the wire, so a field is presumed to follow the habits of the API:
required fields are always written, optional strings, lists and maps are left out when empty, other optional values are
pointers. `wire_facts.json` names the fields that differ, by definition:

    always      written even when zero (no `omitempty`, or a plain struct, which `omitempty` never leaves out)
    omit_zero   left out when zero, so an explicit zero is dropped
    pointer     left out when absent, so an explicit zero is kept
    null        a pointer that is written as null when absent
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Facts = dict[str, Any]
Wire = Literal["always", "omit_zero", "pointer", "null"]
Contents = dict[str, dict[str, Facts]]

LINE_LENGTH = 120

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_CORE = "io.k8s.api.core.v1"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"

_BYTES, _BYTES_MODULE = "Base64", "dray.api.binary"
_ZEROS = {"str": '""', "int": "0", "bool": "False", "float": "0.0", _BYTES: "NOTHING"}
_SCALARS = {"string": "str", "integer": "int", "boolean": "bool", "number": "int | float"}

# Types that are values in Python: annotation, module to import it from, and the zero that Go writes.
_VALUES: dict[str, tuple[str, str, str]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": (
        "Quantity",
        "dray.api.quantity",
        'lambda: Quantity.parse("0")',
    ),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ("int | str", "", "int"),
}
_NULLABLE_VALUES: dict[str, tuple[str, str]] = {
    f"{_META}.Time": ("Time", "dray.api.times"),
    f"{_META}.MicroTime": ("MicroTime", "dray.api.times"),
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": ("JSONSchemaProps | tuple[JSONSchemaProps, ...]", ""),
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": ("JSONSchemaProps | bool", ""),
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": ("JSONSchemaProps | tuple[str, ...]", ""),
}
_FREE_FORM = {
    f"{_META}.FieldsV1",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    f"{_EXTENSIONS}.JSON",
}

# Types that dray writes by hand.
HAND_WRITTEN = {
    f"{_META}.{name}": "dray.api.meta"
    for name in (
        "Condition",
        "DeleteOptions",
        "LabelSelector",
        "LabelSelectorRequirement",
        "ListMeta",
        "ManagedFieldsEntry",
        "ObjectMeta",
        "OwnerReference",
        "Preconditions",
    )
} | {
    f"{_CORE}.{name}": "dray.api.node_selector"
    for name in ("NodeSelector", "NodeSelectorRequirement", "NodeSelectorTerm")
}

# Lists of kinds that Go leaves nil when they are empty, and writes as null: their paths.
_NULL_WHEN_EMPTY: dict[str, tuple[tuple[str, ...], ...]] = {
    "io.k8s.api.core.v1.LimitRange": (("spec", "limits"),),
    "io.k8s.api.discovery.v1.EndpointSlice": (("endpoints",), ("ports",)),
    "io.k8s.api.rbac.v1.ClusterRole": (("rules",),),
    "io.k8s.api.rbac.v1.Role": (("rules",),),
    "io.k8s.api.storage.v1.CSINode": (("spec", "drivers"),),
}

# Names that a class body needs for itself.
_TAKEN = {"field", "str", "int", "bool", "float", "tuple", "dict"}


@dataclass
class Module:
    """One module to be: its definitions by full name, and what it imports."""

    name: str
    definitions: dict[str, Facts]
    imports: dict[str, set[str]] = field(default_factory=dict)

    def add_import(self, module: str, name: str) -> None:
        if module:
            self.imports.setdefault(module, set()).add(name)


def contents(facts: dict[str, dict[str, Facts]], packages: dict[str, tuple[str, ...]]) -> Contents:
    """The definitions of each module by full name; `packages` says which packages of the facts a module holds.

    Where two packages have a type of the same name, the first counts. Lists of kinds have no struct. A type of a
    package that no module holds goes to the first module that refers to it.
    """
    found = {name: _of_packages(facts, sources) for name, sources in packages.items()}
    homes = {full for definitions in found.values() for full in definitions}
    for definitions in found.values():
        homeless = _homeless(facts, definitions, homes)
        definitions |= homeless
        homes |= homeless.keys()
    return found


def modules(found: Contents, wire: dict[str, dict[str, Wire]]) -> Iterator[tuple[str, str]]:
    """Name and source of each module."""
    homes = {full: name for name, definitions in found.items() for full in definitions}
    for name, definitions in found.items():
        yield name, _Writer(Module(name, definitions), homes, wire).source()


def attribute(json_name: str) -> str:
    """The attribute for a JSON name: `podIPs` → `pod_ips`, `from` → `from_`."""
    words = re.sub(r"([A-Z]{2,})s(?=[A-Z]|$)", lambda found: found[1].capitalize() + "s", json_name)
    words = words.lstrip("$").replace("-", "_")
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", words).lower()
    return snake + "_" if keyword.iskeyword(snake) or snake in _TAKEN else snake


def presumed_wire(prop: Facts, *, required: bool, of_kind: bool, name: str) -> Wire:
    """How a field goes to the wire unless `wire_facts.json` knows better."""
    if required or (of_kind and name in ("spec", "status", "metadata")):
        return "always"
    return "omit_zero" if prop.get("type") in ("string", "array", "object") else "pointer"


def _of_packages(facts: dict[str, dict[str, Facts]], packages: tuple[str, ...]) -> dict[str, Facts]:
    found: dict[str, Facts] = {}
    names: set[str] = set()
    for package in packages:
        for name, definition in facts[package].items():
            full = f"{package}.{name}"
            if name not in names and _is_struct(full, definition):
                names.add(name)
                found[full] = definition
    return found


def _homeless(facts: dict[str, dict[str, Facts]], definitions: dict[str, Facts], homes: set[str]) -> dict[str, Facts]:
    """Definitions that a module refers to, directly or through others, and that stand in no module."""
    added: dict[str, Facts] = {}
    pending = list(definitions.values())
    while pending:
        for full in _references(pending.pop()):
            package, _, name = full.rpartition(".")
            definition = facts[package][name]
            if full not in homes and full not in added and _is_struct(full, definition):
                added[full] = definition
                pending.append(definition)
    return added


def _references(definition: Facts) -> Iterator[str]:
    pending = list(definition.get("properties", {}).values())
    while pending:
        prop = pending.pop()
        if "ref" in prop:
            yield prop["ref"]
        pending += (prop[key] for key in ("items", "values") if key in prop)


def _is_struct(full: str, definition: Facts) -> bool:
    if full in HAND_WRITTEN or full in _NULLABLE_VALUES or full in _FREE_FORM:
        return False
    return definition.get("type") == "object" and not _is_list(definition)


def _quoted(path: tuple[str, ...]) -> list[str]:
    return [f'"{name}"' for name in path]


def _tuple(items: Iterable[str]) -> str:
    """The source of a tuple, as it would be formatted."""
    texts = list(items)
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _is_list(definition: Facts) -> bool:
    properties = definition.get("properties", {})
    return properties.get("metadata", {}).get("ref") == f"{_META}.ListMeta" and "items" in properties


class _Writer:
    """Writes one module. Classes stand after the classes that they use as factories."""

    def __init__(self, module: Module, homes: dict[str, str], wire: dict[str, dict[str, Wire]]) -> None:
        self._module = module
        self._homes = homes
        self._wire = wire

    def source(self) -> str:
        classes = {full: self._class(full) for full in sorted(self._module.definitions)}
        ordered = [classes[full] for full in self._ordered()]
        return "\n\n\n".join([self._head(), *ordered]) + "\n"

    def _head(self) -> str:
        packages = sorted({full.rsplit(".", 1)[0] for full in self._module.definitions})
        lines = [
            f'"""Structs of {" and ".join(packages)}.',
            "",
            "Generated by tools/generate_api.py; do not edit.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
        ]
        imports = self._module.imports
        if "typing" in imports:
            lines += ["from typing import Any", ""]
        if "msgspec" in imports:
            lines += ["from msgspec import field", ""]
        for module in sorted(imports):
            if module.startswith("dray"):
                lines.append(_import_line(module, sorted(imports[module], key=_import_order)))
        return "\n".join(lines)

    def _ordered(self) -> list[str]:
        done: dict[str, None] = {}

        def visit(full: str) -> None:
            if full in done:
                return
            for used in sorted(self._factories(full)):
                visit(used)
            done[full] = None

        for full in sorted(self._module.definitions):
            visit(full)
        return list(done)

    def _factories(self, full: str) -> set[str]:
        return {
            prop["ref"]
            for name, prop in self._module.definitions[full].get("properties", {}).items()
            if prop.get("ref") in self._module.definitions and self._wire_of(full, name) == "always"
        }

    def _wire_of(self, full: str, name: str) -> Wire:
        known = self._wire.get(full, {}).get(name)
        if known is not None:
            return known
        definition = self._module.definitions[full]
        return presumed_wire(
            definition["properties"][name],
            required=name in definition.get("required", ()),
            of_kind="kinds" in definition,
            name=name,
        )

    def _class(self, full: str) -> str:
        package, _, name = full.rpartition(".")
        definition = self._module.definitions[full]
        properties: Facts = definition.get("properties", {})
        inherited: set[str] = set()
        base = "Struct"
        if properties.get("metadata", {}).get("ref") == f"{_META}.ObjectMeta" and "kinds" in definition:
            inherited, base = {"kind", "apiVersion", "metadata"}, "Object"
        self._module.add_import("dray.api.meta" if base == "Object" else "dray.api.struct", base)
        version = package.rsplit(".", 1)[1]
        lines = [f"class {name}({base}):", f'    """{self._module.name}/{version} {name}."""', ""]
        if full in _NULL_WHEN_EMPTY:
            lines += [f"    null_when_empty = {_tuple(map(_tuple, map(_quoted, _NULL_WHEN_EMPTY[full])))}", ""]
        lines += (self._field(full, prop) for prop in sorted(properties) if prop not in inherited)
        return "\n".join(lines).rstrip()

    def _field(self, full: str, json_name: str) -> str:
        prop = self._module.definitions[full]["properties"][json_name]
        wire = self._wire_of(full, json_name)
        annotation, arguments = self._typed(prop, wire)
        name = attribute(json_name)
        if _camel(name) != json_name:
            arguments["name"] = f'"{json_name}"'
        return _assignment(name, annotation, arguments, self._module)

    def _typed(self, prop: Facts, wire: Wire) -> tuple[str, dict[str, str]]:
        """The annotation and the default of a field, as keyword arguments of `field`."""
        annotation = self._annotation(prop)
        kind = prop.get("type")
        if annotation == "Any":
            return annotation, {"default": "None"}
        if kind == "array":
            return annotation, {"default": "()"} if wire == "omit_zero" else {"default_factory": "lambda: ()"}
        if kind == "object":
            return annotation, {"default_factory": "dict"}
        nullable = prop.get("ref") in _NULLABLE_VALUES
        if wire == "null" or (wire == "always" and nullable):
            return f"{annotation} | None", {"default_factory": "lambda: None"}
        if wire == "pointer" or nullable:
            return f"{annotation} | None", {"default": "None"}
        if wire == "always":
            return annotation, {"default_factory": self._zero_factory(prop, annotation)}
        if annotation == _BYTES:
            self._module.add_import(_BYTES_MODULE, "NOTHING")
        return annotation, {"default": _ZEROS[annotation]}

    def _zero_factory(self, prop: Facts, annotation: str) -> str:
        value = _VALUES.get(prop.get("ref", ""))
        return value[2] if value else annotation

    def _annotation(self, prop: Facts) -> str:
        if "ref" in prop:
            return self._reference(prop["ref"])
        kind = prop.get("type")
        if kind == "array":
            return f"tuple[{self._annotation(prop['items'])}, ...]"
        if kind == "object" and "values" in prop:
            return f"dict[str, {self._annotation(prop['values'])}]"
        if kind == "string" and prop.get("format") == "byte":
            self._module.add_import(_BYTES_MODULE, _BYTES)
            return _BYTES
        return _SCALARS[kind] if kind in _SCALARS else self._free_form()

    def _reference(self, full: str) -> str:
        name = full.rsplit(".", 1)[1]
        if full in _FREE_FORM:
            return self._free_form()
        if full in _VALUES:
            annotation, module, _ = _VALUES[full]
            self._module.add_import(module, annotation)
            return annotation
        if full in _NULLABLE_VALUES:
            annotation, module = _NULLABLE_VALUES[full]
            self._module.add_import(module, annotation)
            return annotation
        if full in HAND_WRITTEN:
            self._module.add_import(HAND_WRITTEN[full], name)
        elif full not in self._module.definitions:
            self._module.add_import(f"dray.api.generated.{self._homes[full]}", name)
        return name

    def _free_form(self) -> str:
        self._module.add_import("typing", "Any")
        return "Any"


def _camel(name: str) -> str:
    """What msgspec's `rename="camel"` makes of an attribute."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def _assignment(name: str, annotation: str, arguments: dict[str, str], module: Module) -> str:
    head = f"    {name}: {annotation} = "
    if list(arguments) == ["default"]:
        return head + arguments["default"]
    module.add_import("msgspec", "field")
    inner = ", ".join(f"{key}={value}" for key, value in arguments.items())
    line = f"{head}field({inner})"
    if len(line) <= LINE_LENGTH:
        return line
    return f"{head}field(\n        {inner}\n    )"


def _import_line(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= LINE_LENGTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"


def _import_order(name: str) -> tuple[bool, str]:
    """isort's order: constants, then classes, then the rest."""
    return (not name.isupper(), name)

"""What a schema must be like to be structural: every type is said once, outside of alternatives, and nothing refers.

Kubernetes' paths and reasons. A schema is walked once; what is wrong in many places is told up to a bound.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dray.api.field import forbidden, invalid, not_supported, required
from dray.api.generated.apiextensions import JSONSchemaProps
from dray.cel.library.regex import RegexError, compile_regex
from dray.cel.library.regex_size import regex_size
from dray.custom.default_rules import check_defaults, check_defaults_by_rules
from dray.custom.list_rules import check_list
from dray.custom.pruning import META_FIELDS
from dray.custom.rule_checks import check_rules
from dray.custom.rules import Run
from dray.custom.text_formats import text_format
from dray.validation.context import Errors

TYPES = ("array", "boolean", "integer", "number", "object", "string")
DEEPEST = 100
MOST_PATTERNS = 200_000
"""How large all patterns of a schema may be together (`regex_size`): they take a quarter of a second to compile."""
_INT_OR_STRING = (JSONSchemaProps(type="integer"), JSONSchemaProps(type="string"))
_UNSUPPORTED = (
    ("id", "id"),
    ("additional_items", "additionalItems"),
    ("pattern_properties", "patternProperties"),
    ("definitions", "definitions"),
    ("dependencies", "dependencies"),
    ("ref", "$ref"),
)
_ROOT_WITH_STATUS = frozenset(
    (
        "description", "type", "format", "title", "maximum", "exclusive_maximum", "minimum", "exclusive_minimum",
        "max_length", "min_length", "pattern", "max_items", "min_items", "unique_items", "multiple_of", "required",
        "items", "properties", "external_docs", "example", "x_kubernetes_preserve_unknown_fields",
        "x_kubernetes_validations",
    )
)  # fmt: skip
_NESTED_FORBIDDEN = (
    ("type", "type", "must be empty to be structural"),
    ("default", "default", "must be undefined to be structural"),
    ("title", "title", "must be empty to be structural"),
    ("description", "description", "must be empty to be structural"),
    ("nullable", "nullable", "must be false to be structural"),
    ("additional_properties", "additionalProperties", "must be undefined to be structural"),
    ("x_kubernetes_preserve_unknown_fields", "x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x_kubernetes_embedded_resource", "x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x_kubernetes_int_or_string", "x-kubernetes-int-or-string", "must be false to be structural"),
    ("x_kubernetes_list_map_keys", "x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x_kubernetes_list_type", "x-kubernetes-list-type", "must be undefined to be structural"),
    ("x_kubernetes_map_type", "x-kubernetes-map-type", "must be undefined to be structural"),
    ("x_kubernetes_validations", "x-kubernetes-validations", "must be empty to be structural"),
)


def check_schema(
    errors: Errors, schema: JSONSchemaProps, path: str, *, has_status: bool, known: frozenset[str], run: Run
) -> None:
    """Everything that is wrong with the schema of a version; `known` expressions were accepted before.

    Raises Postponed if rules take long to judge defaults.
    """
    before = len(errors)
    if has_status:
        _check_root_with_status(errors, schema, path)
    if schema.nullable:
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    _Walk(errors).visit(schema, path, "root")
    if any(part.schema for part in parts_of(schema)):
        errors.append(invalid(path, "", "OpenAPIV3Schema 'schema' is not supported"))
    if len(errors) == before:
        check_defaults(errors, schema, path)
    if len(errors) == before:
        check_rules(errors, schema, path, known)
    if len(errors) == before:
        check_defaults_by_rules(errors, schema, path, run)


def expressions_in(schema: JSONSchemaProps) -> frozenset[str]:
    """All CEL expressions of a schema."""
    return frozenset(
        text
        for part in parts_of(schema)
        for rule in part.x_kubernetes_validations
        for text in (rule.rule, rule.message_expression)
    )


def unknown_formats(schema: JSONSchemaProps) -> Iterator[str]:
    """Formats that nobody looks at."""
    for part in parts_of(schema):
        name, kind = part.format, part.type
        if not name:
            continue
        is_known = (
            text_format(name) is not None or name.replace("-", "") in _HARMLESS
            if kind in ("", "string")
            else name in ("int32", "int64")
            if kind == "integer"
            else name in ("float", "double")
            if kind == "number"
            else False
        )
        if not is_known:
            yield name


_HARMLESS = frozenset(("password", "bsonobjectid", "isbn", "isbn10", "isbn13", "creditcard", "rgbcolor"))
"""Formats that Kubernetes checks and dray lets pass."""


def parts_of(schema: JSONSchemaProps) -> Iterator[JSONSchemaProps]:
    """A schema and all schemas in it."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += part.properties.values()
        waiting += [*part.all_of, *part.any_of, *part.one_of]
        waiting += [
            one for one in (part.items, part.additional_properties, part.not_) if isinstance(one, JSONSchemaProps)
        ]


def _check_root_with_status(errors: Errors, schema: JSONSchemaProps, path: str) -> None:
    if schema.type and schema.type != "object":
        said = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        errors.append(invalid(f"{path}.type", schema.type, said))
    nothing = JSONSchemaProps()
    strange = [
        name
        for name in schema.__struct_fields__
        if name not in _ROOT_WITH_STATUS and getattr(schema, name) != getattr(nothing, name)
    ]
    if strange:
        said = f"{strange[0]} is not allowed at the root of the schema if the status subresource is enabled"
        errors.append(invalid(path, strange[0], said))


class _Walk:
    """Visits every part of a schema. `level` is root, item or field: where a part stands."""

    def __init__(self, errors: Errors) -> None:
        self._errors = errors
        self._depth = 0
        self._patterns = 0

    def visit(self, schema: JSONSchemaProps, path: str, level: str, *, in_metadata: bool = False) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            self._errors.append(forbidden(path, f"schemas may not be nested deeper than {DEEPEST} levels"))
        else:
            self._visit(schema, path, level, in_metadata=in_metadata)
        self._depth -= 1

    def _visit(self, schema: JSONSchemaProps, path: str, level: str, *, in_metadata: bool) -> None:
        errors = self._errors
        self._check_supported(schema, path, in_metadata=in_metadata)
        self._check_type(schema, path, level)
        check_list(errors, schema, path)
        self._check_embedded(schema, path, level)
        self._check_values(schema, path)
        is_resource = level == "root" or schema.x_kubernetes_embedded_resource
        for name, part in schema.properties.items():
            is_meta = is_resource and name in META_FIELDS
            if is_meta and level == "root" and part.default is not None:
                errors.append(forbidden(f"{path}.properties[{name}].default", f"must not be set in top-level {name}"))
            self.visit(part, f"{path}.properties[{name}]", "field", in_metadata=in_metadata or is_meta)
        others = schema.additional_properties
        if others is not None:
            if level == "root":
                errors.append(forbidden(f"{path}.additionalProperties", "must not be used at the root"))
            if schema.properties and others is not True:
                said = "additionalProperties and properties are mutual exclusive"
                errors.append(forbidden(f"{path}.additionalProperties", said))
            if isinstance(others, JSONSchemaProps):
                self.visit(others, f"{path}.additionalProperties", "field", in_metadata=in_metadata)
        if isinstance(schema.items, JSONSchemaProps):
            self.visit(schema.items, f"{path}.items", "item", in_metadata=in_metadata)

    def _check_supported(self, schema: JSONSchemaProps, path: str, *, in_metadata: bool) -> None:
        errors = self._errors
        for attribute, name in _UNSUPPORTED:
            if getattr(schema, attribute) not in (None, "", {}):
                errors.append(forbidden(f"{path}.{name}", f"{name} is not supported"))
        if isinstance(schema.items, tuple):
            errors.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
        if schema.unique_items:
            said = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
            errors.append(forbidden(f"{path}.uniqueItems", said))
        if schema.x_kubernetes_preserve_unknown_fields is False:
            errors.append(invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
        if in_metadata and schema.x_kubernetes_embedded_resource:
            said = "must not be used inside of resource meta"
            errors.append(forbidden(f"{path}.x-kubernetes-embedded-resource", said))

    def _check_type(self, schema: JSONSchemaProps, path: str, level: str) -> None:
        errors, kind = self._errors, schema.type
        if kind == "null":
            said = "type cannot be set to null, use nullable as an alternative"
            errors.append(forbidden(f"{path}.type", said))
        elif kind and kind not in TYPES:
            errors.append(not_supported(f"{path}.type", kind, TYPES))
        is_free = schema.x_kubernetes_int_or_string or bool(schema.x_kubernetes_preserve_unknown_fields)
        if schema.x_kubernetes_embedded_resource and kind != "object":
            said = "must be object if x-kubernetes-embedded-resource is true"
            errors.append(invalid(f"{path}.type", kind, said) if kind else required(f"{path}.type", said))
        elif not kind and not is_free and not schema.ref:
            where = {"root": "at the root", "item": "for specified array items"}.get(level)
            errors.append(required(f"{path}.type", f"must not be empty {where or 'for specified object fields'}"))
        if level == "root" and kind and kind != "object":
            errors.append(invalid(f"{path}.type", kind, "must be object at the root"))
        if kind == "array" and schema.items is None:
            errors.append(required(f"{path}.items", "must be specified"))
        if schema.x_kubernetes_map_type is not None:
            if kind != "object":
                said = "must be object if x-kubernetes-map-type is specified"
                errors.append(invalid(f"{path}.type", kind, said) if kind else required(f"{path}.type", said))
            if schema.x_kubernetes_map_type not in ("atomic", "granular"):
                given = schema.x_kubernetes_map_type
                errors.append(not_supported(f"{path}.x-kubernetes-map-type", given, ("atomic", "granular")))

    def _check_embedded(self, schema: JSONSchemaProps, path: str, level: str) -> None:
        errors = self._errors
        if schema.x_kubernetes_int_or_string:
            said = "must be false if x-kubernetes-int-or-string is true"
            if schema.x_kubernetes_preserve_unknown_fields:
                errors.append(invalid(f"{path}.x-kubernetes-preserve-unknown-fields", True, said))
            if schema.x_kubernetes_embedded_resource:
                errors.append(invalid(f"{path}.x-kubernetes-embedded-resource", True, said))
        if schema.x_kubernetes_embedded_resource:
            if schema.additional_properties is not None:
                said = "must not be used if x-kubernetes-embedded-resource is set"
                errors.append(forbidden(f"{path}.additionalProperties", said))
            if not schema.properties and not schema.x_kubernetes_preserve_unknown_fields:
                said = (
                    "must not be empty if x-kubernetes-embedded-resource is true without "
                    "x-kubernetes-preserve-unknown-fields"
                )
                errors.append(required(f"{path}.properties", said))
        if level != "root" and not schema.x_kubernetes_embedded_resource:
            return
        for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
            part = schema.properties.get(name)
            if part is not None and part.type != wanted:
                errors.append(invalid(f"{path}.properties[{name}].type", part.type, f"must be {wanted}"))
        meta = schema.properties.get("metadata")
        if level == "root" and meta is not None and not _restricts_only_names(meta):
            said = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            errors.append(forbidden(f"{path}.properties[metadata]", said))

    def _check_values(self, schema: JSONSchemaProps, path: str) -> None:
        """Patterns, and alternatives, in which only values may be restricted."""
        if schema.pattern:
            self._patterns += regex_size(schema.pattern)
            if self._patterns > MOST_PATTERNS:
                self._errors.append(forbidden(f"{path}.pattern", "the patterns of the schema are too large together"))
                return
            try:
                compile_regex(schema.pattern)
            except RegexError as error:
                said = f"must be a valid regular expression, but isn't: {error}"
                self._errors.append(invalid(f"{path}.pattern", schema.pattern, said))
        if not schema.x_kubernetes_int_or_string or schema.any_of != _INT_OR_STRING:
            for index, part in enumerate(schema.any_of):
                self._check_nested(part, f"{path}.anyOf[{index}]")
        for index, part in enumerate(schema.all_of):
            if index == 0 and schema.x_kubernetes_int_or_string and part.any_of == _INT_OR_STRING:
                continue
            self._check_nested(part, f"{path}.allOf[{index}]")
        for index, part in enumerate(schema.one_of):
            self._check_nested(part, f"{path}.oneOf[{index}]")
        if schema.not_ is not None:
            self._check_nested(schema.not_, f"{path}.not")

    def _check_nested(self, schema: JSONSchemaProps, path: str) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            self._errors.append(forbidden(path, f"schemas may not be nested deeper than {DEEPEST} levels"))
        else:
            for attribute, name, said in _NESTED_FORBIDDEN:
                if getattr(schema, attribute):
                    self._errors.append(forbidden(f"{path}.{name}", said))
            if "metadata" in schema.properties:
                said = "must not be specified in a nested context"
                self._errors.append(forbidden(f"{path}.properties[metadata]", said))
            self._check_values(schema, path)
            for name, part in schema.properties.items():
                self._check_nested(part, f"{path}.properties[{name}]")
            if isinstance(schema.items, JSONSchemaProps):
                self._check_nested(schema.items, f"{path}.items")
        self._depth -= 1


def _restricts_only_names(meta: JSONSchemaProps) -> bool:
    bare = msgspec.structs.replace(meta, properties={}, type="", default=None)
    return set(meta.properties) <= {"name", "generateName"} and bare == JSONSchemaProps()

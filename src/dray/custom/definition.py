"""A definition, compiled: what each of its versions makes of an object."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dray.api.generated.apiextensions import (
    CustomResourceColumnDefinition,
    CustomResourceDefinition,
    CustomResourceDefinitionVersion,
    CustomResourceSubresourceScale,
    JSONSchemaProps,
)
from dray.custom.defaulting import Default, Growth, compile_defaults, growth_of
from dray.custom.embedded import Places, compile_embedded, compile_places
from dray.custom.list_types import compile_list_types
from dray.custom.plain_types import Fits, compile_fits
from dray.custom.problems import Check, Problem
from dray.custom.pruning import META_FIELDS, Prune, compile_pruning
from dray.custom.rules import Judge, compile_rules
from dray.custom.value_checks import compile_checks

EVERYTHING = JSONSchemaProps(x_kubernetes_preserve_unknown_fields=True)
"""The schema of a version that has none."""
_LARGE_SCHEMA: Final = 32 * 1024
_COMPILED: Final = frozenset(
    (
        "fits", "prune", "embedded", "default", "growth", "checks", "quick_checks", "list_check", "rules",
        "rules_read_names", "metadata_check", "is_large",
    )
)  # fmt: skip
_EVERYTHING_MADE: Final = "everything_made"


class Version(msgspec.Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """One version of a custom resource. The functions take the content of an object, or what it is made of.

    They are made when they are first needed: many definitions come with versions that nobody uses.
    """

    name: str
    schema: JSONSchemaProps
    columns: tuple[CustomResourceColumnDefinition, ...]
    selectable: tuple[str, ...]
    has_status: bool
    scale: CustomResourceSubresourceScale | None
    warning: str
    """What whoever uses the version is told; empty if it is not deprecated."""

    @property
    def is_compiled(self) -> bool:
        """Whether everything is made."""
        return _EVERYTHING_MADE in self.__dict__

    def compile(self) -> None:
        """Makes everything, for whoever has the time: nobody waits for a lock that `cached_property` would hold."""
        for name in _COMPILED - self.__dict__.keys():
            self.__dict__[name] = getattr(type(self), name).func(self)
        self.__dict__[_EVERYTHING_MADE] = True

    @cached_property
    def is_large(self) -> bool:
        """Whether objects may be large, or take long to look at, because the schema is."""
        return len(msgspec.json.encode(self.schema)) > _LARGE_SCHEMA

    @cached_property
    def _of_content(self) -> JSONSchemaProps:
        return _without_metadata(self.schema)

    @cached_property
    def fits(self) -> Fits | None:
        """Tells that content is as the schema wants it, for what has nothing in it that others must look at."""
        return compile_fits(self._of_content)

    @cached_property
    def prune(self) -> Prune | None:
        """Drops unknown fields of a whole document."""
        return compile_pruning(self.schema, is_root=True)

    @cached_property
    def embedded(self) -> Places | None:
        """Finds the objects inside of a document."""
        return compile_places(self._of_content)

    @cached_property
    def default(self) -> Default | None:
        """Sets what is missing."""
        return compile_defaults(self._of_content)

    @cached_property
    def growth(self) -> Growth:
        """How much defaults may add."""
        return growth_of(self._of_content)

    @cached_property
    def _value_check(self) -> Check | None:
        return compile_checks(self._of_content)

    @cached_property
    def _other_checks(self) -> tuple[Check, ...]:
        check = compile_embedded(self._of_content)
        return () if check is None else (check,)

    @cached_property
    def list_check(self) -> Check | None:
        """What stands twice in lists that are sets or maps."""
        return compile_list_types(self._of_content)

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """What the schema says of values, one by one."""
        return self._other_checks if self._value_check is None else (self._value_check, *self._other_checks)

    @cached_property
    def quick_checks(self) -> tuple[Check, ...]:
        """The same for small objects, most of which are known to be right at a look."""
        if self.fits is None or self._value_check is None:
            return self.checks
        return (_unless(self.fits, self._value_check), *self._other_checks)

    @cached_property
    def rules(self) -> Judge | None:
        """What the rules in the schema say of a whole document."""
        return compile_rules(self.schema, is_root=True)

    @cached_property
    def rules_read_names(self) -> bool:
        """Whether the rules see more of a document than its content: kind, apiVersion or metadata."""
        schema = self.schema
        parts = [schema.properties[name] for name in META_FIELDS if name in schema.properties]
        if isinstance(schema.additional_properties, JSONSchemaProps):
            parts.append(schema.additional_properties)
        return bool(schema.x_kubernetes_validations) or any(compile_rules(part) is not None for part in parts)

    @cached_property
    def metadata_check(self) -> Check | None:
        """What the schema says of the name; other metadata is none of its business."""
        found = self.schema.properties.get("metadata")
        return compile_checks(found) if found is not None else None


def _unless(fits: Fits, check: Check) -> Check:
    """A check that looks only at what is not known to be right."""

    def checked(value: Any) -> list[Problem] | None:
        return None if fits(value) else check(value)

    return checked


def schema_of(version: CustomResourceDefinitionVersion) -> JSONSchemaProps:
    """The schema of a version."""
    given = version.schema.open_apiv3_schema if version.schema is not None else None
    return given if given is not None else EVERYTHING


def compile_version(definition: CustomResourceDefinition, version: CustomResourceDefinitionVersion) -> Version:
    """A version, ready for objects."""
    parts = version.subresources
    return Version(
        name=version.name,
        schema=schema_of(version),
        columns=version.additional_printer_columns,
        selectable=tuple(field.json_path for field in version.selectable_fields),
        has_status=parts is not None and parts.status is not None,
        scale=parts.scale if parts is not None else None,
        warning=_warning(definition, version),
    )


def _without_metadata(schema: JSONSchemaProps) -> JSONSchemaProps:
    """The schema of what is left of an object without kind, apiVersion and metadata, which are always there."""
    properties = {name: found for name, found in schema.properties.items() if name not in META_FIELDS}
    required = tuple(name for name in schema.required if name not in META_FIELDS)
    return replace(schema, properties=properties, required=required, x_kubernetes_embedded_resource=False)


def _warning(definition: CustomResourceDefinition, version: CustomResourceDefinitionVersion) -> str:
    if not version.deprecated:
        return ""
    if version.deprecation_warning is not None:
        return version.deprecation_warning
    return f"{definition.spec.group}/{version.name} {definition.spec.names.kind} is deprecated"


def metadata_document(meta: Any) -> dict[str, Any]:
    """The part of the metadata that schemas and rules can speak of."""
    found = {"name": meta.name} if meta.name else {}
    return found | ({"generateName": meta.generate_name} if meta.generate_name else {})

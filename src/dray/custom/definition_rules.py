"""The rules for definitions: what the server adds to one, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

from msgspec.structs import replace

from dray.api.field import duplicate, forbidden, invalid, required, too_many
from dray.api.generated.apiextensions import (
    CustomResourceColumnDefinition,
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
    JSONSchemaProps,
)
from dray.api.times import Time
from dray.cel import Postponed
from dray.cel.allowance import More
from dray.custom import schema_rules
from dray.custom.definition import schema_of
from dray.custom.kinds import is_built_in
from dray.custom.names import CLEANUP, is_established, with_accepted_names, with_stored_version
from dray.custom.paths import steps_of
from dray.custom.rules import Run
from dray.custom.schema_rules import check_schema, unknown_formats
from dray.validation import Context, check, names
from dray.validation.context import Errors
from dray.validation.metadata import NameRule, with_metadata
from dray.validation.rules import Rules

SCOPES = ("Cluster", "Namespaced")
MOST_SELECTABLE_FIELDS = 8
LARGE_SCHEMAS = 300
"""How many parts the schemas of a definition may have together to be looked at while others wait."""
APPROVAL = "api-approved.kubernetes.io"
_PROTECTED = ("k8s.io", "kubernetes.io")
_COLUMN_TYPES = ("integer", "number", "string", "boolean", "date")
_COLUMN_FORMATS = ("int32", "int64", "float", "double", "byte", "date", "date-time", "password")
_SELECTABLE_TYPES = ("string", "boolean", "integer")
_REVIEW_VERSIONS = ("v1", "v1beta1")

Definitions = Callable[[], Iterable[CustomResourceDefinition]]
"""The definitions that there are."""


def rules(definitions: Definitions) -> Rules:
    """The rules for definitions in a server that has others already."""

    def change(new: CustomResourceDefinition, old: CustomResourceDefinition | None, ctx: Context) -> Any:
        new = with_stored_version(new)
        if old is None:
            new = with_metadata(new, finalizers=tuple(dict.fromkeys((*new.metadata.finalizers, CLEANUP))))
        return with_accepted_names(new, definitions(), ctx.now)

    return Rules(
        namespaced=False,
        own_finalizers=True,
        name=NameRule(names.dns_subdomain, None),
        has_generation=True,
        has_status=True,
        default=default,
        change=change,
        check=check_definition,
        check_status=_check_status,
        warnings=_warnings,
    )


def default(definition: CustomResourceDefinition, _now: Time) -> CustomResourceDefinition:
    """Names that follow from others, and the conversion that does nothing."""
    spec, given = definition.spec, definition.spec.names
    full = replace(
        given,
        singular=given.singular or given.kind.lower(),
        list_kind=given.list_kind or (f"{given.kind}List" if given.kind else ""),
    )
    conversion = spec.conversion or CustomResourceConversion(strategy="None")
    hook = conversion.webhook
    if hook is not None and hook.client_config is not None and hook.client_config.service is not None:
        service = hook.client_config.service
        if service.port is None:
            config = replace(hook.client_config, service=replace(service, port=443))
            conversion = replace(conversion, webhook=replace(hook, client_config=config))
    if full == given and conversion is spec.conversion:
        return definition
    return replace(definition, spec=replace(spec, names=full, conversion=conversion))


def check_definition(
    errors: Errors, new: CustomResourceDefinition, old: CustomResourceDefinition | None, ctx: Context
) -> None:
    """Everything that is wrong with a definition. What it said before, and says again, is not judged again.

    Raises Postponed for schemas that take longer than others can wait.
    """
    spec = new.spec
    if ctx.more is None and (old is None or old.spec != spec) and _is_large(spec):
        raise Postponed
    if old is None and new.metadata.name != f"{spec.names.plural}.{spec.group}":
        errors.append(invalid("metadata.name", new.metadata.name, 'must be spec.names.plural+"."+spec.group'))
    _check_spec(errors, spec, old.spec if old is not None else None, ctx.more)
    _check_stored_versions(errors, new)
    if old is not None:
        if is_established(old):
            check.immutable(errors, "spec.scope", spec.scope, old.spec.scope)
            check.immutable(errors, "spec.names.kind", spec.names.kind, old.spec.names.kind)
        check.immutable(errors, "spec.group", spec.group, old.spec.group)
        check.immutable(errors, "spec.names.plural", spec.names.plural, old.spec.names.plural)
    _check_approval(errors, new, old)


def _is_large(spec: CustomResourceDefinitionSpec) -> bool:
    """Whether the schemas have so many parts that looking at them takes a while."""
    parts = (part for version in spec.versions for part in schema_rules.parts_of(schema_of(version)))
    return next(islice(parts, LARGE_SCHEMAS, None), None) is not None


def _check_status(errors: Errors, new: CustomResourceDefinition, _old: Any, _ctx: Context) -> None:
    _check_names(errors, new.status.accepted_names, "status.acceptedNames")


def _warnings(definition: CustomResourceDefinition) -> list[str]:
    found = dict.fromkeys(name for version in definition.spec.versions for name in unknown_formats(schema_of(version)))
    told = [f'unrecognized format "{name}"' for name in found]
    spec = definition.spec
    if is_built_in(definition):
        told.append(f"{spec.names.kind} is built in: the definition is stored and has no effect")
    return told


def _check_spec(
    errors: Errors, spec: CustomResourceDefinitionSpec, old: CustomResourceDefinitionSpec | None, more: More | None
) -> None:
    _check_group(errors, spec.group)
    check.required_one_of(errors, "spec.scope", spec.scope, SCOPES)
    if spec.preserve_unknown_fields and not (old is not None and old.preserve_unknown_fields):
        said = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        errors.append(invalid("spec.preserveUnknownFields", True, said))
    known = {} if old is None else {version.name: version for version in old.versions}
    for index, version in enumerate(spec.versions):
        _check_version(errors, version, f"spec.versions[{index}]")
    _check_parts(errors, spec.versions, known, Run(more))
    if spec.versions:
        _check_label(errors, spec.versions[0].name, "spec.version")  # as which Kubernetes knows the first one, too
    _check_versions(errors, spec.versions)
    for field, value in (
        ("plural", spec.names.plural),
        ("singular", spec.names.singular),
        ("kind", spec.names.kind),
        ("listKind", spec.names.list_kind),
    ):
        if not value:
            errors.append(required(f"spec.names.{field}"))
    _check_names(errors, spec.names, "spec.names")
    if spec.conversion is not None:
        _check_conversion(errors, spec.conversion)


def _check_group(errors: Errors, group: str) -> None:
    check.required_name(errors, "spec.group", group, names.dns_subdomain)
    if group and not names.dns_subdomain(group) and "." not in group:
        errors.append(invalid("spec.group", group, "should be a domain with at least one dot"))


def _check_versions(errors: Errors, versions: tuple[CustomResourceDefinitionVersion, ...]) -> None:
    shown = [version.name for version in versions]
    if len(set(shown)) < len(shown):
        errors.append(invalid("spec.versions", shown, "must contain unique version names"))
    if sum(version.storage for version in versions) != 1:
        errors.append(invalid("spec.versions", shown, "must have exactly one version marked as storage version"))


def _check_names(errors: Errors, given: CustomResourceDefinitionNames, path: str) -> None:
    _check_label(errors, given.plural, f"{path}.plural")
    _check_label(errors, given.singular, f"{path}.singular")
    for field, value in (("kind", given.kind), ("listKind", given.list_kind)):
        problems = names.dns_1035_label(value.lower()) if value else ()
        if problems:
            said = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            errors.append(invalid(f"{path}.{field}", value, said))
    for index, name in enumerate(given.short_names):
        _check_label(errors, name, f"{path}.shortNames[{index}]", may_be_empty=False)
    if given.kind and given.kind == given.list_kind:
        errors.append(invalid(f"{path}.listKind", given.list_kind, "kind and listKind may not be the same"))
    for index, name in enumerate(given.categories):
        _check_label(errors, name, f"{path}.categories[{index}]", may_be_empty=False)


def _check_label(errors: Errors, value: str, path: str, *, may_be_empty: bool = True) -> None:
    problems = () if may_be_empty and not value else names.dns_1035_label(value)
    if problems:
        errors.append(invalid(path, value, ",".join(problems)))


def _check_version(errors: Errors, version: CustomResourceDefinitionVersion, path: str) -> None:
    _check_label(errors, version.name, f"{path}.name", may_be_empty=False)
    _check_deprecation(errors, version, f"{path}.deprecationWarning")
    if version.schema is None or version.schema.open_apiv3_schema is None:
        errors.append(required(f"{path}.schema.openAPIV3Schema"))


_Versions: TypeAlias = tuple[CustomResourceDefinitionVersion, ...]


def _check_parts(
    errors: Errors, versions: _Versions, old: dict[str, CustomResourceDefinitionVersion], run: Run
) -> None:
    """What versions say each. As in Kubernetes, what all of them say alike is a part of the spec, and judged once."""
    for index, version in _judged(versions, "schema"):
        place = "spec.validation" if index is None else f"spec.versions[{index}].schema"
        _check_schema(errors, version, f"{place}.openAPIV3Schema", old.get(version.name), run)
    for index, version in _judged(versions, "subresources"):
        _check_subresources(errors, version.subresources, f"{_place(index)}.subresources")
    for index, version in _judged(versions, "additional_printer_columns"):
        for number, column in enumerate(version.additional_printer_columns):
            _check_column(errors, column, f"{_place(index)}.additionalPrinterColumns[{number}]")
    for index, version in _judged(versions, "selectable_fields"):
        schema = version.schema.open_apiv3_schema if version.schema is not None else None
        path = f"{_place(index)}.selectableFields"
        if version.selectable_fields and schema is None:
            errors.append(invalid(path, "", "may only be set when there is a schema"))
        elif schema is not None:
            _check_selectable_fields(errors, version, schema, path, old.get(version.name))


def _judged(versions: _Versions, part: str) -> Iterator[tuple[int | None, CustomResourceDefinitionVersion]]:
    """The versions whose part is to be judged, with their places; one, in none, if all are alike."""
    if versions and all(getattr(version, part) == getattr(versions[0], part) for version in versions):
        yield None, versions[0]
    else:
        yield from enumerate(versions)


def _place(index: int | None) -> str:
    return "spec" if index is None else f"spec.versions[{index}]"


def _check_schema(
    errors: Errors,
    version: CustomResourceDefinitionVersion,
    path: str,
    old: CustomResourceDefinitionVersion | None,
    run: Run,
) -> None:
    schema = version.schema.open_apiv3_schema if version.schema is not None else None
    if schema is None or (old is not None and schema == schema_of(old)):
        return
    has_status = version.subresources is not None and version.subresources.status is not None
    known = schema_rules.expressions_in(schema_of(old)) if old is not None else frozenset()
    check_schema(errors, schema, path, has_status=has_status, known=known, run=run)


def _check_deprecation(errors: Errors, version: CustomResourceDefinitionVersion, path: str) -> None:
    text = version.deprecation_warning
    if text is None:
        return
    if not version.deprecated:
        errors.append(invalid(path, text, "can only be set for deprecated versions"))
        return
    if len(text) > 256:
        errors.append(invalid(path, text, "must be <= 256 characters long"))
    if not text:
        errors.append(invalid(path, text, "must not be an empty string"))
    if not text.isprintable():
        errors.append(invalid(path, text, "must only contain printable UTF-8 characters"))


def _check_path(errors: Errors, value: str, path: str, *starts: str) -> None:
    if not value:
        errors.append(required(path))
    elif not value.startswith("."):
        errors.append(invalid(path, value, "must be a simple json path starting with ."))
    elif starts and not value.startswith(starts):
        under = " or ".join(start.rstrip(".") for start in starts)
        errors.append(invalid(path, value, f"should be a json path under {under}"))


def _check_subresources(errors: Errors, given: CustomResourceSubresources | None, path: str) -> None:
    if given is None or given.scale is None:
        return
    scale = given.scale
    _check_path(errors, scale.spec_replicas_path, f"{path}.scale.specReplicasPath", ".spec.")
    _check_path(errors, scale.status_replicas_path, f"{path}.scale.statusReplicasPath", ".status.")
    if scale.label_selector_path:
        _check_path(errors, scale.label_selector_path, f"{path}.scale.labelSelectorPath", ".spec.", ".status.")


def _check_column(errors: Errors, column: CustomResourceColumnDefinition, path: str) -> None:
    if not column.name:
        errors.append(required(f"{path}.name"))
    if column.type not in _COLUMN_TYPES:
        said = f"must be one of {','.join(sorted(_COLUMN_TYPES))}"
        bad = invalid(f"{path}.type", column.type, said) if column.type else required(f"{path}.type", said)
        errors.append(bad)
    if column.format and column.format not in _COLUMN_FORMATS:
        errors.append(invalid(f"{path}.format", column.format, f"must be one of {','.join(sorted(_COLUMN_FORMATS))}"))
    _check_path(errors, column.json_path, f"{path}.JSONPath")


def _check_selectable_fields(
    errors: Errors,
    version: CustomResourceDefinitionVersion,
    schema: JSONSchemaProps,
    path: str,
    old: CustomResourceDefinitionVersion | None,
) -> None:
    seen: set[str] = set()
    for index, field in enumerate(version.selectable_fields):
        place = f"{path}[{index}].jsonPath"
        if not field.json_path:
            errors.append(required(place))
            continue
        found = _schema_at(schema, field.json_path)
        if found is None:
            errors.append(invalid(place, field.json_path, "is an invalid path: the schema has no such field"))
            continue
        if steps_of(field.json_path)[0] == "metadata":
            errors.append(invalid(place, field.json_path, "must not point to fields in metadata"))
        if found.type not in _SELECTABLE_TYPES:
            said = "must point to a field of type string, boolean or integer"
            errors.append(invalid(place, field.json_path, said))
        if field.json_path in seen:
            errors.append(duplicate(place, field.json_path))
        seen.add(field.json_path)
    is_old = old is not None and old.selectable_fields == version.selectable_fields
    if len(seen) > MOST_SELECTABLE_FIELDS and not is_old:
        errors.append(too_many(path, len(seen), MOST_SELECTABLE_FIELDS))


def _schema_at(schema: JSONSchemaProps, path: str) -> JSONSchemaProps | None:
    found: JSONSchemaProps | None = schema if path.startswith(".") else None
    for step in steps_of(path):
        found = found.properties.get(step) if found is not None else None
    return found


def _check_conversion(errors: Errors, conversion: CustomResourceConversion) -> None:
    path = "spec.conversion"
    check.required_one_of(errors, f"{path}.strategy", conversion.strategy, ("None", "Webhook"))
    hook = conversion.webhook
    if conversion.strategy != "Webhook":
        said = "should not be set when strategy is not set to Webhook"
        if hook is not None and hook.client_config is not None:
            errors.append(forbidden(f"{path}.webhookClientConfig", said))
        if hook is not None and hook.conversion_review_versions:
            errors.append(forbidden(f"{path}.conversionReviewVersions", said))
        return
    if hook is None or hook.client_config is None:
        said = "required when strategy is set to Webhook"
        errors.append(required(f"{path}.webhookClientConfig", said))
    else:
        config = hook.client_config
        if (config.url is None) == (config.service is None):
            errors.append(required(f"{path}.webhookClientConfig", "exactly one of url or service is required"))
        elif config.url is not None and not config.url.startswith("https://"):
            said = "'https' is the only allowed URL scheme"
            errors.append(invalid(f"{path}.webhookClientConfig.url", config.url, said))
        if config.service is not None:
            for name, value in (("name", config.service.name), ("namespace", config.service.namespace)):
                if not value:
                    errors.append(required(f"{path}.webhookClientConfig.service.{name}"))
    versions = hook.conversion_review_versions if hook is not None else ()
    for index, version in enumerate(versions):
        _check_label(errors, version, f"{path}.conversionReviewVersions[{index}]", may_be_empty=False)
    if not versions:
        errors.append(required(f"{path}.conversionReviewVersions"))
    elif not set(versions) & set(_REVIEW_VERSIONS):
        said = f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"
        errors.append(invalid(f"{path}.conversionReviewVersions", versions, said))


def _check_stored_versions(errors: Errors, definition: CustomResourceDefinition) -> None:
    path = "status.storedVersions"
    stored = definition.status.stored_versions
    if not stored:
        errors.append(invalid(path, stored, "must have at least one stored version"))
    for version in definition.spec.versions:
        if version.storage and version.name not in stored:
            errors.append(invalid(path, version.name, "must have the storage version"))
    there = {version.name for version in definition.spec.versions}
    for index, name in enumerate(stored):
        if name not in there:
            said = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until no object is stored in it and it is removed from status.storedVersions"
            )
            errors.append(invalid(f"{path}[{index}]", name, said))


def _check_approval(errors: Errors, new: CustomResourceDefinition, old: CustomResourceDefinition | None) -> None:
    """Groups of Kubernetes itself are for those who say where they were allowed to use them."""
    group = new.spec.group
    if not any(group == domain or group.endswith(f".{domain}") for domain in _PROTECTED):
        return
    given = new.metadata.annotations.get(APPROVAL, "")
    before = old.metadata.annotations.get(APPROVAL, "") if old is not None else ""
    if old is not None and given == before:
        return
    path = f"metadata.annotations[{APPROVAL}]"
    if not given:
        said = (
            "protected groups must have approval annotation, see https://github.com/kubernetes/enhancements/pull/1111"
        )
        errors.append(required(path, said))
    elif not given.startswith(("https://", "http://", "unapproved")):
        said = "protected groups must have approval annotation with either a URL or a reason starting with 'unapproved'"
        errors.append(invalid(path, given, said))

"""The rules for `metadata`, the same for every kind but for the form of the name."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from dray.api.field import forbidden, invalid, not_supported, required, too_long, too_many
from dray.api.meta import ManagedFieldsEntry, Object, ObjectMeta, OwnerReference
from dray.api.well_known import FOREGROUND_DELETION
from dray.validation import check, names
from dray.validation.context import Errors

ANNOTATIONS_BYTES: Final = 256 * 1024
MOST_LABELS: Final = 1_000
"""Of an object, and in what selects by them: whoever follows objects looks at their labels all the time."""
MOST_LABELS_OF_TEMPLATES: Final = 900
"""What is made of a template gets more, such as the hash of the template."""
ORPHAN: Final = "orphan"
STANDARD_FINALIZERS: Final = frozenset((ORPHAN, FOREGROUND_DELETION, "kubernetes"))
_OPERATIONS: Final = ("Apply", "Update")
_FIELDS_TYPES: Final = ("", "FieldsV1")
_MANAGER_LENGTH: Final = 128
_SUBRESOURCE_LENGTH: Final = 256

T = TypeVar("T", bound=Object)

NOTHING_KNOWN: Final = ObjectMeta()


class NameRule(msgspec.Struct, frozen=True):
    """What the names of a kind look like, and what a generateName must look like (None: it is not checked)."""

    name: names.Rule
    prefix: names.Rule | None


DNS_SUBDOMAIN: Final = NameRule(names.dns_subdomain, names.dns_subdomain_prefix)
DNS_LABEL: Final = NameRule(names.dns_label, names.dns_label_prefix)
DNS_1035_LABEL: Final = NameRule(names.dns_1035_label, names.dns_1035_label_prefix)
PATH_SEGMENT: Final = NameRule(names.path_segment, names.path_segment_prefix)


def validate_metadata(
    errors: Errors,
    meta: ObjectMeta,
    rule: NameRule,
    *,
    namespaced: bool,
    own_finalizers: bool = False,
    path: str = "metadata",
    known: ObjectMeta = NOTHING_KNOWN,
) -> None:
    """The metadata of an object that is created, or that an update leads to.

    Every write comes by here, and most change little: what is the same as in the `known` metadata of what is stored was
    found right when it was stored. `own_finalizers`: whether the names of finalizers need no domain in front, which
    only kinds that Kubernetes itself defines ask for.
    """
    if meta.generate_name != known.generate_name and rule.prefix is not None:
        check.name(errors, f"{path}.generateName", meta.generate_name, rule.prefix)
    if not meta.name:
        errors.append(required(f"{path}.name", "name or generateName is required"))
    elif meta.name != known.name:
        check.name(errors, f"{path}.name", meta.name, rule.name)
    if known is NOTHING_KNOWN or meta.namespace != known.namespace:
        _validate_namespace(errors, meta.namespace, namespaced, path)
    if meta.generation < 0:
        check.not_negative(errors, f"{path}.generation", meta.generation)
    if meta.labels and meta.labels is not known.labels:
        validate_labels(errors, meta.labels, f"{path}.labels")
    if meta.annotations and meta.annotations is not known.annotations:
        validate_annotations(errors, meta.annotations, f"{path}.annotations")
    if meta.owner_references and meta.owner_references is not known.owner_references:
        validate_owner_references(errors, meta.owner_references, f"{path}.ownerReferences")
    if meta.finalizers and meta.finalizers is not known.finalizers:
        _validate_finalizers(errors, meta.finalizers, f"{path}.finalizers", own_names=own_finalizers)
    if meta.managed_fields and meta.managed_fields is not known.managed_fields:
        _validate_managed_fields(errors, meta, f"{path}.managedFields")


def validate_metadata_update(errors: Errors, new: ObjectMeta, old: ObjectMeta) -> None:
    """What an update may not do to metadata."""
    if old.deletion_timestamp is not None and not set(new.finalizers) <= set(old.finalizers):
        errors.append(forbidden("metadata.finalizers", "no finalizers can be added while the object is being deleted"))
    if not new.resource_version:
        errors.append(invalid("metadata.resourceVersion", "", "must be specified for an update"))
    if new.generation < old.generation:
        errors.append(invalid("metadata.generation", new.generation, "must not be decremented"))
    check.immutable(errors, "metadata.name", new.name, old.name)
    check.immutable(errors, "metadata.namespace", new.namespace, old.namespace)
    check.immutable(errors, "metadata.uid", new.uid, old.uid)
    check.immutable(errors, "metadata.creationTimestamp", new.creation_timestamp, old.creation_timestamp)
    check.immutable(errors, "metadata.deletionTimestamp", new.deletion_timestamp, old.deletion_timestamp)
    check.immutable(
        errors,
        "metadata.deletionGracePeriodSeconds",
        new.deletion_grace_period_seconds,
        old.deletion_grace_period_seconds,
    )


def validate_template_metadata(errors: Errors, meta: ObjectMeta) -> None:
    """Metadata inside a template of objects: labels and annotations, nothing else (4381-70)."""
    path = "spec.metadata"
    validate_annotations(errors, meta.annotations, f"{path}.annotations")
    validate_labels(errors, meta.labels, f"{path}.labels")
    given = msgspec.to_builtins(meta, enc_hook=str)
    for field in given:
        if field not in ("labels", "annotations"):
            # Kubernetes spells this one field so.
            errors.append(forbidden(f"{path}.{'uID' if field == 'uid' else field}", "cannot be set"))


def validate_labels(errors: Errors, labels: dict[str, str], path: str, *, most: int = MOST_LABELS) -> None:
    """Labels; errors name the map, not the key."""
    if len(labels) > most:
        errors.append(too_many(path, len(labels), most))
        return
    for key, value in labels.items():
        check.name(errors, path, key, names.label_key)
        check.name(errors, path, value, names.label_value)


def validate_annotations(errors: Errors, annotations: dict[str, str], path: str) -> None:
    """Annotations: keys as for labels in any case, values free, 256 KiB in total."""
    size = 0
    for key, value in annotations.items():
        for problem in names.label_key(key.lower()):
            errors.append(invalid(path, key, problem))
        size += len(key.encode()) + len(value.encode())
    if size > ANNOTATIONS_BYTES:
        errors.append(too_long(path, ANNOTATIONS_BYTES))


def validate_owner_references(errors: Errors, references: tuple[OwnerReference, ...], path: str) -> None:
    """Complete references, at most one of them the controller."""
    controllers = 0
    for index, reference in enumerate(references):
        _validate_owner_reference(errors, reference, f"{path}[{index}]")
        controllers += bool(reference.controller)
        if reference.controller and controllers > 1:
            errors.append(invalid(path, reference.name, "only one owner can be the controller"))


def _validate_owner_reference(errors: Errors, reference: OwnerReference, path: str) -> None:
    if not (reference.api_version and reference.kind and reference.name and reference.uid):
        for field, value in (
            ("apiVersion", reference.api_version),
            ("kind", reference.kind),
            ("name", reference.name),
            ("uid", reference.uid),
        ):
            if not value:
                errors.append(required(f"{path}.{field}", "must not be empty"))
    if reference.api_version and (reference.api_version.count("/") > 1 or reference.api_version.endswith("/")):
        errors.append(invalid(f"{path}.apiVersion", reference.api_version, "must be <group>/<version> or <version>"))
    if reference.api_version == "v1" and reference.kind == "Event":
        errors.append(invalid(path, reference.kind, "an Event cannot be an owner"))


def _validate_namespace(errors: Errors, namespace: str, namespaced: bool, path: str) -> None:
    if not namespaced:
        if namespace:
            errors.append(forbidden(f"{path}.namespace", "not allowed on this type"))
    else:
        check.required_name(errors, f"{path}.namespace", namespace, names.dns_label)


def _validate_finalizers(errors: Errors, finalizers: tuple[str, ...], path: str, *, own_names: bool) -> None:
    for index, finalizer in enumerate(finalizers):
        check.name(errors, path, finalizer, names.label_key)
        if not own_names and "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid(f"{path}[{index}]", finalizer, why))
    if ORPHAN in finalizers and FOREGROUND_DELETION in finalizers:
        errors.append(invalid(path, finalizers, f"{ORPHAN} and {FOREGROUND_DELETION} cannot both be set"))


def _validate_managed_fields(errors: Errors, meta: ObjectMeta, path: str) -> None:
    for index, entry in enumerate(meta.managed_fields):
        if _is_as_recorded(entry):
            continue
        inner = f"{path}[{index}]"
        if not entry.operation:
            errors.append(required(f"{inner}.operation", "must not be empty"))
        elif entry.operation not in _OPERATIONS:
            errors.append(not_supported(f"{inner}.operation", entry.operation, _OPERATIONS))
        if entry.fields_type not in _FIELDS_TYPES:
            errors.append(invalid(f"{inner}.fieldsType", entry.fields_type, "must be `FieldsV1`"))
        check.length(errors, f"{inner}.manager", entry.manager, _MANAGER_LENGTH)
        if not entry.manager.isprintable():
            errors.append(invalid(f"{inner}.manager", entry.manager, "must be printable"))
        check.length(errors, f"{inner}.subresource", entry.subresource, _SUBRESOURCE_LENGTH)


def _is_as_recorded(entry: ManagedFieldsEntry) -> bool:
    """Whether nothing is wrong with an entry, as with nearly all: the server itself makes them."""
    return (
        entry.operation in _OPERATIONS
        and entry.fields_type in _FIELDS_TYPES
        and len(entry.manager) <= _MANAGER_LENGTH
        and entry.manager.isascii()
        and entry.manager.isprintable()
        and not entry.subresource
    )


def with_metadata(obj: T, **changes: Any) -> T:
    """The object with some metadata replaced."""
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, **changes))


def keep_system_metadata(new: T, old: T) -> T:
    """What every update does before validation: the server's own fields survive whatever the client sent."""
    meta, before = new.metadata, old.metadata
    if meta is before:
        return new
    grace = meta.deletion_grace_period_seconds
    return with_metadata(
        new,
        generation=before.generation,
        uid=meta.uid or before.uid,
        creation_timestamp=before.creation_timestamp or meta.creation_timestamp,
        deletion_timestamp=before.deletion_timestamp or meta.deletion_timestamp,
        deletion_grace_period_seconds=before.deletion_grace_period_seconds if grace is None else grace,
    )


def metadata_for_status(new: T, old: T) -> T:
    """An update of the status changes no metadata, except for what the server's bookkeeping needs."""
    before = old.metadata
    if new.metadata is before:
        return new
    return with_metadata(
        new,
        deletion_timestamp=before.deletion_timestamp,
        generation=before.generation,
        self_link=before.self_link,
        labels=before.labels,
        annotations=before.annotations,
        finalizers=before.finalizers,
        owner_references=before.owner_references,
    )

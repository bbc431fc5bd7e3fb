"""PersistentVolumeClaim: what storage is asked for."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from dray.api.field import forbidden, invalid, required
from dray.api.generated.core import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    TypedLocalObjectReference,
    TypedObjectReference,
)
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.label_selectors import validate_label_selector
from dray.validation.rules import Rules

ONE_POD: Final = "ReadWriteOncePod"
ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", ONE_POD)
VOLUME_MODES: Final = ("Block", "Filesystem")
OLD_SOURCES: Final = frozenset((("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")))
RESIZE_STATES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizePending",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
)


def default_claim(obj: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """A claim, or a template of one, with what it did not say."""
    if obj.spec.volume_mode is None:
        obj = replace(obj, spec=replace(obj.spec, volume_mode="Filesystem"))
    return obj if obj.status.phase else replace(obj, status=replace(obj.status, phase="Pending"))


def _default(obj: PersistentVolumeClaim, _now: Time) -> PersistentVolumeClaim:
    return default_claim(obj)


def _change(new: PersistentVolumeClaim, old: PersistentVolumeClaim | None, _ctx: Context) -> PersistentVolumeClaim:
    """What it is filled from has two names, of which people give one."""
    spec, local, ref = new.spec, new.spec.data_source, new.spec.data_source_ref
    if old is None and local is not None and ref is None and (local.api_group or "", local.kind) not in OLD_SOURCES:
        local = None  # from before there was another field for all kinds
        new = replace(new, spec=replace(spec, data_source=None))
    if local is not None and ref is None:
        ref = TypedObjectReference(api_group=local.api_group, kind=local.kind, name=local.name)
        new = replace(new, spec=replace(spec, data_source_ref=ref))
    elif ref is not None and local is None and not ref.namespace:
        local = TypedLocalObjectReference(api_group=ref.api_group, kind=ref.kind, name=ref.name)
        new = replace(new, spec=replace(spec, data_source=local))
    return new if old is not None else replace(new, status=PersistentVolumeClaimStatus(phase="Pending"))


def _check(errors: Errors, new: PersistentVolumeClaim, old: PersistentVolumeClaim | None, _ctx: Context) -> None:
    validate_claim_spec(errors, new.spec, "spec")
    if old is not None:
        _check_update(errors, new, old)


def validate_claim_spec(errors: Errors, spec: PersistentVolumeClaimSpec, path: str) -> None:
    """A claim by itself, also one that will be made from a template."""
    validate_access_modes(errors, spec.access_modes, path)
    validate_label_selector(errors, spec.selector, f"{path}.selector")
    storage, where = spec.resources.requests.get("storage"), f"{path}.resources[storage]"
    if storage is None:
        errors.append(required(where))
    elif storage.nanos <= 0:
        errors.append(invalid(where, str(storage), "must be greater than zero"))
    for field, value in (
        ("storageClassName", spec.storage_class_name),
        ("volumeAttributesClassName", spec.volume_attributes_class_name),
    ):
        if value:
            check.name(errors, f"{path}.{field}", value, names.dns_subdomain)
    if spec.volume_mode is not None:
        check.one_of(errors, f"{path}.volumeMode", spec.volume_mode, VOLUME_MODES)
    _validate_sources(errors, spec, path)


def validate_access_modes(errors: Errors, modes: tuple[str, ...], path: str) -> None:
    """At least one; the one for a single pod goes with no other."""
    if not modes:
        errors.append(required(f"{path}.accessModes"))
    for mode in modes:
        check.one_of(errors, f"{path}.accessModes", mode, ACCESS_MODES)
    known = set(modes) & set(ACCESS_MODES)
    if ONE_POD in known and len(known) > 1:
        errors.append(forbidden(f"{path}.accessModes", f"may not use {ONE_POD} with other access modes"))


def _validate_sources(errors: Errors, spec: PersistentVolumeClaimSpec, path: str) -> None:
    local, ref = spec.data_source, spec.data_source_ref
    for field, source in (("dataSource", local), ("dataSourceRef", ref)):
        if source is None:
            continue
        where = f"{path}.{field}"
        for name, value in (("name", source.name), ("kind", source.kind)):
            if not value:
                errors.append(required(f"{where}.{name}"))
        if source.api_group:
            check.name(errors, f"{where}.apiGroup", source.api_group, names.dns_subdomain)
        elif source.kind != "PersistentVolumeClaim":
            told = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            errors.append(invalid(where, source.kind, told))
    if ref is not None and ref.namespace:
        check.name(errors, f"{path}.dataSourceRef.namespace", ref.namespace, names.dns_label)
        if local is not None:
            errors.append(invalid(path, "dataSource", "may not be specified when dataSourceRef.namespace is specified"))
    elif local is not None and ref is not None and _three(local) != _three(ref):
        errors.append(invalid(path, "dataSource", "must match dataSourceRef"))


def _three(source: TypedLocalObjectReference | TypedObjectReference) -> tuple[str | None, str, str]:
    return source.api_group, source.kind, source.name


def _check_status(errors: Errors, new: PersistentVolumeClaim, _old: PersistentVolumeClaim, _ctx: Context) -> None:
    status = new.status
    for field, amounts in (("capacity", status.capacity), ("allocatedResources", status.allocated_resources)):
        for resource, amount in amounts.items():
            check.not_negative(errors, f"status.{field}[{resource}]", amount.nanos)
    for state in status.allocated_resource_statuses.values():
        check.one_of(errors, "status.allocatedResourceStatuses", state, RESIZE_STATES)


def _check_update(errors: Errors, new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> None:
    """A bound claim may grow; nothing else changes but the volume that it is bound to."""
    allowed: dict[str, Any] = {}
    if not old.spec.volume_name:
        allowed["volume_name"] = old.spec.volume_name
    if old.spec.storage_class_name is None:  # one that had none gets the default class, when there is one
        allowed["storage_class_name"] = None
    before, now = old.spec.resources.requests.get("storage"), new.spec.resources.requests.get("storage")
    if new.status.phase == "Bound":
        allowed["volume_attributes_class_name"] = old.spec.volume_attributes_class_name
        if before is not None and now is not None:
            requests = {**new.spec.resources.requests, "storage": before}
            allowed["resources"] = replace(new.spec.resources, requests=requests)
    if replace(new.spec, **allowed) != old.spec:
        told = "is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        errors.append(forbidden("spec", told))
    has = old.status.capacity.get("storage")
    if before is not None and (now is None or (now < before and (has is None or now <= has))):
        errors.append(forbidden("spec.resources.requests.storage", "can not be less than status.capacity"))
    check.immutable(errors, "volumeMode", new.spec.volume_mode, old.spec.volume_mode)


RULES: Final = {
    "PersistentVolumeClaim": Rules(
        has_status=True,
        status_guards_metadata=False,
        keeps_status_on_create=True,
        default=_default,
        change=_change,
        check=_check,
        check_status=_check_status,
    ),
}

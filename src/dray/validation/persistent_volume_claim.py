"""PersistentVolumeClaim: what storage is asked for."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.field import forbidden, invalid, required
from dray.api.generated.core import PersistentVolumeClaim, PersistentVolumeClaimStatus
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.label_selectors import validate_label_selector
from dray.validation.rules import Rules

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")


def _default(obj: PersistentVolumeClaim, _now: Time) -> PersistentVolumeClaim:
    if obj.spec.volume_mode is None:
        obj = replace(obj, spec=replace(obj.spec, volume_mode="Filesystem"))
    return obj if obj.status.phase else replace(obj, status=replace(obj.status, phase="Pending"))


def _change(new: PersistentVolumeClaim, old: PersistentVolumeClaim | None, _ctx: Context) -> PersistentVolumeClaim:
    return new if old is not None else replace(new, status=PersistentVolumeClaimStatus(phase="Pending"))


def _check(errors: Errors, new: PersistentVolumeClaim, old: PersistentVolumeClaim | None, _ctx: Context) -> None:
    spec = new.spec
    if not spec.access_modes:
        errors.append(required("spec.accessModes"))
    for mode in spec.access_modes:
        check.one_of(errors, "spec.accessModes", mode, ACCESS_MODES)
    validate_label_selector(errors, spec.selector, "spec.selector")
    storage = spec.resources.requests.get("storage")
    if storage is None:
        errors.append(required("spec.resources[storage]"))
    elif storage.nanos <= 0:
        errors.append(invalid("spec.resources[storage]", str(storage), "must be greater than zero"))
    if spec.storage_class_name:
        check.name(errors, "spec.storageClassName", spec.storage_class_name, names.dns_subdomain)
    if spec.volume_mode is not None:
        check.one_of(errors, "spec.volumeMode", spec.volume_mode, VOLUME_MODES)
    if old is not None:
        _check_update(errors, new, old)


def _check_update(errors: Errors, new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> None:
    """A bound claim may grow; nothing else changes but the volume that it is bound to."""
    allowed = {
        "resources": old.spec.resources,
        "volume_attributes_class_name": old.spec.volume_attributes_class_name,
    }
    if not old.spec.volume_name:
        allowed["volume_name"] = old.spec.volume_name
    if old.spec.storage_class_name is None:  # one that had none gets the default class, when there is one
        allowed["storage_class_name"] = None
    if replace(new.spec, **allowed) != old.spec:
        errors.append(forbidden("spec", "is immutable after creation except resources.requests"))
    before, now = old.spec.resources.requests.get("storage"), new.spec.resources.requests.get("storage")
    if before is not None and now is not None and now < before:
        errors.append(forbidden("spec.resources.requests.storage", "can not be less than before"))


RULES: Final = {
    "PersistentVolumeClaim": Rules(
        has_status=True,
        status_guards_metadata=False,
        keeps_status_on_create=True,
        default=_default,
        change=_change,
        check=_check,
    ),
}

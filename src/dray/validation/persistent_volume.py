"""PersistentVolume: a piece of storage, which stays what and where it is."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dray.api import codec, schema
from dray.api.field import forbidden, invalid, not_supported, required
from dray.api.generated.core import (
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    SecretReference,
)
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.node_selectors import validate_node_selector
from dray.validation.persistent_volume_claim import VOLUME_MODES, validate_access_modes
from dray.validation.rules import Rules
from dray.validation.schema_rules import check_object
from dray.validation.volume_files import validate_no_steps_back
from dray.validation.volumes import validate_csi_driver, validate_host_path

PENDING: Final = "Pending"
RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
_NOT_SOURCES: Final = frozenset(
    (
        "access_modes",
        "capacity",
        "claim_ref",
        "mount_options",
        "node_affinity",
        "persistent_volume_reclaim_policy",
        "storage_class_name",
        "volume_attributes_class_name",
        "volume_mode",
    )
)
_SOURCES: Final = {
    field.name: field.encode_name
    for field in msgspec.structs.fields(PersistentVolumeSpec)
    if field.name not in _NOT_SOURCES
}


def _default(obj: PersistentVolume, _now: Time) -> PersistentVolume:
    spec, status = obj.spec, obj.status
    spec = replace(
        spec,
        persistent_volume_reclaim_policy=spec.persistent_volume_reclaim_policy or "Retain",
        volume_mode=spec.volume_mode or "Filesystem",
    )
    if spec.host_path is not None and spec.host_path.type is None:
        spec = replace(spec, host_path=replace(spec.host_path, type=""))
    return replace(obj, spec=spec, status=replace(status, phase=status.phase or PENDING))


def _change(new: PersistentVolume, old: PersistentVolume | None, ctx: Context) -> PersistentVolume:
    if old is not None:
        return new
    return replace(new, status=PersistentVolumeStatus(phase=PENDING, last_phase_transition_time=ctx.now))


def _change_status(new: PersistentVolume, old: PersistentVolume, ctx: Context) -> PersistentVolume:
    """When the phase changed is written by the server, unless the caller says so."""
    now, before = new.status, old.status
    at = now.last_phase_transition_time
    if now.phase == before.phase and at is None:
        at = before.last_phase_transition_time
    elif now.phase != before.phase and at in (None, before.last_phase_transition_time):
        at = ctx.now
    return replace(new, status=replace(now, last_phase_transition_time=at))


def sources(spec: PersistentVolumeSpec) -> Iterator[tuple[str, Any]]:
    """What is behind a volume, by the names of the fields; there should be one."""
    for attribute, name in _SOURCES.items():
        value = getattr(spec, attribute)
        if value is not None:
            yield name, value


def _check(errors: Errors, new: PersistentVolume, old: PersistentVolume | None, _ctx: Context) -> None:
    spec = new.spec
    validate_access_modes(errors, spec.access_modes, "spec")
    _validate_capacity(errors, spec)
    check.one_of(errors, "spec.persistentVolumeReclaimPolicy", spec.persistent_volume_reclaim_policy, RECLAIM_POLICIES)
    if spec.node_affinity is not None:
        if spec.node_affinity.required is None:
            errors.append(required("spec.nodeAffinity.required", "must specify required node constraints"))
        else:
            validate_node_selector(errors, spec.node_affinity.required, "spec.nodeAffinity.required")
    _validate_sources(errors, spec)
    if spec.storage_class_name:
        check.name(errors, "spec.storageClassName", spec.storage_class_name, names.dns_subdomain)
    check.one_of(errors, "spec.volumeMode", spec.volume_mode or "", VOLUME_MODES)
    if spec.volume_attributes_class_name is not None:
        where = "spec.volumeAttributesClassName"
        check.required_name(errors, where, spec.volume_attributes_class_name, names.dns_subdomain)
        if spec.csi is None:
            errors.append(required("spec.csi", "has to be specified when using volumeAttributesClassName"))
    if old is not None:
        _check_update(errors, spec, old.spec)


def _validate_capacity(errors: Errors, spec: PersistentVolumeSpec) -> None:
    if not spec.capacity:
        errors.append(required("spec.capacity"))
    if list(spec.capacity) != ["storage"]:
        errors.append(not_supported("spec.capacity", ", ".join(spec.capacity), ("storage",)))
    for resource, amount in spec.capacity.items():
        if amount.nanos <= 0:
            errors.append(invalid(f"spec.capacity[{resource}]", str(amount), "must be greater than zero"))


def _validate_sources(errors: Errors, spec: PersistentVolumeSpec) -> None:
    found = list(sources(spec))
    if not found:
        errors.append(required("spec", "must specify a volume type"))
    for name, _ in found[1:]:
        errors.append(forbidden(f"spec.{name}", "may not specify more than 1 volume type"))
    for name, source in found[:1]:
        definition = schema.definition(f"{schema.package_of('', 'v1')}.{type(source).__name__}")
        check_object(errors, codec.to_builtins(source), definition, f"spec.{name}")
    if spec.csi is not None:
        _validate_csi(errors, spec.csi)
    if spec.host_path is not None:
        validate_host_path(errors, spec.host_path, "spec.hostPath")
    if spec.local is not None:
        validate_no_steps_back(errors, spec.local.path, "spec.local.path")
    if spec.nfs is not None and not spec.nfs.path.startswith("/"):
        errors.append(invalid("spec.nfs.path", spec.nfs.path, "must be an absolute path"))
    if spec.local is not None and spec.node_affinity is None:
        errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    is_root = spec.host_path is not None and posixpath.normpath(spec.host_path.path or ".") in ("/", "//")
    if is_root and spec.persistent_volume_reclaim_policy == "Recycle":
        told = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden("spec.persistentVolumeReclaimPolicy", told))


def _validate_csi(errors: Errors, csi: CSIPersistentVolumeSource) -> None:
    if csi.driver:
        validate_csi_driver(errors, csi.driver, "spec.csi.driver")
    for name, secret in (
        ("controllerPublishSecretRef", csi.controller_publish_secret_ref),
        ("controllerExpandSecretRef", csi.controller_expand_secret_ref),
        ("nodePublishSecretRef", csi.node_publish_secret_ref),
        ("nodeExpandSecretRef", csi.node_expand_secret_ref),
    ):
        if secret is not None:
            _validate_secret(errors, secret, f"spec.csi.{name}")


def _validate_secret(errors: Errors, secret: SecretReference, path: str) -> None:
    check.required_name(errors, f"{path}.name", secret.name, names.dns_subdomain)
    check.required_name(errors, f"{path}.namespace", secret.namespace, names.dns_label)


def _check_update(errors: Errors, now: PersistentVolumeSpec, before: PersistentVolumeSpec) -> None:
    """What is behind a volume stays, and so do the nodes that reach it, once they are said."""
    new, old = dict(sources(now)), dict(sources(before))
    csi, known = now.csi, before.csi
    if csi is not None and known is not None and known.controller_expand_secret_ref is None:
        new["csi"] = replace(csi, controller_expand_secret_ref=None)
    if new != old:
        errors.append(forbidden("spec.persistentvolumesource", "is immutable after creation"))
    check.immutable(errors, "volumeMode", now.volume_mode, before.volume_mode)
    if before.node_affinity is not None:
        check.immutable(errors, "nodeAffinity", now.node_affinity, before.node_affinity)
    if before.volume_attributes_class_name is not None and now.volume_attributes_class_name is None:
        errors.append(forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden"))


RULES: Final = {
    "PersistentVolume": Rules(
        namespaced=False,
        has_status=True,
        keeps_status_on_create=True,
        status_guards_metadata=False,
        default=_default,
        change=_change,
        change_status=_change_status,
        check=_check,
    ),
}

"""Volumes of pods: their names and that each has one source."""

from __future__ import annotations

from typing import Final

from dray.api.field import duplicate, forbidden, invalid, required
from dray.api.generated.core import Volume
from dray.validation import check, names
from dray.validation.context import Errors

SOURCES: Final = tuple(
    (attribute, encoded)
    for attribute, encoded in zip(Volume.__struct_fields__, Volume.__struct_encode_fields__, strict=True)
    if attribute != "name"
)


def validate_volumes(errors: Errors, volumes: tuple[Volume, ...], path: str) -> None:
    """Unique DNS labels as names, exactly one source each, and what the common sources need."""
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        inner = f"{path}[{index}]"
        if volume.name in seen:
            errors.append(duplicate(f"{inner}.name", volume.name))
        else:
            check.required_name(errors, f"{inner}.name", volume.name, names.dns_label)
        seen.add(volume.name)
        given = [encoded for attribute, encoded in SOURCES if getattr(volume, attribute) is not None]
        if not given:
            errors.append(required(inner, "must specify a volume type"))
        for extra in given[1:]:
            errors.append(forbidden(f"{inner}.{extra}", "may not specify more than 1 volume type"))
        _validate_source(errors, volume, inner)


def _validate_source(errors: Errors, volume: Volume, path: str) -> None:
    """The one field that each of the common sources cannot do without."""
    needed: list[tuple[str, str]] = []
    if volume.host_path is not None:
        needed.append(("hostPath.path", volume.host_path.path))
    if volume.secret is not None:
        needed.append(("secret.secretName", volume.secret.secret_name))
    if volume.config_map is not None:
        needed.append(("configMap.name", volume.config_map.name))
    if volume.persistent_volume_claim is not None:
        needed.append(("persistentVolumeClaim.claimName", volume.persistent_volume_claim.claim_name))
    if volume.nfs is not None:
        needed.extend((("nfs.server", volume.nfs.server), ("nfs.path", volume.nfs.path)))
    if volume.csi is not None:
        needed.append(("csi.driver", volume.csi.driver))
    if volume.image is not None:
        needed.append(("image.reference", volume.image.reference))
    for field, value in needed:
        if not value:
            errors.append(required(f"{path}.{field}"))
    if volume.empty_dir is not None and volume.empty_dir.size_limit is not None:
        check.not_negative(errors, f"{path}.emptyDir.sizeLimit", volume.empty_dir.size_limit.nanos)


def validate_no_steps_back(errors: Errors, path: str, where: str) -> None:
    """A path that leads where it seems to lead."""
    if ".." in path.split("/"):
        errors.append(invalid(where, path, "must not contain '..'"))

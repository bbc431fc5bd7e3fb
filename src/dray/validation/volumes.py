"""Volumes of pods: their names and that each has one source."""

from __future__ import annotations

from typing import Final

from dray.api.field import duplicate, forbidden, invalid, required
from dray.api.generated.core import EmptyDirVolumeSource, HostPathVolumeSource, Volume
from dray.validation import check, names
from dray.validation.context import Errors
from dray.validation.persistent_volume_claim import validate_claim_spec
from dray.validation.storage_sources import validate_storage
from dray.validation.volume_files import validate_files, validate_no_steps_back, validate_own_facts, validate_projected

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
LONGEST_DRIVER: Final = 63
_MOST_RIGHTS: Final = 0o1777
_IN_ORDER: Final = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
]
_ATTRIBUTES: Final = dict(zip(Volume.__struct_encode_fields__, Volume.__struct_fields__, strict=True))
SOURCES: Final = tuple([(_ATTRIBUTES[encoded], encoded) for encoded in _IN_ORDER])
"""What a volume can be, in the order in which Kubernetes looks: the first counts."""


def validate_volumes(errors: Errors, volumes: tuple[Volume, ...], path: str) -> frozenset[str]:
    """Unique DNS labels as names, exactly one source each, and what the common sources need.

    Returns the names of those with nothing wrong: others cannot be mounted.
    """
    seen: set[str] = set()
    good: set[str] = set()
    for index, volume in enumerate(volumes):
        inner, before = f"{path}[{index}]", len(errors)
        if volume.name in seen:
            errors.append(duplicate(f"{inner}.name", volume.name))
        else:
            check.required_name(errors, f"{inner}.name", volume.name, names.dns_label)
        seen.add(volume.name)
        given = [source for source in SOURCES if getattr(volume, source[0]) is not None]
        if not given:
            errors.append(required(inner, "must specify a volume type"))
        for _, extra in given[1:]:
            errors.append(forbidden(f"{inner}.{extra}", "may not specify more than 1 volume type"))
        if len(given) > 1:  # of the others nothing is said
            volume = Volume(**{"name": volume.name, given[0][0]: getattr(volume, given[0][0])})
        _validate_source(errors, volume, inner)
        if len(errors) == before:
            good.add(volume.name)
    return frozenset(good)


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
    if volume.image is not None:
        needed.append(("image.reference", volume.image.reference))
    for field, value in needed:
        if not value:
            errors.append(required(f"{path}.{field}"))
    _validate_files(errors, volume, path)
    validate_storage(errors, volume, path)
    if volume.csi is not None:
        validate_csi_driver(errors, volume.csi.driver, f"{path}.csi.driver")
        secret = volume.csi.node_publish_secret_ref
        if secret is not None and not secret.name:
            errors.append(required(f"{path}.csi.nodePublishSecretRef.name"))
        elif secret is not None:
            check.name(errors, f"{path}.csi.name", secret.name, names.dns_subdomain)
    if volume.nfs is not None and not volume.nfs.path.startswith("/"):
        errors.append(invalid(f"{path}.nfs.path", volume.nfs.path, "must be an absolute path"))
    if volume.image is not None:
        check.required_one_of(errors, f"{path}.image.pullPolicy", volume.image.pull_policy, PULL_POLICIES)
    if volume.host_path is not None:
        validate_host_path(errors, volume.host_path, f"{path}.hostPath")
    if volume.ephemeral is not None:
        where, template = f"{path}.ephemeral.volumeClaimTemplate", volume.ephemeral.volume_claim_template
        if template is None:
            errors.append(required(where))
        else:
            validate_claim_spec(errors, template.spec, f"{where}.spec")
    if volume.empty_dir is not None:
        _validate_empty_dir(errors, volume.empty_dir, f"{path}.emptyDir")


def _validate_empty_dir(errors: Errors, source: EmptyDirVolumeSource, path: str) -> None:
    if source.size_limit is not None and source.size_limit.nanos < 0:
        errors.append(forbidden(f"{path}.sizeLimit", "must not be negative"))
    if source.mode is not None and not 0 <= source.mode <= _MOST_RIGHTS:
        told = "must be a number between 0 and 01777 (octal), both inclusive"
        errors.append(invalid(f"{path}.mode", source.mode, told))


def _validate_files(errors: Errors, volume: Volume, path: str) -> None:
    if volume.config_map is not None:
        validate_files(errors, volume.config_map, f"{path}.configMap")
    if volume.secret is not None:
        validate_files(errors, volume.secret, f"{path}.secret")
    if volume.downward_api is not None:
        validate_own_facts(errors, volume.downward_api.items, f"{path}.downwardAPI")
    if volume.projected is not None:
        validate_projected(errors, volume.projected, f"{path}.projected")


def validate_host_path(errors: Errors, source: HostPathVolumeSource, path: str) -> None:
    """A path of the node, and what is there."""
    validate_no_steps_back(errors, source.path, f"{path}.path")
    if source.path and source.type is not None:
        check.one_of(errors, f"{path}.type", source.type, HOST_PATH_TYPES)


def validate_csi_driver(errors: Errors, driver: str, path: str) -> None:
    """The name of a driver for storage."""
    check.length(errors, path, driver, LONGEST_DRIVER)
    if driver:
        check.name(errors, path, driver.lower(), names.dns_subdomain)
    else:
        errors.append(required(path))

"""Volumes of pods on storage that only a node could reach: what each cannot do without. Nothing here mounts them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from dray.api.field import invalid, not_supported, required
from dray.api.generated.core import (
    AzureDiskVolumeSource,
    FCVolumeSource,
    FlexVolumeSource,
    FlockerVolumeSource,
    ISCSIVolumeSource,
    QuobyteVolumeSource,
    StorageOSVolumeSource,
    Volume,
)
from dray.validation import check, names
from dray.validation.context import Errors
from dray.validation.volume_files import validate_descending_path

_UNITS: Final = 255
_LONGEST_TENANT: Final = 64
_CACHING: Final = ("None", "ReadOnly", "ReadWrite")
_DISKS: Final = ("Dedicated", "Managed", "Shared")
_INITIATOR: Final = re.compile(
    r"iqn\.\d{4}-\d{2}\.(?:[A-Za-z0-9-.]+)(?::[^,;*&$|\s]+)$|eui\.[A-Za-z0-9]{16}$|naa\.[A-Za-z0-9]{32}$"
)
_NEEDED: Final = {
    "gce_persistent_disk": ("persistentDisk", {"pd_name": "pdName"}),
    "aws_elastic_block_store": ("awsElasticBlockStore", {"volume_id": "volumeID"}),
    "git_repo": ("gitRepo", {"repository": "repository"}),
    "iscsi": ("iscsi", {"target_portal": "targetPortal", "iqn": "iqn"}),
    "rbd": ("rbd", {"monitors": "monitors", "image": "image"}),
    "cinder": ("cinder", {"volume_id": "volumeID"}),
    "cephfs": ("cephfs", {"monitors": "monitors"}),
    "flex_volume": ("flexVolume", {"driver": "driver"}),
    "azure_file": ("azureFile", {"secret_name": "secretName", "share_name": "shareName"}),
    "vsphere_volume": ("vsphereVolume", {"volume_path": "volumePath"}),
    "photon_persistent_disk": ("photonPersistentDisk", {"pd_id": "pdID"}),
    "portworx_volume": ("portworxVolume", {"volume_id": "volumeID"}),
    "azure_disk": ("azureDisk", {"disk_name": "diskName", "disk_uri": "diskURI"}),
    "scale_io": ("scaleIO", {"gateway": "gateway", "system": "system", "volume_name": "volumeName"}),
    "glusterfs": ("glusterfs", {"endpoints": "endpoints", "path": "path"}),
    "quobyte": ("quobyte", {"registry": "registry", "volume": "volume"}),
    "storageos": ("storageos", {"volume_name": "volumeName"}),
    "flocker": ("flocker", {}),
    "fc": ("fc", {}),
}
"""By attribute of a volume: what Kubernetes calls it in errors, and the fields that must be given."""


def validate_storage(errors: Errors, volume: Volume, path: str) -> None:
    """Whichever of them a volume has."""
    for attribute, (told, needed) in _NEEDED.items():
        source: Any = getattr(volume, attribute)
        if source is None:
            continue
        inner = f"{path}.{told}"
        for name, field in needed.items():
            if not getattr(source, name):
                errors.append(required(f"{inner}.{field}"))
        if attribute in _MORE:
            _MORE[attribute](errors, source, inner)


def _partition(errors: Errors, source: Any, path: str) -> None:
    _in_range(errors, source.partition, f"{path}.partition")


def _in_range(errors: Errors, number: int, path: str) -> None:
    if not 0 <= number <= _UNITS:
        errors.append(invalid(path, number, f"must be between 0 and {_UNITS}, inclusive"))


def _named_secret(errors: Errors, source: Any, path: str) -> None:
    if source.secret_ref is not None and not source.secret_ref.name:
        errors.append(required(f"{path}.secretRef.name"))


def _directory(errors: Errors, source: Any, path: str) -> None:
    validate_descending_path(errors, source.directory, f"{path}.directory")


def _iscsi(errors: Errors, source: ISCSIVolumeSource, path: str) -> None:
    for field, name in (("iqn", source.iqn), ("initiatorname", source.initiator_name)):
        if name and _INITIATOR.match(name) is None:
            errors.append(invalid(f"{path}.{field}", name, "must be valid format starting with iqn, eui, or naa"))
    _in_range(errors, source.lun, f"{path}.lun")
    if (source.chap_auth_discovery or source.chap_auth_session) and source.secret_ref is None:
        errors.append(required(f"{path}.secretRef"))


def _fibre_channel(errors: Errors, source: FCVolumeSource, path: str) -> None:
    where = f"{path}.targetWWNs"
    if not source.target_wwns and not source.wwids:
        errors.append(required(where, "must specify either targetWWNs or wwids, but not both"))
    if source.target_wwns and source.wwids:
        told = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(where, source.target_wwns, told))
    if source.target_wwns and source.lun is None:
        errors.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif source.target_wwns and source.lun is not None:
        _in_range(errors, source.lun, f"{path}.lun")


def _flocker(errors: Errors, source: FlockerVolumeSource, path: str) -> None:
    if not source.dataset_name and not source.dataset_uuid:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if source.dataset_name and source.dataset_uuid:
        errors.append(invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
    if "/" in source.dataset_name:
        errors.append(invalid(f"{path}.datasetName", source.dataset_name, "must not contain '/'"))


def _flex(errors: Errors, source: FlexVolumeSource, path: str) -> None:
    for key in source.options:
        domain = "." + (key.partition("/")[0] if "/" in key else key).lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            errors.append(invalid(f"{path}.options[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved"))


def _azure_disk(errors: Errors, source: AzureDiskVolumeSource, path: str) -> None:
    if source.caching_mode is not None:
        check.one_of(errors, f"{path}.cachingMode", source.caching_mode, _CACHING)
    if source.kind is None:
        return
    check.one_of(errors, f"{path}.kind", source.kind, _DISKS)
    start = "/subscriptions/" if source.kind == "Managed" else "https://"
    if not source.disk_uri.startswith(start):
        errors.append(not_supported(f"{path}.diskURI", source.disk_uri, (f"{start}...",)))


def _quobyte(errors: Errors, source: QuobyteVolumeSource, path: str) -> None:
    if not source.registry:
        return
    if len(source.tenant) > _LONGEST_TENANT:
        errors.append(required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters"))
    elif any(pair.count(":") != 1 for pair in source.registry.split(",")):
        told = "must be a host:port pair or multiple pairs separated by commas"
        errors.append(invalid(f"{path}.registry", source.registry, told))


def _storageos(errors: Errors, source: StorageOSVolumeSource, path: str) -> None:
    for field, name in (("volumeName", source.volume_name), ("volumeNamespace", source.volume_namespace)):
        if name:
            check.name(errors, f"{path}.{field}", name, names.dns_label)
    _named_secret(errors, source, path)


_MORE: Final[dict[str, Callable[[Errors, Any, str], None]]] = {
    "gce_persistent_disk": _partition,
    "aws_elastic_block_store": _partition,
    "git_repo": _directory,
    "iscsi": _iscsi,
    "cinder": _named_secret,
    "fc": _fibre_channel,
    "flocker": _flocker,
    "flex_volume": _flex,
    "azure_disk": _azure_disk,
    "quobyte": _quobyte,
    "storageos": _storageos,
}
"""What else is wrong with some of them."""

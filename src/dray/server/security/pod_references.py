"""Which other objects of its namespace a pod needs: what its node may read, and what a node may not make pods for."""

from __future__ import annotations

from collections.abc import Iterator

from dray.api.generated.core import Container, EphemeralContainer, Pod, Volume
from dray.api.pods import containers_of

Reference = tuple[str, str]
"""Resource and name, such as ("secrets", "token")."""

_VOLUMES_WITH_SECRET = ("cephfs", "cinder", "flex_volume", "iscsi", "rbd", "scale_io", "storageos")


def references(pod: Pod) -> Iterator[Reference]:
    """Every Secret, ConfigMap, PersistentVolumeClaim, ResourceClaim and ServiceAccount that a pod names."""
    if pod.spec.service_account_name:
        yield "serviceaccounts", pod.spec.service_account_name
    for secret in pod.spec.image_pull_secrets:
        yield "secrets", secret.name
    for container in containers_of(pod.spec):
        yield from _of_container(container)
    for ephemeral in pod.spec.ephemeral_containers:
        yield from _of_container(ephemeral)
    for volume in pod.spec.volumes:
        yield from _of_volume(volume, pod.metadata.name)
    yield from _of_claims(pod)


def _of_container(container: Container | EphemeralContainer) -> Iterator[Reference]:
    for source in container.env_from:
        if source.secret_ref is not None:
            yield "secrets", source.secret_ref.name
        if source.config_map_ref is not None:
            yield "configmaps", source.config_map_ref.name
    for variable in container.env:
        value = variable.value_from
        if value is not None and value.secret_key_ref is not None:
            yield "secrets", value.secret_key_ref.name
        if value is not None and value.config_map_key_ref is not None:
            yield "configmaps", value.config_map_key_ref.name


def _of_volume(volume: Volume, pod_name: str) -> Iterator[Reference]:
    if volume.secret is not None:
        yield "secrets", volume.secret.secret_name
    if volume.config_map is not None:
        yield "configmaps", volume.config_map.name
    if volume.persistent_volume_claim is not None:
        yield "persistentvolumeclaims", volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        yield "persistentvolumeclaims", f"{pod_name}-{volume.name}"
    for projection in volume.projected.sources if volume.projected is not None else ():
        if projection.secret is not None:
            yield "secrets", projection.secret.name
        if projection.config_map is not None:
            yield "configmaps", projection.config_map.name
    yield from (("secrets", name) for name in _storage_secrets(volume))


def _storage_secrets(volume: Volume) -> Iterator[str]:
    if volume.csi is not None and volume.csi.node_publish_secret_ref is not None:
        yield volume.csi.node_publish_secret_ref.name
    if volume.azure_file is not None:
        yield volume.azure_file.secret_name
    for attribute in _VOLUMES_WITH_SECRET:
        source = getattr(volume, attribute)
        if source is not None and source.secret_ref is not None:
            yield source.secret_ref.name


def _of_claims(pod: Pod) -> Iterator[Reference]:
    """Claims by name in the spec, and those made from templates, whose names are in the status."""
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_name:
            yield "resourceclaims", claim.resource_claim_name
        if claim.resource_claim_template_name:
            yield "resourceclaimtemplates", claim.resource_claim_template_name
    for status in pod.status.resource_claim_statuses:
        if status.resource_claim_name:
            yield "resourceclaims", status.resource_claim_name
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        yield "resourceclaims", extended.resource_claim_name

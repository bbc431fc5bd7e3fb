"""What is accepted in the volumes of a pod although it does nothing any more, or can hardly be meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dray.api.generated.core import PersistentVolumeClaimSpec, Volume, VolumeProjection
from dray.api.quantity import Quantity

_NANOS: Final = 10**9
_OLD_SOURCES: Final = {
    "photon_persistent_disk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "git_repo": ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    "scale_io": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}
"""By attribute: the field as Kubernetes calls it, and since when nobody mounts it."""

_Told = tuple[str, str]
"""A path, and whose it is."""


def volume_warnings(volumes: tuple[Volume, ...], path: str) -> Iterator[str]:
    """The texts for `Warning` headers."""
    for index, volume in enumerate(volumes):
        where = f"{path}[{index}]"
        for attribute, (field, since) in _OLD_SOURCES.items():
            if getattr(volume, attribute) is not None:
                yield f"{where}.{field}: {since}"
        if volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
            spec = volume.ephemeral.volume_claim_template.spec
            yield from claim_warnings(spec, f"{where}.ephemeral.volumeClaimTemplate.spec")
    for volume in volumes:
        yield from _overlaps_in(volume)


def claim_warnings(spec: PersistentVolumeClaimSpec, path: str) -> Iterator[str]:
    """What can hardly be meant in the claim for a volume."""
    for field, amounts in (("requests", spec.resources.requests), ("limits", spec.resources.limits)):
        yield from fractions(amounts, f"{path}.resources.{field}", ("storage",))


def fractions(amounts: Mapping[str, Quantity], path: str, names: tuple[str, ...]) -> Iterator[str]:
    """Bytes that are not whole, of what is counted in bytes."""
    for name in names:
        amount = amounts.get(name)
        if amount is not None and amount.nanos % _NANOS:
            yield f'{path}[{name}]: fractional byte value "{amount}" is invalid, must be an integer'


def _overlaps_in(volume: Volume) -> Iterator[str]:
    """Files of one volume that would hide each other."""
    described: list[tuple[str, Iterable[_Told]]] = []
    if volume.config_map is not None:
        files = [(item.path, "") for item in volume.config_map.items]
        described.append((f'ConfigMap "{volume.config_map.name}"', files))
    if volume.secret is not None:
        files = [(item.path, "") for item in volume.secret.items]
        described.append((f'Secret "{volume.secret.secret_name}"', files))
    if volume.downward_api is not None:
        described.append(("DownwardAPI", [(item.path, "") for item in volume.downward_api.items]))
    if volume.projected is not None:
        sources = volume.projected.sources
        for source in sources:
            if source == VolumeProjection():
                yield f'volume "{volume.name}" (Projected) has no sources provided'
        described.append(("Projected", [told for source in sources for told in _projected(source)]))
    for what, paths in described:
        for overlap in _overlaps(paths):
            yield f'volume "{volume.name}" ({what}): overlapping paths: {overlap}'


def _projected(source: VolumeProjection) -> Iterator[_Told]:
    if source.config_map is not None:
        yield from ((item.path, f'ConfigMap "{source.config_map.name}"') for item in source.config_map.items)
    if source.secret is not None:
        yield from ((item.path, f'Secret "{source.secret.name}"') for item in source.secret.items)
    if source.downward_api is not None:
        yield from ((item.path, "DownwardAPI") for item in source.downward_api.items)
    if source.service_account_token is not None:
        yield source.service_account_token.path, "ServiceAccountToken"
    if source.cluster_trust_bundle is not None:
        name = source.cluster_trust_bundle.name or source.cluster_trust_bundle.signer_name or ""
        yield source.cluster_trust_bundle.path, f'ClusterTrustBundle "{name}"'
    if source.pod_certificate is not None:
        certificate = source.pod_certificate
        yield certificate.certificate_chain_path, "PodCertificate chain"
        yield certificate.key_path, "PodCertificate key"
        yield certificate.credential_bundle_path, "PodCertificate credential bundle"


class _Place:
    """A file or a folder: the file that is here, the first file that is here or below, and what is inside."""

    __slots__ = ("below", "file", "inside")

    def __init__(self) -> None:
        self.file: _Told | None = None
        self.below: _Told | None = None
        self.inside: dict[str, _Place] = {}


def _overlaps(paths: Iterable[_Told]) -> Iterator[str]:
    """Each path that is above, below or at an earlier one, with one such; in time that is linear in their length."""
    root = _Place()
    for path, source in paths:
        told, place, earlier = (path.rstrip("/"), source), root, None
        if not told[0]:
            continue
        for part in told[0].split("/"):
            place = place.inside.setdefault(part, _Place())
            earlier = earlier or place.file
            place.below, before = place.below or told, place.below
        earlier = earlier or before
        place.file = place.file or told
        if earlier is not None:
            yield f"{_text(told)} with {_text(earlier)}"


def _text(told: _Told) -> str:
    path, source = told
    return f'"{path}" ({source})' if source else f'"{path}"'

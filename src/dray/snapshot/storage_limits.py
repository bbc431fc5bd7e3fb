"""Limits of storage drivers, which nobody here judges: whoever says that a pod fits says for which it was not asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dray.api.generated.core import Pod
from dray.api.generated.storage import CSIDriver, CSINode, CSIStorageCapacity
from dray.api.kinds import PODS
from dray.prose.wording import names
from dray.scheduling.pod_info import identified, read_pod
from dray.scheduling.volumes import PodVolumes, Volumes
from dray.snapshot.snapshot import Snapshot

_MAX_NAMES = 3


def tell_storage_limits(snapshot: Snapshot, pods: Iterable[str]) -> Iterator[str]:
    """A clause for each limit that pods (`namespace/name`) may meet: volumes of a driver per node, room of a class."""
    limited = {
        driver.name
        for node in snapshot.objects(CSINode)
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    counting = {one.metadata.name for one in snapshot.objects(CSIDriver) if one.spec.storage_capacity}
    measured = {one.storage_class_name for one in snapshot.objects(CSIStorageCapacity)}
    if not (limited or counting or measured):
        return
    full: dict[str, dict[str, None]] = {}
    short: dict[str, dict[str, None]] = {}
    for name, volumes in _volumes_of(snapshot, pods):
        for driver in limited.intersection(_drivers(volumes)):
            full.setdefault(driver, {})[name] = None
        for _, kind in volumes.waiting:
            if kind.provisioner in counting or kind.metadata.name in measured:
                short.setdefault(kind.metadata.name, {})[name] = None
    for driver, concerned in sorted(full.items()):
        yield f"how many volumes of driver {driver} a node takes {_unknown(concerned)}"
    for class_name, concerned in sorted(short.items()):
        yield f"how much room StorageClass {class_name} has where {_unknown(concerned)}"


def _unknown(pods: Iterable[str]) -> str:
    return f"was not looked at, and may keep {names(list(pods), _MAX_NAMES)} away"


def _volumes_of(snapshot: Snapshot, pods: Iterable[str]) -> Iterator[tuple[str, PodVolumes]]:
    with snapshot.rehearsal() as rehearsal:
        volumes: Volumes = rehearsal.cluster.volumes
        for name in dict.fromkeys(pods):
            pod = snapshot.get(PODS.resource, *name.split("/", 1))
            info = read_pod(identified(pod)) if isinstance(pod, Pod) else None
            found = volumes.of(info) if info is not None and info.volume_claims else None
            if isinstance(found, PodVolumes):
                yield name, found


def _drivers(volumes: PodVolumes) -> Iterator[str]:
    """Who has the volumes, or makes them."""
    for volume in volumes.bound:
        if volume.spec.csi is not None:
            yield volume.spec.csi.driver
    yield from (kind.provisioner for _, kind in volumes.waiting)

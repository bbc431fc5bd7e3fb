"""The devices of a pod's containers and their health, as pod status shows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dray.api.generated.core import Container, Pod, ResourceHealth, ResourceStatus
from dray.api.pods import containers_of
from dray.node.claim_record import ClaimBook, ClaimRecord, PreparedDevice
from dray.node.health import DeviceKey, HealthTable
from dray.node.pod_claims import Refused, container_claims


def resource_statuses(pod: Pod, book: ClaimBook, health: HealthTable) -> dict[str, tuple[ResourceStatus, ...]]:
    """By container: one entry per claim and request that it names, with the health of each device behind it."""
    if not pod.spec.resource_claims and pod.status.extended_resource_claim_status is None:
        return {}
    try:
        every = containers_of(pod.spec)
        return {container.name: tuple(_of_container(pod, container, book, health)) for container in every}
    except Refused:
        return {}


def pods_with(book: ClaimBook, devices: Iterable[DeviceKey]) -> set[str]:
    """The uids of the pods that use one of these devices."""
    wanted = set(devices)
    return {
        uid
        for record in book
        if any(DeviceKey(driver, one.pool, one.device) in wanted for driver, one in _devices(record))
        for uid in record.pods
    }


def _of_container(pod: Pod, container: Container, book: ClaimBook, health: HealthTable) -> Iterator[ResourceStatus]:
    for name, claim, request in container_claims(pod, container):
        record = book.named(pod.metadata.namespace, claim)
        if record is None:
            continue
        found: dict[str, ResourceHealth] = {}
        for driver, device in _devices(record):
            if device.serves(request):
                identity = device.cdi_ids[0] if device.cdi_ids else f"{driver}/{device.pool}/{device.device}"
                known = health.get(DeviceKey(driver, device.pool, device.device))
                found.setdefault(
                    identity, ResourceHealth(health=known.health, message=known.message or None, resource_id=identity)
                )
        shown = name or claim  # that for extended resources has no name in the pod
        yield ResourceStatus(
            name=f"claim:{shown}/{request}" if request else f"claim:{shown}", resources=(*found.values(),)
        )


def _devices(record: ClaimRecord) -> Iterator[tuple[str, PreparedDevice]]:
    for driver, part in record.drivers.items():
        for device in part.devices:
            yield driver, device

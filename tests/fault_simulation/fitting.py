"""Whether a pod that waits could run somewhere: by brute force over nodes and devices, for the wishes of `objects`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from dray.api.generated.core import Node, Pod, Taint
from dray.api.node_match import matches
from dray.api.resource import Device, DeviceTaint, DeviceToleration, ExactDeviceRequest, ResourceClaim
from fault_simulation import objects
from fault_simulation.company import agrees
from fault_simulation.ledger import CLAIMS, Ledger, claim_names, is_owned

DeviceKey = tuple[str, str, str]
BLOCKING = ("NoSchedule", "NoExecute")


class Fitting:
    """The cluster as it is now, but for pods that are `gone` (uids) and what only they use."""

    def __init__(self, ledger: Ledger, gone: Collection[str] = ()) -> None:
        self._ledger = ledger
        self._gone = gone
        self._held: set[DeviceKey] = set()
        self._consumed: Counter[DeviceKey] = Counter()
        for claim in ledger.claims:
            users = claim.status.reserved_for
            if users and all(user.uid in gone for user in users):
                continue
            for result in claim.status.allocation.devices.results if claim.status.allocation is not None else ():
                key = (result.driver, result.pool, result.device)
                self._held.add(key)
                self._consumed[key] += sum(int(str(amount)) for amount in result.consumed_capacity.values())

    def find_node(self, pod: Pod) -> str:
        """A node where the pod could run now; empty if there is none."""
        return next((node.metadata.name for node in self._ledger.nodes if self.fits(node, pod)), "")

    def fits(self, node: Node, pod: Pod) -> bool:
        """Whether the pod could run on a node now."""
        if not self._takes(node, pod) or not agrees(self._ledger, pod, node.metadata.name, self._gone):
            return False
        if extended_amount(pod):
            return self._fits_extended(node, pod)
        claims = [self._ledger.find(CLAIMS, pod.metadata.namespace, name) for name in claim_names(pod)]
        if len(claims) < len(pod.spec.resource_claims):
            return False
        if any(claim is None or claim.metadata.deletion_timestamp is not None for claim in claims):
            return False
        return all(self._satisfies(node, claim, pod) for claim in claims)

    def _fits_extended(self, node: Node, pod: Pod) -> bool:
        """What an attempt before left behind can be given up; only a claim that is going has to go first."""
        left = [claim for claim in self._ledger.claims if is_owned(claim, pod.metadata.uid)]
        if any(claim.metadata.deletion_timestamp is not None for claim in left):
            return False
        wanted = ExactDeviceRequest(device_class_name="gpu", count=extended_amount(pod))
        return sum(1 for _ in self._free(node, wanted)) >= wanted.count

    def take_one(self, pod: Pod) -> None:
        """Lets a pod that wishes for one device have it, so that the next one cannot."""
        for name in claim_names(pod):
            claim = self._ledger.find(CLAIMS, pod.metadata.namespace, name)
            if claim is None or claim.status.allocation is not None:
                continue
            request = claim.spec.devices.requests[0].exactly
            free = (key for node in self._ledger.nodes if self._takes(node, pod) for key in self._free(node, request))
            self._held.update(list(free)[:1])

    def _takes(self, node: Node, pod: Pod) -> bool:
        return not any(taint.effect in BLOCKING and not _is_tolerated(pod, taint) for taint in node.spec.taints)

    def _satisfies(self, node: Node, claim: ResourceClaim, pod: Pod) -> bool:
        request = claim.spec.devices.requests[0].exactly
        assert request is not None
        allocation = claim.status.allocation
        if allocation is not None:
            selector = allocation.node_selector
            keys = [(result.driver, result.pool, result.device) for result in allocation.devices.results]
            reaches = selector is None or matches(selector, node.metadata.name, node.metadata.labels)
            if reaches and not any(self._is_blocked(key, request) for key in keys):
                return True
            if any(user.uid not in (pod.metadata.uid, *self._gone) for user in claim.status.reserved_for):
                return False  # others use what it has; else it can be allocated anew
        return sum(1 for _ in self._free(node, request)) >= max(request.count, 1)

    def _free(self, node: Node, request: ExactDeviceRequest) -> Iterator[DeviceKey]:
        driver = objects.DRIVERS[request.device_class_name]
        for device in self._published(driver, node.metadata.name):
            key = (driver, node.metadata.name, device.name)
            if not self._is_blocked(key, request) and self._has_room(key, device, request):
                yield key

    def _has_room(self, key: DeviceKey, device: Device, request: ExactDeviceRequest) -> bool:
        if request.device_class_name == "link":
            return self._consumed[key] + 4 <= 10
        if request.device_class_name == "parts":
            units = objects.PART_SIZES[device.name]
            used = sum(objects.PART_SIZES[name] for driver, pool, name in self._held if (driver, pool) == key[:2])
            return key not in self._held and used + units <= 4 and (not request.selectors or units == 2)
        return key not in self._held

    def _published(self, driver: str, pool: str) -> list[Device]:
        """The devices of a pool, if all of its slices are there."""
        specs = [one.spec for one in self._ledger.slices if (one.spec.driver, one.spec.pool.name) == (driver, pool)]
        newest = max((spec.pool.generation for spec in specs), default=0)
        current = [spec for spec in specs if spec.pool.generation == newest]
        if not current or len(current) != current[0].pool.resource_slice_count:
            return []
        return [device for spec in current for device in spec.devices]

    def _is_blocked(self, key: DeviceKey, request: ExactDeviceRequest) -> bool:
        return any(
            taint.effect in BLOCKING and not _is_device_taint_tolerated(request.tolerations, taint)
            for taint in self._taints(key)
        )

    def _taints(self, key: DeviceKey) -> Iterator[DeviceTaint]:
        for device in self._published(*key[:2]):
            if device.name == key[2]:
                yield from device.taints
        for rule in self._ledger.rules:
            selector = rule.spec.device_selector
            wanted = (selector.driver, selector.pool, selector.device) if selector is not None else ("", "", "")
            if all(one in (None, other) for one, other in zip(wanted, key, strict=True)):
                yield rule.spec.taint


def extended_amount(pod: Pod) -> int:
    """How many GPUs a pod asks for as an extended resource."""
    amounts = [one.resources.requests.get(objects.resource("gpu")) for one in pod.spec.containers]
    return sum(int(str(amount)) for amount in amounts if amount is not None)


def _is_tolerated(pod: Pod, taint: Taint) -> bool:
    return any(one.effect in ("", taint.effect) and one.key in ("", taint.key) for one in pod.spec.tolerations)


def _is_device_taint_tolerated(tolerations: Iterable[DeviceToleration], taint: DeviceTaint) -> bool:
    return any(one.effect == taint.effect and one.key == taint.key for one in tolerations)

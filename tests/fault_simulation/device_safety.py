"""What must hold after every single write, judged from the stored claims and pods alone, by brute force.

No device is given to two claims at once, and no more of its capacity or of its pool's counters than there is. Who uses
a claim has it allocated; what is allocated is protected from deletion; a pod that gets a node has all it asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dray.api.generated.core import Pod
from dray.api.node_match import matches
from dray.api.resource import Device, ResourceClaim, ResourceSlice
from dray.api.resource.claim import FINALIZER, DeviceRequestAllocationResult
from fault_simulation.ledger import CLAIMS, NODES, PODS, SLICES, Change, Ledger, claim_names, is_finished

DeviceKey = tuple[str, str, str]


class DeviceSafety:
    """Watches the ledger. Devices keep their capacity and counters as long as a simulation lasts."""

    def __init__(self, ledger: Ledger, *, is_single: bool) -> None:
        """`is_single`: there is one scheduler, so that nobody takes back what it reserved while it binds."""
        self._ledger = ledger
        self._is_single = is_single
        self._devices: dict[DeviceKey, Device] = {}
        self._counters: dict[tuple[str, str, str, str], int] = {}
        ledger.on_change.append(self._check)

    def _check(self, change: Change) -> None:
        faults: Iterator[str] = iter(())
        if change.resource == SLICES and change.new is not None:
            self._learn(change.new)
        elif change.resource == CLAIMS:
            faults = self._claim_faults(change.old, change.new)
        elif change.resource == PODS and change.new is not None:
            before = change.old.spec.node_name if change.old is not None else ""
            if change.new.spec.node_name and not before:
                faults = self._binding_faults(change.new)
        for fault in faults:
            self._ledger.blame(fault)

    def _learn(self, found: ResourceSlice) -> None:
        place = (found.spec.driver, found.spec.pool.name)
        for device in found.spec.devices:
            self._devices[(*place, device.name)] = device
        for group in found.spec.shared_counters:
            for name, counter in group.counters.items():
                self._counters[(*place, group.name, name)] = counter.value.nanos

    def _claim_faults(self, old: ResourceClaim | None, new: ResourceClaim | None) -> Iterator[str]:
        if new is None:
            if old is not None:
                yield from self._lost_claim_faults(old)
            return
        name, status = f"claim {new.metadata.name}", new.status
        if status.reserved_for and status.allocation is None:
            yield f"{name} is reserved but not allocated"
        if status.allocation is not None and FINALIZER not in new.metadata.finalizers:
            yield f"{name} is allocated without finalizer"
        had = old.status.allocation if old is not None else None
        if status.allocation is not None and had is None:
            yield from self.sharing_faults()
        if status.allocation is None and had is not None and old is not None:
            yield from self._released_faults(old)

    def _lost_claim_faults(self, claim: ResourceClaim) -> Iterator[str]:
        if claim.status.allocation is not None:
            yield f"claim {claim.metadata.name} went away while it was allocated"

    def _released_faults(self, claim: ResourceClaim) -> Iterator[str]:
        """Whoever runs with a device keeps it."""
        for pod in self._ledger.pods:
            is_user = claim.metadata.name in claim_names(pod) and pod.metadata.namespace == claim.metadata.namespace
            if is_user and pod.spec.node_name and not is_finished(pod):
                yield f"claim {claim.metadata.name} was deallocated under pod {pod.metadata.name}"

    def sharing_faults(self) -> Iterator[str]:
        """Devices, capacities and counters of which more is given away than there is."""
        owners: Counter[DeviceKey] = Counter()
        sharers: set[DeviceKey] = set()
        consumed: Counter[tuple[DeviceKey, str]] = Counter()
        for result in self._held():
            key = (result.driver, result.pool, result.device)
            if result.share_id is None:
                owners[key] += 1
                continue
            sharers.add(key)
            for name, amount in result.consumed_capacity.items():
                consumed[key, name] += amount.nanos
        for key, count in owners.items():
            if count > 1 or key in sharers:
                yield f"device {key} is given away more than once"
        for (key, name), total in consumed.items():
            if total > self._devices[key].capacity[name].value.nanos:
                yield f"device {key}: too much {name} is given away"
        yield from self._counter_faults({*owners, *sharers})

    def _counter_faults(self, held: set[DeviceKey]) -> Iterator[str]:
        used: Counter[tuple[str, str, str, str]] = Counter()
        for key in held:
            for consumption in self._devices[key].consumes_counters:
                for name, counter in consumption.counters.items():
                    used[key[0], key[1], consumption.counter_set, name] += counter.value.nanos
        for counter_key, amount in used.items():
            if amount > self._counters[counter_key]:
                yield f"counter {counter_key} is overdrawn"

    def _held(self) -> Iterator[DeviceRequestAllocationResult]:
        for claim in self._ledger.claims:
            if claim.status.allocation is not None:
                yield from (each for each in claim.status.allocation.devices.results if not each.admin_access)

    def _binding_faults(self, pod: Pod) -> Iterator[str]:
        """A pod gets a node only when everything that it asked for is there and reserved for it."""
        names = claim_names(pod)
        if len(names) < len(pod.spec.resource_claims):
            yield f"pod {pod.metadata.name} got a node before its claims were made"
        for name in names:
            claim: ResourceClaim | None = self._ledger.find(CLAIMS, pod.metadata.namespace, name)
            if claim is None or claim.status.allocation is None:
                yield f"pod {pod.metadata.name} got a node without claim {name}"
            elif self._is_single and all(one.uid != pod.metadata.uid for one in claim.status.reserved_for):
                yield f"pod {pod.metadata.name} got a node, but claim {name} is not reserved for it"
            else:
                selector = claim.status.allocation.node_selector
                node = self._ledger.find(NODES, "", pod.spec.node_name)
                labels = node.metadata.labels if node is not None else {}
                if selector is not None and not matches(selector, pod.spec.node_name, labels):
                    yield f"pod {pod.metadata.name} got a node where claim {name} is of no use"

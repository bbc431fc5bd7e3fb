"""A plain twin of the allocator: exhaustive search over objects, without sets, indexes or shortcuts.

It tries what the specification says, in the order that it says, and stops at the first solution or error. Slow and
simple on purpose: the real allocator has to agree with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dray import cel
from dray.api import node_match
from dray.api.resource import DeviceClass, DeviceRequest, DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from dray.tracker.view import EffectiveDevice, PoolView

LIMIT = 32

Asked = ExactDeviceRequest | DeviceSubRequest


class Abort(Exception):
    """The whole allocation ends with an error."""


class TooMany(Exception):
    """More devices than a claim may hold, whichever they are."""


@dataclass
class Picked:
    """A device for a request of a claim."""

    claim: int
    request: str
    device: EffectiveDevice
    asked: Asked
    consumed: dict[str, int] = field(default_factory=dict)


class Twin:
    """One allocation of `claims` on a node."""

    def __init__(
        self,
        pools: Sequence[PoolView],
        classes: Mapping[str, DeviceClass],
        claims: Sequence[ResourceClaim],
        held: Sequence[ResourceClaim],
        node: tuple[str, Mapping[str, str]],
    ) -> None:
        self.classes = classes
        self.claims = claims
        self.node = node
        self.pools = {(pool.driver, pool.name): pool for pool in pools}
        self.held = [
            result
            for claim in held
            if claim.status.allocation is not None
            for result in claim.status.allocation.devices.results
            if not result.admin_access
        ]
        self.picked: list[Picked] = []
        self.steps = 0

    def run(self) -> str:
        """The outcome; devices are in `picked` then."""
        try:
            self.in_sight = self._find_devices()
            self._check_claims()
            return "allocated" if self._go_on(0, 0, None, 0, 0) else "unsatisfiable"
        except Abort:
            return "error"

    # What is there

    def _find_devices(self) -> list[EffectiveDevice]:
        plain: list[EffectiveDevice] = []
        binding: list[EffectiveDevice] = []
        for _, pool in sorted(self.pools.items()):
            if pool.problem is not None:
                continue
            slices = {device.slice_name for device in pool.devices if self._reaches(device)}
            devices = [device for device in pool.devices if device.slice_name in slices]
            has_conditions = any(device.device.binding_conditions for device in devices)
            (binding if has_conditions else plain).extend(devices)
        return plain + binding

    def _reaches(self, device: EffectiveDevice) -> bool:
        access = device.access
        if access.node_name is not None:
            return access.node_name == self.node[0]
        return access.node_selector is None or node_match.matches(access.node_selector, *self.node)

    def _check_claims(self) -> None:
        for claim in self.claims:
            needed = 0
            for request in claim.spec.devices.requests:
                needed += min(self._number(asked) for _, asked in _alternatives(request))
            if needed > LIMIT:
                raise Abort

    def _number(self, asked: Asked) -> int:
        if asked.device_class_name not in self.classes:
            raise Abort
        if asked.allocation_mode == "All":
            if any(pool.problem is not None and self._sees(pool) for pool in self.pools.values()):
                raise Abort
            return len(self._everything(asked))
        return asked.count

    def _sees(self, pool: PoolView) -> bool:
        for access in pool.accesses:
            if access.node_name is not None:
                if access.node_name == self.node[0]:
                    return True
            elif access.node_selector is None or node_match.matches(access.node_selector, *self.node):
                return True
        return False

    def _everything(self, asked: Asked) -> list[EffectiveDevice]:
        return [
            device
            for device in self.in_sight
            if self._is_selected(device, asked) and self._charge(device, asked, fresh=True) is not None
        ]

    def _is_selected(self, device: EffectiveDevice, asked: Asked) -> bool:
        for selector in (*self.classes[asked.device_class_name].spec.selectors, *asked.selectors):
            assert selector.cel is not None
            try:
                if not cel.compile(selector.cel.expression, mode="stored").matches(device.view):
                    return False
            except (cel.CompileError, cel.EvaluationError):
                raise Abort from None
        return self._reaches(device)

    # The search

    def _go_on(self, claim: int, request: int, asked: tuple[str, Asked] | None, slot: int, start: int) -> bool:
        self.steps += 1
        if claim == len(self.claims):
            return True
        requests = self.claims[claim].spec.devices.requests
        if request == len(requests):
            try:
                return self._go_on(claim + 1, 0, None, 0, 0)
            except TooMany:
                return False
        if asked is None:
            if requests[request].first_available:
                return self._try_alternatives(claim, request)
            asked = next(_alternatives(requests[request]))
        return self._fill(claim, request, asked, slot, start)

    def _try_alternatives(self, claim: int, request: int) -> bool:
        only_too_many = True
        for alternative in _alternatives(self.claims[claim].spec.devices.requests[request]):
            try:
                if self._go_on(claim, request, alternative, 0, 0):
                    return True
                only_too_many = False
            except TooMany:
                continue
        if only_too_many:
            raise TooMany
        return False

    def _fill(self, claim: int, request: int, named: tuple[str, Asked], slot: int, start: int) -> bool:
        name, asked = named
        is_all = asked.allocation_mode == "All"
        everything = self._everything(asked) if is_all else []
        if is_all and not everything:
            return False
        number = len(everything) if is_all else asked.count
        if slot == number:
            return self._go_on(claim, request + 1, None, 0, 0)
        if sum(pick.claim == claim for pick in self.picked) + number - slot > LIMIT:
            raise TooMany
        if is_all:
            pick = self._pick(claim, name, asked, everything[slot], must=True)
            return pick is not None and self._with(pick, claim, request, named, slot + 1, 0)
        for position in range(start, len(self.in_sight)):
            device = self.in_sight[position]
            if self._is_taken(claim, asked, device) or not self._is_selected(device, asked):
                continue
            pick = self._pick(claim, name, asked, device, must=False)
            if pick is not None and self._with(pick, claim, request, named, slot + 1, position + 1):
                return True
        return False

    def _with(self, pick: Picked, claim: int, request: int, named: tuple[str, Asked], slot: int, start: int) -> bool:
        self.picked.append(pick)
        is_done = False
        try:
            is_done = self._go_on(claim, request, named, slot, start)
            return is_done
        finally:
            if not is_done:
                self.picked.pop()

    def _pick(self, claim: int, name: str, asked: Asked, device: EffectiveDevice, *, must: bool) -> Picked | None:
        if self._is_taken(claim, asked, device) or not self._counters_allow(device):
            return None
        if any(_is_untolerated(taint.taint, asked) for taint in device.taints):
            return None
        if not self._constraints_allow(claim, name, device):
            if must:
                raise Abort
            return None
        consumed = self._charge(device, asked, fresh=False)
        return None if consumed is None else Picked(claim, name, device, asked, consumed)

    # The single checks

    def _is_taken(self, claim: int, asked: Asked, device: EffectiveDevice) -> bool:
        in_flight = [
            pick.claim
            for pick in self.picked
            if pick.device.id == device.id and not device.device.allow_multiple_allocations
        ]
        if isinstance(asked, ExactDeviceRequest) and asked.admin_access:
            return claim in in_flight
        return bool(in_flight) or any(
            (result.driver, result.pool, result.device) == device.id and result.share_id is None for result in self.held
        )

    def _is_allocated(self, device: EffectiveDevice) -> bool:
        return any((result.driver, result.pool, result.device) == device.id for result in self.held)

    def _counters_allow(self, device: EffectiveDevice) -> bool:
        if not device.device.consumes_counters:
            return True
        shares = [r for r in self.held if (r.driver, r.pool, r.device) == device.id and r.share_id is not None]
        if device.device.allow_multiple_allocations and (
            shares or any(pick.device.id == device.id for pick in self.picked)
        ):
            return True
        pool = self.pools[device.id.driver, device.id.pool]
        drawn = [other for other in pool.devices if self._is_allocated(other)]
        shared: set[str] = {other.id.device for other in drawn if other.device.allow_multiple_allocations}
        for pick in self.picked:
            if pick.device.id[:2] != device.id[:2]:
                continue
            if pick.device.device.allow_multiple_allocations:
                if pick.device.id.device in shared:
                    continue
                shared.add(pick.device.id.device)
            drawn.append(pick.device)
        used: Counter[tuple[str, str]] = Counter()
        for other in (*drawn, device):
            for consumption in other.device.consumes_counters:
                for name, counter in consumption.counters.items():
                    used[consumption.counter_set, name] += counter.value.nanos
        return all(
            used[counter_set.name, name] <= counter.value.nanos
            for counter_set in pool.counter_sets
            for name, counter in counter_set.counters.items()
        )

    def _constraints_allow(self, claim: int, name: str, device: EffectiveDevice) -> bool:
        request = name.split("/")[0]
        for constraint in self.claims[claim].spec.devices.constraints:
            concerned = constraint.requests
            if concerned and request not in concerned and name not in concerned:
                continue
            others = [
                pick.device
                for pick in self.picked
                if pick.claim == claim
                and (not concerned or pick.request in concerned or pick.request.split("/")[0] in concerned)
            ]
            attribute = constraint.match_attribute or constraint.distinct_attribute or ""
            sets = [values(other, attribute) for other in (*others, device)]
            if not sets[-1]:
                return False
            if constraint.match_attribute is not None:
                if not set.intersection(*sets):
                    return False
            elif any(sets[-1] & other for other in sets[:-1]):
                return False
        return True

    def _charge(self, device: EffectiveDevice, asked: Asked, *, fresh: bool) -> dict[str, int] | None:
        """What is consumed of each capacity, whole units only; None if it does not fit."""
        requested = asked.capacity.requests if asked.capacity is not None else {}
        capacity = device.device.capacity
        if not set(requested) <= set(capacity):
            return None
        consumed = {}
        for name, entry in capacity.items():
            amount = _amount(requested[name].nanos if name in requested else None, entry)
            if amount is None:
                return None
            used = 0 if fresh else self._consumed(device, name)
            if used + amount > entry.value.nanos:
                return None
            consumed[name] = amount
        return consumed

    def _consumed(self, device: EffectiveDevice, name: str) -> int:
        used = sum(
            result.consumed_capacity[name].nanos
            for result in self.held
            if (result.driver, result.pool, result.device) == device.id
            and result.share_id is not None
            and name in result.consumed_capacity
        )
        if device.device.allow_multiple_allocations:
            used += sum(pick.consumed.get(name, 0) for pick in self.picked if pick.device.id == device.id)
        return used


def _alternatives(request: DeviceRequest) -> Iterator[tuple[str, Asked]]:
    if request.exactly is not None:
        yield request.name, request.exactly
    for sub in request.first_available:
        yield f"{request.name}/{sub.name}", sub


def _amount(requested: int | None, entry: Any) -> int | None:
    policy = entry.request_policy
    if requested is None:
        default = policy.default if policy is not None else None
        amount = entry.value if default is None else default
        return int(amount.nanos)
    if policy is None or (policy.valid_range is None and not policy.valid_values):
        return requested
    if policy.valid_range is not None:
        least, step, most = policy.valid_range.min, policy.valid_range.step, policy.valid_range.max
        amount = max(requested, least.nanos)
        if step is not None:
            while (amount - least.nanos) % step.nanos:
                amount += 10**9
        return None if most is not None and amount > most.nanos else int(amount)
    return next((int(v.nanos) for v in policy.valid_values if requested <= v.nanos), None)


def _is_untolerated(taint: Any, asked: Asked) -> bool:
    if taint.effect not in ("NoSchedule", "NoExecute"):
        return False
    return not any(
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (toleration.operator == "Exists" or toleration.value == taint.value)
        for toleration in asked.tolerations
    )


def values(device: EffectiveDevice, name: str) -> set[tuple[str, Any]]:
    """The values of an attribute with their type, none if it is missing."""
    domain, _, identifier = name.partition("/")
    attributes = device.device.attributes
    attribute = attributes.get(name) or (attributes.get(identifier) if domain == device.id.driver else None)
    if attribute is None:
        return set()
    kinds = {
        "int": attribute.ints or (() if attribute.int_value is None else (attribute.int_value,)),
        "bool": attribute.bools or (() if attribute.bool_value is None else (attribute.bool_value,)),
        "string": attribute.strings or (() if attribute.string is None else (attribute.string,)),
        "version": attribute.versions or (() if attribute.version is None else (attribute.version,)),
    }
    return {(kind, value) for kind, found in kinds.items() for value in found}

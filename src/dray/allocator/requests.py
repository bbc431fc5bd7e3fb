"""Claims as the search works on them: requests with alternatives, constraints by number, criteria shared.

Whatever is not understood is refused here, by name, before anything is searched (4381-43, 4381-45, SVS-47).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from dray import cel
from dray.allocator.judge import Judge, Memory, judge_of
from dray.allocator.results import Refusal
from dray.allocator.selection import Criteria, Selector
from dray.api.quantity import Quantity
from dray.api.recent import Recent
from dray.api.references import full_name
from dray.api.resource import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from dray.api.resource.claim import MODE_ALL, MODE_EXACT_COUNT

_MOST_CRITERIA: Final = 4096
_MOST_LETTERS: Final = 16 * 1024 * 1024
"""Of all expressions in the table."""


class Constraint(msgspec.Struct, frozen=True):
    """What must hold between devices of a claim: one common value of an attribute, or no value twice."""

    attribute: str
    distinct: bool


class Alternative(msgspec.Struct, frozen=True, eq=False):
    """One way to satisfy a request."""

    name: str
    """As results say it: the request, or `<request>/<subrequest>`."""
    short_name: str
    device_class: DeviceClass
    criteria: Criteria
    count: int | None
    """How many devices; None for all that are selected."""
    admin: bool
    constraints: tuple[int, ...]
    """Numbers of the claim's constraints that hold for these devices."""


class Request(msgspec.Struct, frozen=True, eq=False):
    """A request with its alternatives in the order of preference; `is_list` if it was a firstAvailable."""

    name: str
    alternatives: tuple[Alternative, ...]
    is_list: bool


class Claim(msgspec.Struct, frozen=True, eq=False):
    """What is asked for, without the claim's name: equal claims are one problem."""

    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...]
    classes: tuple[tuple[str, DeviceClass], ...]
    """The classes as they were when the claim was read."""


class CriteriaTable:
    """Makes equal criteria one object, so that answers about devices are found again."""

    def __init__(self, backlog: cel.Backlog | None = None) -> None:
        self._table: Recent[object, Criteria] = Recent(_MOST_CRITERIA, _MOST_LETTERS)
        self._backlog = backlog
        self._memory = Memory()

    def intern(
        self,
        selectors: tuple[Selector, ...],
        tolerations: tuple[DeviceToleration, ...],
        capacity: Mapping[str, Quantity],
    ) -> Criteria:
        key = (selectors, tolerations, frozenset(capacity.items()))
        found = self._table.get(key)
        if found is None:
            expressions = tuple(selector.expression for selector in selectors)
            backlog = self._backlog
            judge = judge_of(expressions) if backlog is None else Judge(expressions, backlog, self._memory)
            found = Criteria(selectors, tolerations, dict(capacity), judge)
            self._table.put(key, found, sum(map(len, expressions)))
        return found


class ClaimReader:
    """Reads one claim. Raises Refusal, naming the claim and the request."""

    def __init__(
        self, claim: ResourceClaim, classes: Mapping[str, DeviceClass], intern: Callable[..., Criteria]
    ) -> None:
        self._claim = claim
        self._name = full_name(claim)
        self._classes = classes
        self._intern = intern
        self._used: dict[str, DeviceClass] = {}

    def read(self) -> Claim:
        devices = self._claim.spec.devices
        constraints = tuple(self._constraint(n, c) for n, c in enumerate(devices.constraints))
        requests = tuple(self._request(request) for request in devices.requests)
        return Claim(requests, constraints, tuple(self._used.items()))

    def _constraint(self, number: int, constraint: DeviceConstraint) -> Constraint:
        if constraint.match_attribute is not None:
            return Constraint(constraint.match_attribute, distinct=False)
        if constraint.distinct_attribute is not None:
            return Constraint(constraint.distinct_attribute, distinct=True)
        raise Refusal(f"claim {self._name}, constraint #{number}: empty constraint (unsupported constraint type?)")

    def _request(self, request: DeviceRequest) -> Request:
        if request.first_available:
            alternatives = tuple(self._alternative(request.name, sub) for sub in request.first_available)
            return Request(request.name, alternatives, is_list=True)
        if request.exactly is None:
            raise Refusal(f"claim {self._name}, request {request.name}: unsupported request type")
        return Request(request.name, (self._alternative(request.name, request.exactly),), is_list=False)

    def _alternative(self, request: str, asked: ExactDeviceRequest | DeviceSubRequest) -> Alternative:
        is_sub = isinstance(asked, DeviceSubRequest)
        short_name = asked.name if isinstance(asked, DeviceSubRequest) else request
        name = f"{request}/{short_name}" if is_sub else request
        place = f"claim {self._name}, request {short_name}"
        if asked.derived_attributes:
            raise Refusal(f"{place}: derived attributes are not supported")
        selectors = tuple(_selectors(asked.selectors, place, None))
        if not asked.device_class_name:
            raise Refusal(f"{place}: missing device class name (unsupported request type?)")
        device_class = self._classes.get(asked.device_class_name)
        if device_class is None:
            missing = asked.device_class_name
            raise Refusal(f"{place}: device class {missing} not found", missing_class=(name, missing))
        self._used[asked.device_class_name] = device_class
        class_name = device_class.metadata.name
        of_class = tuple(_selectors(device_class.spec.selectors, f"class {class_name}", class_name))
        requested = asked.capacity.requests if asked.capacity is not None else {}
        return Alternative(
            name=name,
            short_name=short_name,
            device_class=device_class,
            criteria=self._intern(of_class + selectors, asked.tolerations, requested),
            count=_count(asked, place),
            admin=isinstance(asked, ExactDeviceRequest) and bool(asked.admin_access),
            constraints=tuple(self._constraints_on(request, name)),
        )

    def _constraints_on(self, request: str, name: str) -> Iterator[int]:
        """A constraint without requests holds for all; it may name a request or one alternative of it (4381-54)."""
        for number, constraint in enumerate(self._claim.spec.devices.constraints):
            if not constraint.requests or request in constraint.requests or name in constraint.requests:
                yield number


def _selectors(selectors: tuple[DeviceSelector, ...], place: str, class_name: str | None) -> Iterator[Selector]:
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            raise Refusal(f"{place}, selector #{index}: CEL expression empty (unsupported selector type?)")
        yield Selector(selector.cel.expression, index, class_name)


def _count(asked: ExactDeviceRequest | DeviceSubRequest, place: str) -> int | None:
    """How many devices; objects from before defaulting have no mode and no count (4381-45, 4381-46)."""
    if asked.allocation_mode == MODE_ALL:
        return None
    if asked.allocation_mode not in ("", MODE_EXACT_COUNT):
        raise Refusal(f"{place}: unsupported allocation mode {asked.allocation_mode}")
    return asked.count or 1

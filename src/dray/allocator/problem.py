"""The requests of all claims on one node, as sets of devices: what the search works on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from dray.allocator.counters import CounterBudget
from dray.allocator.holdings import NOTHING
from dray.allocator.layout import AttributeIndex, Held, Layout
from dray.allocator.requests import Alternative, Claim, Request
from dray.allocator.results import Refusal, StillJudging
from dray.allocator.selection import Candidates, Criteria, Fault, consumption, first_false
from dray.api.resource.claim import ALLOCATION_RESULTS
from dray.tracker.view import EffectiveDevice


class Option(msgspec.Struct, frozen=True, eq=False):
    """An alternative on this node."""

    alternative: Alternative
    count: int
    usable: int
    """Devices to choose from, apart from those that the search has taken."""
    faulty: int
    """Devices that cannot be judged: looking at one of them ends the allocation."""
    everything: int | None = None
    """For `All`: the devices that it must get, every one."""
    out_of_reach: int = 0
    """Of `everything`, the devices that are held or tainted."""

    @property
    def may_abort(self) -> bool:
        """Whether the search can end in an error here, so that it must not be cut short before (see search)."""
        return bool(self.faulty) or (self.everything is not None and bool(self.alternative.constraints))


class BoundRequest(msgspec.Struct, frozen=True, eq=False):
    """A request on this node; requests of all claims are numbered through."""

    claim: int
    request: Request
    options: tuple[Option, ...]

    @property
    def may_abort(self) -> bool:
        return any(option.may_abort for option in self.options)


class Problem:
    """Claims on a node. Raises Refusal for what is known to be an error before any search:

    a selector that fails on a device in sight of an `All` request, a pool in sight that such a request would have to
    wait for, and claims that need more devices than a claim may hold.
    """

    def __init__(
        self,
        layout: Layout,
        claims: Sequence[Claim],
        names: Sequence[str],
        find: Callable[[Criteria], Candidates] | None = None,
    ) -> None:
        """`find` says what criteria say of the devices, if not the layout is to be asked. It may raise StillJudging."""
        self.layout: Final = layout
        self.claims: Final = claims
        self.names: Final = names
        self._find: Final = find or layout.candidates
        self.held: Final = layout.taken()
        self.shared: Final = layout.shared()
        self._frozen: Held | None = None
        self.requests: Final = [
            BoundRequest(number, request, tuple(self._bind(number, a) for a in request.alternatives))
            for number, claim in enumerate(claims)
            for request in claim.requests
        ]
        self._check_sizes()
        self._consumption: dict[tuple[Criteria, int], dict[str, int]] = {}

    def faulty(self, alternative: Alternative) -> int:
        """Devices that cannot be judged. Raises StillJudging."""
        found = self._find(alternative.criteria)
        return found.faulty | found.overflowing

    def _bind(self, claim: int, alternative: Alternative) -> Option:
        found = self._find(alternative.criteria)
        faulty = found.faulty | found.overflowing
        in_reach = -1 if alternative.admin else ~self.held
        if alternative.count is not None:
            return Option(alternative, alternative.count, found.usable & in_reach, faulty & in_reach)
        self._require_whole_pools(claim, alternative)
        if faulty:
            raise self.refuse_device(claim, alternative, (faulty & -faulty).bit_length() - 1)
        everything = found.selected
        return Option(
            alternative=alternative,
            count=everything.bit_count(),
            usable=found.usable & in_reach,
            faulty=0,
            everything=everything,
            out_of_reach=everything & ~(found.usable & in_reach),
        )

    def _require_whole_pools(self, claim: int, alternative: Alternative) -> None:
        """What `All` means is unknown while a pool in sight is incomplete or invalid (4381-90, SVS-50)."""
        for pool in self.layout.problems:
            state = "being updated" if pool.view.incomplete else "invalid"
            raise Refusal(
                f"claim {self.names[claim]}, request {alternative.short_name}: asks for all devices, "
                f"but resource pool {pool} is currently {state}"
            )

    def _check_sizes(self) -> None:
        """A claim holds at most 32 devices (4381-65); with alternatives the smallest ones count here."""
        needed = [0] * len(self.names)
        for request in self.requests:
            needed[request.claim] += min([option.count for option in request.options])
        for name, count in zip(self.names, needed, strict=True):
            if count > ALLOCATION_RESULTS:
                raise Refusal(
                    f"claim {name}: number of requested devices {count} exceeds the claim limit of {ALLOCATION_RESULTS}"
                )

    def requests_of(self, claim: int) -> Iterator[BoundRequest]:
        return (request for request in self.requests if request.claim == claim)

    def attribute(self, claim: int, constraint: int) -> AttributeIndex:
        """The devices by the attribute that a constraint is about."""
        return self.layout.attribute(self.claims[claim].constraints[constraint].attribute)

    def device(self, position: int) -> EffectiveDevice:
        return self.layout.devices[position]

    @property
    def weight(self) -> int:
        """About how much a step of the search for it costs, if nothing can be told at once."""
        options = sum(len(request.options) for request in self.requests)
        constraints = sum(len(claim.constraints) for claim in self.claims)
        return (options + 1) * (constraints + 1) * self.layout.size

    def freeze(self, held: Held) -> None:
        """From now on what is held is as it was when the problem was posed, whatever happens."""
        self._frozen = held

    def counters_left(self, segment: int) -> CounterBudget | None:
        """What others leave of the counters of a pool; None if it has none."""
        if self._frozen is not None:
            return self._frozen.counters[segment] if self._frozen.counters else None
        return self.layout.segments[segment][1].budget()

    def consumed(self, position: int) -> Mapping[str, int]:
        """What shares of others take of the capacities of a device."""
        if self._frozen is not None:
            return self._frozen.consumed.get(position, NOTHING)
        return self.layout.consumed(position)

    def consumption(self, criteria: Criteria, position: int) -> dict[str, int]:
        """What a usable device would be charged, in nano units."""
        key = (criteria, position)
        found = self._consumption.get(key)
        if found is None:
            consumed = consumption(criteria, self.device(position)) or {}
            found = self._consumption[key] = {name: amount.nanos for name, amount in consumed.items()}
        return found

    def refuse_device(self, claim: int, alternative: Alternative, position: int) -> Refusal:
        """The error of looking at a faulty device. Raises StillJudging if it was not known when devices were sorted."""
        device = self.device(position)
        try:
            if first_false(alternative.criteria, device) is None:
                consumption(alternative.criteria, device)
        except Fault as fault:
            selector = fault.selector
            if selector is None:
                return Refusal(f"claim {self.names[claim]}, request {alternative.short_name}: {fault}")
            place = f"claim {self.names[claim]}" if selector.class_name is None else f"class {selector.class_name}"
            separator = ": " if fault.is_everywhere else " "
            return Refusal(f"{place}: selector #{selector.index}{separator}{fault}")
        if alternative.criteria.judge.may_settle_later:
            raise StillJudging  # it is known by now: whoever asks again is told
        raise AssertionError(f"device {device.id} is not faulty")

"""Finds devices for all requests: the first solution in a fixed order, however hard the others are.

The order is the one of an exhaustive search: claims and requests as given, alternatives as listed, devices by their
position. So results agree with Kubernetes' allocator, which stops at its first solution. What makes this search fast
cuts only branches without solution:

- lookahead (`lookahead`): a branch is left as soon as a relaxation shows that it is a dead end;
- symmetry (`symmetry`): of like devices one is tried, and a state that failed is not entered again.

A device on which a selector fails ends the allocation with an error when it is looked at: in an exhaustive search that
is when no device before it led to a solution. Branches that could reach such an error are therefore not cut: lookahead
sees only as far as the next request that may abort (`horizon`), and a request that runs into a faulty device without
a solution raises NoWay (`PickFrame.barrier`).

A search stands between two steps at any time: when a turn is over, it is left as it is, and goes on with the next.

    frames   Choice(gpu: large | small)  →  Pick(gpu/large, slot 0)  →  Pick(gpu/large, slot 1)  →  Pick(nic, slot 0)
             each frame knows its state and what it has not tried yet; the last frame continues when a branch fails
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum, auto
from typing import TypeAlias

from dray.allocator.budget import Budget
from dray.allocator.lookahead import Lookahead, allowed_devices, blocked_devices
from dray.allocator.problem import Option, Problem
from dray.allocator.requests import Alternative
from dray.allocator.results import Refusal
from dray.allocator.state import Pick, State, Values
from dray.allocator.symmetry import Symmetry
from dray.api.resource.claim import ALLOCATION_RESULTS


class Signal(Enum):
    """How entering a state went."""

    OPEN = auto()
    """A frame was pushed; it has something to try."""
    FOUND = auto()
    FAILED = auto()
    TOO_MANY = auto()
    """The chosen alternatives need more devices than a claim may hold: no use in trying other devices."""


class ChoiceFrame:
    """The alternatives of one request, in order."""

    __slots__ = ("claim", "count", "only_too_many", "signature", "state", "tried")

    def __init__(self, claim: int, state: State, count: int) -> None:
        self.claim = claim
        self.state = state
        self.count = count
        self.tried = 0
        self.only_too_many = True
        self.signature: Hashable = None

    def next(self) -> State | None:
        if self.tried == self.count:
            return None
        self.tried += 1
        return self.state._replace(option=self.tried - 1)


class PickFrame:
    """The devices for one slot of a request, in order."""

    __slots__ = ("barrier", "claim", "failed_kinds", "option", "picked", "remaining", "signature", "state")

    def __init__(self, claim: int, state: State, option: Option, remaining: int, barrier: int | None) -> None:
        self.claim = claim
        self.state = state
        self.option = option
        self.remaining = remaining
        self.barrier = barrier
        """A faulty device: the search ends there."""
        self.picked = -1
        self.failed_kinds: set[Hashable] = set()
        self.signature: Hashable = None


Frame: TypeAlias = ChoiceFrame | PickFrame


class NoWay(Exception):
    """The search came to a device on which it cannot go on, and so ends in an error."""

    def __init__(self, claim: int, alternative: Alternative, position: int, *, is_forbidden: bool) -> None:
        """The device cannot be judged; or, if it `is_forbidden`, a constraint is against one that `All` must get."""
        super().__init__()
        self.claim = claim
        self.alternative = alternative
        self.position = position
        self.is_forbidden = is_forbidden

    def stands(self, problem: Problem) -> bool:
        """Whether the device is still in the way: selectors that were being evaluated may have been meanwhile."""
        return self.is_forbidden or bool(problem.faulty(self.alternative) >> self.position & 1)

    def refusal(self, problem: Problem) -> Refusal:
        """What is told to those who pose the problem. Raises StillJudging, OutOfBudget as `refuse_device` does."""
        if not self.is_forbidden:
            return problem.refuse_device(self.claim, self.alternative, self.position)
        return Refusal(
            f"claim {problem.names[self.claim]}, request {self.alternative.short_name}: cannot add device "
            f"{problem.device(self.position).id} because a claim constraint would not be satisfied"
        )


def solve(problem: Problem, budget: Budget) -> State | None:
    """The final state of a search, or None if the claims do not fit. Raises Refusal and OutOfBudget."""
    try:
        return Search(problem).run(budget)
    except NoWay as end:
        raise end.refusal(problem) from None


class Search:
    """One search, from the first request of the first claim to the last one."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._layout = problem.layout
        self._frames: list[Frame] = []
        self._lookahead = Lookahead(problem)
        first = problem.requests[0].claim if problem.requests else 0
        self._entering: State | None = self._start_claim(State(), first)
        """The state to go on from; None between two branches."""
        self._signal = Signal.OPEN
        self._state = State()
        """The state that the last branch ended in."""
        self._horizons = self._find_horizons()
        self._symmetry: Symmetry | None = None
        self._dead: set[Hashable] = set()
        self._limited = self._layout.shareable | problem.shared
        """Devices of which capacity may have been given away."""

    def _find_horizons(self) -> list[int]:
        """For each request, the first request from there on that may abort the search."""
        requests = self._problem.requests
        horizons = [len(requests)] * (len(requests) + 1)
        may_be_too_large = any(request.request.is_list for request in requests)
        for number in range(len(requests) - 1, -1, -1):
            may_abort = requests[number].may_abort
            horizons[number] = number if may_abort else horizons[number + 1]
        if may_be_too_large and horizons[0] < len(requests):
            # Claims that grow too large end branches early, before an error is reached: follow that to the letter.
            return list(range(len(requests) + 1))
        return horizons

    def run(self, budget: Budget) -> State | None:
        """See `solve`. Raises NoWay, OutOfBudget, and TurnOver: then it may be called again, and goes on."""
        while True:
            if self._entering is not None:
                self._signal, self._state = self._enter(self._entering, budget)
                self._entering = None
            if self._signal is Signal.FOUND:
                return self._state
            if self._signal is Signal.TOO_MANY:
                self._signal = self._leave_claim(self._problem.requests[self._state.request].claim)
            if not self._frames:
                return None
            frame = self._frames[-1]
            if self._signal is Signal.FAILED:
                self._note_failure(frame)
                self._signal = Signal.OPEN
            self._entering = frame.next() if isinstance(frame, ChoiceFrame) else self._next_device(frame, budget)
            if self._entering is None:
                self._leave(frame)

    def _leave(self, frame: Frame) -> None:
        """Nothing is left to try here."""
        self._frames.pop()
        self._state = frame.state
        self._signal = Signal.FAILED
        if isinstance(frame, ChoiceFrame) and frame.only_too_many:
            self._signal = Signal.TOO_MANY
        elif frame.signature is not None:
            self._dead.add(frame.signature)

    def _leave_claim(self, claim: int) -> Signal:
        """Go back to the last choice of the claim; without one, to the claim before, as after any failure."""
        while self._frames and self._frames[-1].claim == claim and isinstance(self._frames[-1], PickFrame):
            self._frames.pop()
        if self._frames and self._frames[-1].claim == claim:
            return Signal.TOO_MANY
        return Signal.FAILED

    def _note_failure(self, frame: Frame) -> None:
        """The branch that the frame tried last led nowhere."""
        if isinstance(frame, ChoiceFrame):
            frame.only_too_many = False
        elif frame.picked >= 0:
            if self._symmetry is None:
                self._symmetry = Symmetry(self._problem)
            frame.failed_kinds.add(self._symmetry.kind(frame.picked, frame.state))

    def _start_claim(self, state: State, claim: int) -> State:
        constraints = self._problem.claims[claim].constraints
        return state._replace(
            size=0, taken=0, taken_before=state.taken_before | state.taken, values=(None,) * len(constraints)
        )

    def _enter(self, state: State, budget: Budget) -> tuple[Signal, State]:
        """Go on from a state until there is something to choose."""
        while state.request < len(self._problem.requests):
            self._entering = state
            budget.step()
            bound = self._problem.requests[state.request]
            if state.option < 0:
                if bound.request.is_list:
                    return self._open_choice(state), state
                state = state._replace(option=0)
            option = bound.options[state.option]
            if option.everything == 0:
                return Signal.FAILED, state  # `All` needs at least one device (SVS-43)
            if state.slot < option.count:
                if state.size + option.count - state.slot > ALLOCATION_RESULTS:
                    return Signal.TOO_MANY, state
                if option.everything is None:
                    return self._open_pick(state, option), state
                placed = self._take_everything(state, option)
                if placed is None:
                    return Signal.FAILED, state
                state = placed
            state = self._finish_request(state)
        return Signal.FOUND, state

    def _finish_request(self, state: State) -> State:
        claim = self._problem.requests[state.request].claim
        following = state.request + 1
        state = state._replace(request=following, option=-1, slot=0, start=0, options=(*state.options, state.option))
        if following < len(self._problem.requests) and self._problem.requests[following].claim != claim:
            state = self._start_claim(state, self._problem.requests[following].claim)
        return state

    def _open_choice(self, state: State) -> Signal:
        """Push a frame with the alternatives of a request, unless it is known to be a dead end."""
        bound = self._problem.requests[state.request]
        frame = ChoiceFrame(bound.claim, state, len(bound.options))
        if self._symmetry is not None:
            frame.signature = self._symmetry.signature(state, 0)
            if frame.signature in self._dead:
                return Signal.FAILED
        self._frames.append(frame)
        return Signal.OPEN

    def _open_pick(self, state: State, option: Option) -> Signal:
        """Push a frame with the devices to try for the next slot, unless it is known to be a dead end."""
        claim = self._problem.requests[state.request].claim
        open_devices = ~blocked_devices(option, state, same_claim=True) & -1 << state.start
        remaining = option.usable & open_devices
        remaining &= allowed_devices(self._problem, claim, option.alternative.constraints, state.values)
        faulty = option.faulty & open_devices
        frame = PickFrame(claim, state, option, remaining, None)
        if faulty:
            frame.barrier = (faulty & -faulty).bit_length() - 1
            frame.remaining &= (1 << frame.barrier) - 1
        elif self._horizons[state.request] > state.request:
            frame.remaining = self._lookahead.narrow(state, remaining, self._horizons[state.request])
        if not frame.remaining and not faulty:
            return Signal.FAILED
        if self._symmetry is not None and not faulty:
            frame.signature = self._symmetry.signature(state, remaining)
            if frame.signature in self._dead:
                return Signal.FAILED
        self._frames.append(frame)
        return Signal.OPEN

    def _next_device(self, frame: PickFrame, budget: Budget) -> State | None:
        """The state with the next device that can be placed; None if no device is left. Raises NoWay."""
        symmetry = self._symmetry
        while frame.remaining:
            low = frame.remaining & -frame.remaining
            frame.remaining ^= low
            position = low.bit_length() - 1
            if (
                frame.failed_kinds
                and symmetry is not None
                and symmetry.kind(position, frame.state) in frame.failed_kinds
            ):
                continue
            placed = self._place(frame.state, frame.option, position)
            if placed is not None:
                frame.picked = position
                return placed
            budget.step()
        if frame.barrier is not None:
            raise NoWay(frame.claim, frame.option.alternative, frame.barrier, is_forbidden=False)
        return None

    def _take_everything(self, state: State, option: Option) -> State | None:
        """All devices of an `All` request; None if one is not free. Raises NoWay if a constraint forbids one."""
        rest = option.everything or 0
        blocked = blocked_devices(option, state, same_claim=True) | option.out_of_reach
        claim = self._problem.requests[state.request].claim
        while rest:
            low = rest & -rest
            rest ^= low
            position = low.bit_length() - 1
            if low & blocked or self._draw(state, position) is None:
                return None
            if not low & allowed_devices(self._problem, claim, option.alternative.constraints, state.values):
                raise NoWay(claim, option.alternative, position, is_forbidden=True)
            placed = self._place(state, option, position)
            if placed is None:
                return None
            state = placed
        return state

    def _draw(self, state: State, position: int) -> State | None:
        """The state after the device drew from its pool's counters; None if it cannot.

        A further share of a shareable device draws nothing: the first one did.
        """
        bit = 1 << position
        layout = self._layout
        is_shared = bit & self._problem.shared or position in state.shares
        if not bit & layout.metered or (bit & layout.shareable and is_shared):
            return state
        number = layout.segment_of[position]
        segment, _ = layout.segments[number]
        left = state.budgets.get(number) or self._problem.counters_left(number)
        table = segment.pool.counters
        draw = table.draws[segment.pool_position(position - layout.offsets[number])] if table is not None else None
        if left is None or draw is None:
            return state
        left = left.take(draw)
        return None if left is None else state._replace(budgets={**state.budgets, number: left})

    def _consume(self, state: State, option: Option, position: int) -> State | None:
        """The state after the request took its part of the device's capacity; None if too little is left."""
        if not 1 << position & self._limited:
            return state
        capacity = self._problem.device(position).device.capacity
        held = self._problem.consumed(position)
        taken = state.shares.get(position, {})
        charged = dict(taken)
        for name, amount in self._problem.consumption(option.alternative.criteria, position).items():
            charged[name] = taken.get(name, 0) + amount
            if held.get(name, 0) + charged[name] > capacity[name].value.nanos:
                return None
        if not 1 << position & self._layout.shareable:
            return state
        return state._replace(shares={**state.shares, position: charged})

    def _place(self, state: State, option: Option, position: int) -> State | None:
        """The state after a device was picked, which the constraints allow; None if it cannot be had."""
        drawn = self._draw(state, position)
        placed = self._consume(drawn, option, position) if drawn is not None else None
        if placed is None:
            return None
        claim = self._problem.requests[state.request].claim
        return placed._replace(
            slot=state.slot + 1,
            start=position + 1,
            size=state.size + 1,
            taken=state.taken if 1 << position & self._layout.shareable else state.taken | 1 << position,
            values=self._see(state, claim, option, position),
            last=Pick(state.last, state.request, state.option, position),
        )

    def _see(self, state: State, claim: int, option: Option, position: int) -> tuple[Values, ...]:
        """What the constraints of the claim have seen after a device was picked."""
        if not option.alternative.constraints:
            return state.values
        values = list(state.values)
        for number in option.alternative.constraints:
            added = self._problem.attribute(claim, number).values[position]
            seen = values[number]
            if seen is None:
                values[number] = added
            elif self._problem.claims[claim].constraints[number].distinct:
                values[number] = seen | added
            else:
                values[number] = seen & added
        return tuple(values)

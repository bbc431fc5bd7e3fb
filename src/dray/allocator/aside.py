"""Searches that take longer than a turn: they are put aside, go on there, and what came of them is found again.

    decision ──▶ search ──▶ TurnOver ──▶ Aside ──next──▶ whoever has the time (a thread) ──▶ a verdict
                                                                                               │
    decision, made anew ──▶ find: the same claims on the same devices, held as they were? ◀────┘

A search that was put aside reads nothing that changes (`Problem.freeze`). What is held may change meanwhile: then the
search begins anew, and what was spent on the claims and the node counts for all of them, so that it ends. Everybody on
whose behalf there are searches gets a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple, TypeAlias

import msgspec

from dray import cel
from dray.allocator.budget import Budget, TurnOver
from dray.allocator.layout import Held, Layout
from dray.allocator.problem import Problem
from dray.allocator.results import Options, OutOfBudget, StillJudging
from dray.allocator.search import NoWay, Search
from dray.allocator.selection import Candidates, Criteria
from dray.allocator.shapes import Shape
from dray.allocator.state import State
from dray.api.in_turn import InTurn
from dray.api.recent import Newest

DEVICE_SECONDS: Final = 0.005
"""How long one decision looks at devices at least, if it has to."""
_MOST_VERDICTS: Final = 1024
_MOST_SEARCHES: Final = 256
"""Searches that wait at a time. What does not fit is put aside when it is asked for again."""
_MOST_BEGUN: Final = 64

_Subject: TypeAlias = tuple[Shape, Layout]


class Verdict(NamedTuple):
    """What came of a search: a state, nothing, a device on which it cannot go on, or no answer in the given time."""

    state: State | None = None
    no_way: NoWay | None = None
    is_given_up: bool = False
    steps: int = 0


class PutAside:
    """A search that goes on beside the decisions."""

    __slots__ = ("_options", "_problem", "_search", "key", "owner", "steps", "subject")

    def __init__(self, owner: str, subject: _Subject, key: Hashable, problem: Problem, options: Options) -> None:
        self.owner = owner
        self.subject = subject
        self.key = key
        self.steps = 0
        self._problem = problem
        self._options = options
        self._search: Search | None = None

    def go_on(self, between: Callable[[], None]) -> Verdict | None:
        """Searches on until `between`, called before each step, raises TurnOver; None then, or what came of it."""
        budget = Budget(self._options, between)
        budget.steps = self.steps
        try:
            if self._search is None:
                self._search = Search(self._problem)
            return Verdict(self._search.run(budget), steps=budget.steps)
        except TurnOver:
            return None
        except NoWay as end:
            return Verdict(no_way=end.with_traceback(None), steps=budget.steps)
        except OutOfBudget:
            return Verdict(is_given_up=True, steps=budget.steps)
        finally:
            self.steps = budget.steps


class Aside:
    """What was put aside, by owner, and what came of it. All of it belongs to the loop but a search that goes on."""

    def __init__(self, backlog: cel.Backlog, seconds: float | None) -> None:
        """The `backlog` knows whose turn it is. For the same claims on the same node a search takes `seconds` at most,
        however often it has to begin anew."""
        self._backlog = backlog
        self._seconds = seconds
        self._waiting: InTurn[PutAside] = InTurn()
        self._keys: set[Hashable] = set()
        self._verdicts: Newest[Hashable, Verdict] = Newest(_MOST_VERDICTS)
        self._spent: Newest[_Subject, float] = Newest(_MOST_VERDICTS)
        self._begun: Newest[_Subject, dict[Criteria, Candidates]] = Newest(_MOST_BEGUN)

    def __len__(self) -> int:
        return len(self._keys)

    # What decisions ask

    def begin(self) -> None:
        """Devices are about to be looked at: there is time for some, whatever took long before."""
        self._backlog.lengthen_turn(DEVICE_SECONDS)

    @property
    def is_time_up(self) -> bool:
        """Whether the turn of whoever decides is over."""
        return self._backlog.is_time_up

    def cut_short(self) -> bool:
        """As `is_time_up`; if so, there is another turn soon."""
        return self._backlog.is_turn_over()

    def end_turn(self) -> None:
        """There is another turn soon for what is left to do, whatever the time is."""
        self._backlog.end_turn()

    def between_steps(self) -> None:
        """Raises TurnOver when it is."""
        if self._backlog.is_time_up:
            raise TurnOver

    def look_at(self, shape: Shape, layout: Layout) -> _Look:
        """Finds out what the criteria of a problem say of the devices, in several turns if need be."""
        return _Look(self, (shape, layout), self._begun.get((shape, layout)))

    def keep(self, subject: _Subject, found: dict[Criteria, Candidates]) -> None:
        """What was found out in this turn is of use in the next."""
        self._begun.keep(subject, found)

    def find(self, shape: Shape, layout: Layout) -> Verdict | None:
        """What is known of claims on a node, with what is held now; None if a search is needed."""
        subject = (shape, layout)
        if subject not in self._spent:
            return None
        known = self._verdicts.get((subject, _key(layout.held())))
        if known is None and self._seconds is not None and self._spent[subject] >= self._seconds:
            return Verdict(is_given_up=True)
        return known

    def drop(self, shape: Shape, layout: Layout) -> None:
        """What came of a search is not so any more."""
        self._verdicts.pop(((shape, layout), _key(layout.held())), None)

    def is_under_way(self, shape: Shape, layout: Layout) -> bool:
        """Whether just this is being searched for."""
        subject = (shape, layout)
        return subject in self._spent and (subject, _key(layout.held())) in self._keys

    def put(self, shape: Shape, problem: Problem, options: Options) -> None:
        """Have a search gone on with beside the decisions."""
        subject, held = (shape, problem.layout), problem.layout.held()
        key = (subject, _key(held))
        if subject not in self._spent:
            self._spent.keep(subject, 0.0)
        if key in self._keys or len(self._keys) >= _MOST_SEARCHES:
            return
        problem.freeze(held)
        self._keys.add(key)
        owner = self._backlog.owner
        # The time is measured by whoever goes on with it.
        searched = PutAside(owner, subject, key, problem, msgspec.structs.replace(options, max_seconds=None))
        self._waiting.put(owner, searched)

    # What whoever has the time asks

    def next(self) -> PutAside | None:
        """The next search to go on with."""
        return self._waiting.next()

    def left(self, search: PutAside) -> float | None:
        """How many seconds a search may still take; None if there is no limit."""
        return None if self._seconds is None else self._seconds - self._spent.get(search.subject, 0.0)

    def went_on(self, search: PutAside, seconds: float, verdict: Verdict | None) -> bool:
        """A search took so long, and came to something, or is to go on when it is its turn; whether it has ended."""
        spent = self._spent.get(search.subject, 0.0) + seconds
        self._spent.keep(search.subject, spent)
        if verdict is None and (self._seconds is None or spent < self._seconds):
            self._waiting.put(search.owner, search)
            return False
        self._keys.discard(search.key)
        self._verdicts.keep(search.key, verdict or Verdict(is_given_up=True, steps=search.steps))
        return True

    def forget_given_up(self) -> bool:
        """Lets what took too long be tried again; whether there is something."""
        given_up = [key for key, verdict in self._verdicts.items() if verdict.is_given_up]
        too_long = [subject for subject, spent in self._spent.items() if self._seconds and spent >= self._seconds]
        for key in given_up:
            del self._verdicts[key]
        for subject in too_long:
            self._spent[subject] = 0.0
        return bool(given_up or too_long)


class _Look:
    """What criteria say of the devices of a node: what earlier turns found out, and as much more as there is time."""

    def __init__(self, aside: Aside, subject: _Subject, known: dict[Criteria, Candidates] | None) -> None:
        self._aside = aside
        self._subject = subject
        self._found = known or {}
        self._is_new = False

    def __call__(self, criteria: Criteria) -> Candidates:
        """Raises StillJudging if there is no time to find out, after one at least was found out."""
        known = self._found.get(criteria)
        if known is None:
            if self._is_new and self._aside.cut_short():
                self._aside.keep(self._subject, self._found)
                raise StillJudging
            known = self._subject[1].candidates(criteria)
            if not known.unsettled:
                self._found[criteria] = known
                self._is_new = True
        return known


def _key(held: Held) -> Hashable:
    counters = tuple(
        [None if left is None else (left.left, tuple(sorted(left.groups.items()))) for left in held.counters]
    )
    consumed = tuple([(position, tuple(sorted(amounts.items()))) for position, amounts in held.consumed.items()])
    return held.taken, held.shared, counters, consumed

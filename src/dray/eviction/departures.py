"""The pods that must leave, for device taints and node taints alike: who may now, who is held, put off or kept.

    planner ─▶ want(pod, causes) ─┬─ exempt: a policy keeps it for these causes
                                  ├─ guard: its sources are held, or not judged yet
                                  └─ Evictions: waits for its time and its rate ─▶ take()

Who was taken is `evicted`, postponed, exempted or spared; somebody says which.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from dray.api.references import ObjectRef
from dray.eviction.causes import Cause, Causes, Source, earliest
from dray.eviction.evictions import Evictions, Taken
from dray.eviction.guard import Base, Guard, Hold
from dray.eviction.tally import Progress, Tally

NOTHING: Causes = {}
AT_ONCE: Final = 200
"""Pods that are taken before others get a turn of the loop."""


class Unasked(NamedTuple):
    """Pods that stay because their policy could not be asked."""

    pods: int
    problem: str
    """Why the last one could not."""

    def __str__(self) -> str:
        pods = "1 pod is held" if self.pods == 1 else f"{self.pods} pods are held"
        return f"{pods} because the eviction policy cannot be asked: {self.problem}"


class Departures:
    """What a planner knows about pods that must leave. The planner says who must, and why."""

    def __init__(self, guard: Guard[ObjectRef] | None = None) -> None:
        """Without a guard nothing is held."""
        self.guard = guard
        self.tally = Tally()
        self._evictions: Evictions[ObjectRef] = Evictions()
        self._wanted: dict[ObjectRef, Causes] = {}
        self._exempt: dict[ObjectRef, Causes] = {}
        self._evicted: set[ObjectRef] = set()
        self._problems: dict[ObjectRef, str] = {}
        self._with_problem: dict[Source, dict[ObjectRef, None]] = {}
        self.changed_places: set[str] = set()
        """Pools or nodes where policies could be asked before and now cannot, or the other way round."""
        self._unsettled: deque[ObjectRef] = deque()
        self._tick = float("-inf")

    def __len__(self) -> int:
        return len(self._evictions)

    @property
    def pods(self) -> Collection[ObjectRef]:
        """All pods that must leave and may, now or later."""
        return self._evictions.pods

    @property
    def active_limiters(self) -> int:
        """How many taints are being rationed now (5055-94)."""
        return self._evictions.active_limiters

    @property
    def is_idle(self) -> bool:
        """Whether nobody has to leave."""
        return not self._wanted

    @property
    def is_settled(self) -> bool:
        """Whether `judge` and `settle` have nothing to do."""
        return not self._unsettled and (self.guard is None or self.guard.is_sure)

    def want(self, pod: ObjectRef, causes: Causes, tick: float) -> bool:
        """A pod must leave for these causes, or for none. True if it had to, or would have, and has not any more."""
        self._tick = max(self._tick, tick)
        known = self._wanted.get(pod, NOTHING)
        if known == causes or pod in self._evicted:
            return False
        before = self._to_act_on(pod)
        problem = self._problems.get(pod, "")
        self._set_problem(pod, "")
        if causes:
            self._wanted[pod] = causes
            self._set_problem(pod, problem)
        else:
            del self._wanted[pod]
        if self._exempt.get(pod, causes) != causes:
            del self._exempt[pod]
        self._change(pod, before)
        return not causes

    def drop(self, pod: ObjectRef) -> None:
        """A pod is gone, or on its way out."""
        self._evicted.discard(pod)
        self._take_out(pod)

    def evicted(self, pod: ObjectRef, causes: Causes) -> None:
        """A pod was deleted for these causes. It does not have to leave once more while that shows nowhere."""
        self.tally.evicted(causes)
        if pod in self._wanted:
            self._evicted.add(pod)
        self._take_out(pod)

    def postpone(self, taken: Taken[ObjectRef], until: float, problem: str = "") -> None:
        """A pod that was taken does not leave before some time; then it is taken again.

        `problem` is why its policy could not be asked, if that is the reason.
        """
        self._evictions.postpone(taken, until)
        self._stop(taken.pod)
        self.tally.touch(self.causes(taken.pod))
        self._set_problem(taken.pod, problem)

    def exempt(self, pod: ObjectRef) -> None:
        """A pod that was taken does not leave for its causes at all."""
        self.spare(pod)
        before = self._to_act_on(pod)
        if before:
            self._exempt[pod] = before
            self._change(pod, before)

    def spare(self, pod: ObjectRef) -> None:
        """A pod that was taken need not leave any more."""
        self._set_problem(pod, "")
        self._stop(pod)

    def recall(self, pod: ObjectRef) -> None:
        """A pod that was put off or exempted is to be taken again: it has changed."""
        self._evictions.recall(pod)
        if self._exempt.pop(pod, None) is not None:
            self._change(pod, NOTHING)

    def is_put_off(self, pod: ObjectRef) -> bool:
        """Whether a pod was put off or exempted, and `recall` would do something."""
        return pod in self._evictions.postponed or pod in self._exempt

    def must_leave(self, pod: ObjectRef) -> bool:
        """Whether a pod that was taken still has to go."""
        if self._unsettled:
            self._apply(pod)  # the guard may hold it by now
        return bool(self._evictions.causes(pod))

    def causes(self, pod: ObjectRef) -> Causes:
        """Why a pod must leave, and may; nothing if it stays, or is held."""
        return self._evictions.causes(pod)

    def judge(self, tick: float, base: Base) -> set[Source]:
        """Lets the guard decide. Returns the sources of which something else is held or allowed.

        `settle` acts on it.
        """
        self._tick = max(self._tick, tick)
        if self.guard is None:
            return set()
        verdict = self.guard.judge(self._tick, base)
        self._unsettled.extend(verdict.pods)
        return verdict.sources

    def settle(self, limit: int) -> None:
        """Brings so many of the pods in line with what was judged; those that are gone since cost nothing."""
        for _ in range(min(limit, len(self._unsettled))):
            pod = self._unsettled.popleft()
            if pod in self._wanted:
                self.tally.touch(self._wanted[pod])
                self._apply(pod)

    def hold_of(self, source: Source) -> Hold | None:
        """What of a source is held until somebody confirms it; None if nothing is."""
        return None if self.guard is None else self.guard.hold_of(source)

    def held(self) -> Iterator[tuple[Cause, Hold]]:
        """What is held, by source, each with one of its causes."""
        guard = self.guard
        for source in () if guard is None else guard.sources:
            hold = guard.hold_of(source) if guard is not None else None
            if guard is not None and hold is not None:
                causes = self._wanted[next(guard.pods(source))].values()
                yield next(cause for cause in causes if cause.source == source), hold

    def take(self, now: float, tick: float) -> list[Taken[ObjectRef]]:
        """Some of the pods whose time has come. Each stays pending until it is evicted, dropped or put off.

        Whoever takes them says with `start` which ones go.
        """
        self._tick = max(self._tick, tick)
        taken = self._evictions.take(now, tick, AT_ONCE)
        if self._unsettled:
            # What the guard holds by now must not leave while `settle` is on its way.
            for each in taken:
                self._apply(each.pod)
            taken = [each for each in taken if self.is_due(each, now)]
        return taken

    def is_due(self, taken: Taken[ObjectRef], now: float) -> bool:
        """Whether a pod still must leave now for what it was taken for; if not, it waits for its time again."""
        cause = self._evictions.causes(taken.pod).get(taken.cause.taint)
        if cause is not None and cause.due <= now:
            return True
        self._evictions.finish(taken.pod)
        self._apply(taken.pod)
        return False

    def start(self, taken: Iterable[Taken[ObjectRef]]) -> None:
        """These pods are going to be evicted now."""
        if self.guard is not None:
            for each in taken:
                self.guard.mark_going(each.pod, is_so=True)

    def wait(self, now: float, tick: float) -> float | None:
        """After how many seconds `take` may have something; None if nothing is planned."""
        return self._evictions.wait(now, tick)

    def progress(self, rule: str) -> Progress:
        """How far the eviction for a rule is."""
        postponed = [self._evictions.causes(pod) for pod in self._evictions.postponed]
        waiting, kept = (_count_with(rule, of) for of in (postponed, self._exempt.values()))
        return self.tally.progress(rule)._replace(waiting=waiting, kept=kept)

    @property
    def held_pods(self) -> int:
        """How many pods stay until somebody confirms that they are to leave."""
        return 0 if self.guard is None else self.guard.held_pods

    @property
    def unasked_pods(self) -> int:
        """How many pods stay because their policy could not be asked."""
        return len(self._problems)

    def unasked(self, sources: Iterable[Source]) -> Unasked | None:
        """The pods of some sources that stay because their policy could not be asked; None if there are none."""
        found = dict.fromkeys(chain.from_iterable(self._with_problem.get(source, ()) for source in sources))
        return Unasked(len(found), self._problems[next(reversed(found))]) if found else None

    def _to_act_on(self, pod: ObjectRef) -> Causes:
        return NOTHING if pod in self._exempt else self._wanted.get(pod, NOTHING)

    def _stop(self, pod: ObjectRef) -> None:
        """A pod that was taken does not go now."""
        if self.guard is not None:
            self.guard.mark_going(pod, is_so=False)

    def _set_problem(self, pod: ObjectRef, problem: str) -> None:
        before = self._problems.pop(pod, "")
        if not before and not problem:
            return
        for source in {cause.source for cause in self._wanted.get(pod, NOTHING).values()}:
            pods = self._with_problem.setdefault(source, {})
            pods.pop(pod, None)
            if problem:
                self._problems[pod] = problem
                pods[pod] = None
            if not pods:
                del self._with_problem[source]
            if before != problem:
                self.changed_places.add(source.place)

    def _take_out(self, pod: ObjectRef) -> None:
        before = self._to_act_on(pod)
        self._set_problem(pod, "")
        self._wanted.pop(pod, None)
        self._exempt.pop(pod, None)
        self._change(pod, before)

    def _change(self, pod: ObjectRef, before: Causes) -> None:
        after = self._to_act_on(pod)
        if before == after:
            return
        self.tally.move(pod, before, after)
        if self.guard is not None:
            self.guard.want(pod, [cause.source for cause in after.values()], self._tick)
        self._apply(pod)

    def _apply(self, pod: ObjectRef) -> None:
        causes = self._to_act_on(pod)
        guard = self.guard
        if guard is not None and not all(guard.allows(cause.source, pod) for cause in causes.values()):
            causes = {key: cause for key, cause in causes.items() if guard.allows(cause.source, pod)}
        self._evictions.set(pod, _by_limiter(causes), self._tick)


def _by_limiter(causes: Causes) -> Causes:
    """The causes by what they share a limiter by; of those that share one the earliest."""
    if all(key == cause.taint for key, cause in causes.items()):
        return causes
    return earliest(causes.values())


def _count_with(rule: str, of: Iterable[Causes]) -> int:
    return sum(any(cause.rule == rule for cause in causes.values()) for causes in of)

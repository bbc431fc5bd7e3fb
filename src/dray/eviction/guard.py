"""Evictions that are so many that they may be a mistake are held until somebody confirms them. Pure.

    want(pod, sources) ─▶ judge() ─┬─ few, over all groups together: allowed
                                   ├─ confirmed: allowed, and not counted
                                   └─ too many: held, until confirmed, or until fewer would leave

A source is what somebody can confirm: a rule, the taints of a pool, a taint on a node. Sources of one group are judged
together: all pools of a driver, all nodes with a taint. A group is allowed if those who left without a confirmation
since one window before the group came up, those who are to leave for groups that are allowed, and its own pods are
together no more than the limit. So in no window more leave than that, however they are spread, and time alone never
lets go of what is held. A limit that says `spare` has a second one besides, for who left and was not replaced: any pod
that comes takes the place of whoever left first. Groups that came first are judged first. Nothing is allowed before it
was judged, so that the first of many pods are not gone before the last ones are counted. A group that spares nobody is
held however few it has: in a small cluster these are all. What a guard has counted outlives it (`recent.Past`): the
next one goes on counting.

Pods that must leave for the same are decided about together (`alike.Alike`): a rule may concern tens of thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Final, Generic, NamedTuple, TypeVar

from dray.eviction.alike import Alike, SourceGroup
from dray.eviction.causes import Source
from dray.eviction.recent import Recent
from dray.eviction.settings import Limit

P = TypeVar("P", bound=Hashable)

WINDOW: Final = 3600.0
"""Seconds. Who left so long ago does not count for what comes up now."""
HALF_UP_TO: Final = 50
"""As many pods may leave nodes that fail in a small cluster, if that is no more than half of them."""


class Hold(NamedTuple):
    """What is held: so many pods of a group, besides so many others, out of so many that could be evicted."""

    pods: int
    others: int
    of: int
    limit: Limit
    allowed: int
    is_sweeping: bool = False
    """Whether it is held for sparing nobody, however few they are."""

    def __str__(self) -> str:
        pods = "1 pod" if self.pods == 1 else f"{self.pods} pods"
        if self.is_sweeping:
            return f"{pods} of {self.of} would be evicted, for an empty selector, which selects every device"
        others = f", {self.others} left or leave besides" if self.others else ""
        limit = str(self.limit)
        told = limit if limit == str(self.allowed) else f"{self.allowed} (limit {limit})"
        return f"{pods} of {self.of} would be evicted{others}, more than {told}"


class Base(NamedTuple):
    """What a limit is a share of."""

    pods: int
    """How many could be evicted."""
    fullest_node: int = 0
    """How many of them are on the node that has most."""
    is_of_nodes: bool = False
    """Whether they leave nodes, and not devices."""

    @property
    def nodes_worth(self) -> int:
        """What `node` stands for in a limit: the pods of one node, so that one can be served, or fail, without asking.

        Nodes that fail have nobody to ask, and Kubernetes stops only when more than half of them do: so may half of
        the pods of a small cluster leave for them.
        """
        return max(self.fullest_node, min(self.pods // 2, HALF_UP_TO)) if self.is_of_nodes else self.fullest_node


class GuardChange(NamedTuple, Generic[P]):
    """What is different now."""

    sources: set[Source]
    """Those that are allowed or held and were not, or of which something else is held than before."""
    pods: Collection[P]
    """In order: those that may leave and might not, or the other way round."""


class Guard(Generic[P]):
    """What each source wants to evict, and whether it may. `P` tells pods apart."""

    def __init__(
        self,
        limit: Limit,
        recent: Recent[P] | None = None,
        *,
        window: float = WINDOW,
        uses_devices: Callable[[P], bool] | None = None,
    ) -> None:
        """`recent` may be shared with other guards.

        A guard that cannot tell who `uses_devices` is about such pods alone, and counts only these.
        """
        self._limit = limit
        self._recent = recent if recent is not None else Recent()
        self._window = window
        self._uses_devices = uses_devices
        self._of: dict[P, Alike[P]] = {}
        self._alike: dict[frozenset[Source], Alike[P]] = {}
        self._sources: dict[Source, dict[Alike[P], None]] = {}
        self._confirmed: set[Source] = set()
        self._sweeping: set[str] = set()
        self._groups: dict[str, SourceGroup[P]] = {}
        self._held: dict[str, Hold] = {}
        self._counted = 0
        """How many go, or may because an unconfirmed group is allowed."""
        self._going: set[P] = set()
        self._unsure: set[str] = set()
        self._changed: set[Source] = set()
        self._touched: dict[P, None] = {}
        self._is_roomier = False
        self._allowance = (0, 0)
        """How many may be missing, and how many may leave in a window."""
        self._fullest = 0
        """Of the node that had most when the first of those left who count: it has fewer with each of them."""
        self._number = 0
        self._heard = self._recent.news

    @property
    def is_outdated(self) -> bool:
        """Whether something was heard of others, in processes of their own, that nobody has judged by."""
        return self._heard != self._recent.news

    @property
    def is_sure(self) -> bool:
        """Whether `judge` has nothing to do, unless the base has changed."""
        return not (self._unsure or self._is_roomier or self._changed or self.is_outdated)

    @property
    def is_idle(self) -> bool:
        """Whether nobody wants anything."""
        return not self._sources

    @property
    def held_pods(self) -> int:
        """How many pods are held. One that must leave for two groups that are held is counted in each."""
        return sum(self._groups[name].size for name in self._held)

    @property
    def sources(self) -> Collection[Source]:
        """All that want something."""
        return self._sources.keys()

    def want(self, pod: P, sources: Iterable[Source], tick: float) -> None:
        """A pod must leave for these sources; for none if it may stay, or is gone."""
        before, after = self._of.get(pod), frozenset(sources)
        if (before.sources if before is not None else frozenset()) == after:
            return
        now = self._join(pod, after, tick) if after else None
        if before is not None:
            self._leave(pod, before)
        if now is None:
            del self._of[pod]
        else:
            self._of[pod] = now
        self._regroup(pod, before, now)
        if before is None:
            return
        if pod in self._going:
            if now is None:
                self._going.discard(pod)
                self._recent.add(pod, tick, uses_devices=self._has_devices(pod))
        elif before.is_counted and not (now is not None and now.is_counted):
            self._is_roomier = True

    def mark_going(self, pod: P, *, is_so: bool) -> None:
        """A pod is being evicted, or (not so) stays for the time being. One that goes counts as left when gone."""
        alike = self._of.get(pod)
        is_going = alike is not None and pod in self._going
        if not is_so:
            self._recent.stay(pod)
            if alike is not None and is_going:
                self._going.discard(pod)
                alike.going -= 1
                if not alike.is_counted:
                    self._counted -= 1
                    self._is_roomier = True
        elif alike is not None and (is_going or alike.is_counted):
            if not is_going:
                self._going.add(pod)
                alike.going += 1
            self._recent.begin(pod, uses_devices=self._has_devices(pod))

    def note_arrival(self) -> None:
        """A pod has come: one less of those who left is missing."""
        self._is_roomier |= self._recent.replace(only_devices=self._uses_devices is None)

    def confirm(self, source: Source, *, is_so: bool, tick: float) -> None:
        """Somebody said that what a source evicts is meant, or (not so) took that back."""
        if is_so == (source in self._confirmed):
            return
        (self._confirmed.add if is_so else self._confirmed.discard)(source)
        for alike in list(self._sources.get(source, ())):
            self._changed.add(source)
            self._rejudge(alike, tick)
            self._touched.update(alike.pods)

    def mark_sweeping(self, source: Source, *, is_so: bool) -> None:
        """A source selects whatever there is, or (not so) something: its group is never allowed for being small."""
        (self._sweeping.add if is_so else self._sweeping.discard)(source.group)

    def renew(self, source: Source, tick: float) -> None:
        """A source is another one than before: its group is judged like one that has just come up."""
        group = self._groups.get(source.group)
        if group is not None:
            group.since = tick
            self._unsure.add(source.group)
            self._set_allowed(group, is_so=False)

    def judge(self, tick: float, base: Base) -> GuardChange[P]:
        """Decides about all that there is news of."""
        self._heard = self._recent.news
        changed, self._changed = self._changed, set()
        touched, self._touched = self._touched, {}
        allowance = self._allowed_of(base, tick - self._window)
        self._is_roomier |= any(new > old for new, old in zip(allowance, self._allowance, strict=True))
        self._allowance = allowance
        unsure = self._unsure | self._held.keys() if self._is_roomier else self._unsure
        before = {name: self._state(name) for name in unsure}
        held = dict(self._held)
        dropped = False
        for name in self._too_much(tick):
            before.setdefault(name, self._state(name))
            self._set_allowed(self._groups[name], is_so=False)
            dropped = True
        for name in sorted(before, key=lambda one: self._groups[one].number):
            self._judge_one(name, base.pods)
            group = self._groups[name]
            if before[name] != self._state(name):
                changed |= self._sources_of(name)
                for alike in group.alikes:
                    touched.update(alike.pods)
            elif group.is_allowed:
                touched.update(group.unjudged)
            group.unjudged = {}
        changed |= self._counted_otherwise(held, base.pods)
        self._unsure.clear()
        self._is_roomier = dropped  # what was dropped leaves room for others, once
        self._forget(tick)
        return GuardChange(changed, touched.keys())

    def allows(self, source: Source, pod: P) -> bool:
        """Whether a pod that must leave for a source may."""
        if source in self._confirmed:
            return True
        group = self._groups.get(source.group)
        return group is not None and group.is_allowed and pod not in group.unjudged

    def is_confirmed(self, source: Source) -> bool:
        """Whether somebody said that what a source evicts is meant."""
        return source in self._confirmed

    def hold_of(self, source: Source) -> Hold | None:
        """What of a source is held, as a part of its group; None if nothing is."""
        return self._held.get(source.group) if source in self._sources and source not in self._confirmed else None

    def pods(self, source: Source) -> Iterator[P]:
        """The pods that must leave for a source."""
        return (pod for alike in self._sources.get(source, ()) for pod in alike.pods)

    def _report(self, source: Source) -> None:
        """A source is new or gone: there is something else to say about it if its group is held."""
        if source.group in self._held:
            self._changed.add(source)

    def _is_allowed(self, name: str) -> bool:
        group = self._groups.get(name)
        return group is not None and group.is_allowed

    def _state(self, name: str) -> tuple[bool, bool]:
        return self._is_allowed(name), name in self._held

    def _sources_of(self, name: str) -> set[Source]:
        return {source for alike in self._groups[name].alikes for source in alike.sources if source.group == name}

    def _counted_otherwise(self, before: dict[str, Hold], of: int) -> set[Source]:
        """The sources of groups that were held and are, in other numbers."""
        self._held = {name: hold._replace(of=of) for name, hold in self._held.items()}
        changed = {name for name, hold in self._held.items() if name in before and before[name] != hold}
        return {source for name in changed for source in self._sources_of(name)}

    def _left(self, since: float) -> int:
        return self._recent.since(since, only_devices=self._uses_devices is None)

    def _allowed_of(self, base: Base, since: float) -> tuple[int, int]:
        """How many may be missing, and how many may leave: of those who are there, and who were before they left."""
        left, missing = self._left(since), self._missing(since)
        self._fullest = max(self._fullest, base.fullest_node) if left or self._going else base.fullest_node
        then = base._replace(pods=base.pods + missing, fullest_node=self._fullest)
        ever = then._replace(pods=base.pods + left)
        in_all = self._limit.pods(ever.pods, ever.nodes_worth)
        may_miss = self._limit.missing(then.pods, then.nodes_worth)
        return in_all if may_miss is None else may_miss, in_all

    def _tightest(self, since: float) -> tuple[int, int]:
        """How many are missing since some time, or have left, and how many may: what leaves less room."""
        counts = (self._missing(since), self._left(since))
        return min(zip(counts, self._allowance, strict=True), key=lambda one: one[1] - one[0])

    def _room(self, since: float) -> int:
        left, allowed = self._tightest(since)
        return allowed - left - self._counted

    def _missing(self, since: float) -> int:
        return self._recent.unreplaced(since, only_devices=self._uses_devices is None)

    def _too_much(self, tick: float) -> Iterable[str]:
        """Groups that must not go on because more want to leave by now: those that grew, then those that came last."""
        if self._room(tick - self._window) >= 0:
            return
        allowed = [name for name, group in self._groups.items() if group.is_allowed]
        for name in sorted(allowed, key=lambda one: (one in self._unsure, self._groups[one].number), reverse=True):
            if self._room(tick - self._window) >= 0:
                return
            yield name

    def _judge_one(self, name: str, of: int) -> None:
        group = self._groups[name]
        if name not in self._sweeping and (group.is_allowed or self._fits(group)):
            self._held.pop(name, None)
            self._set_allowed(group, is_so=True)
        else:
            left, allowed = self._tightest(self._came_up(group) - self._window)
            others = self._others(group) + left
            self._held[name] = Hold(group.size, others, of, self._limit, allowed, name in self._sweeping)

    def _others(self, group: SourceGroup[P]) -> int:
        """How many are counted that the group does not want."""
        return self._counted - sum(alike.counted for alike in group.alikes)

    def _fits(self, group: SourceGroup[P]) -> bool:
        room = self._room(self._came_up(group) - self._window)
        if group.size - self._counted > room:
            return False  # whoever of them is counted already
        return sum(len(alike.pods) - alike.counted for alike in group.alikes if not alike.is_meant) <= room

    def _set_allowed(self, group: SourceGroup[P], *, is_so: bool) -> None:
        if group.is_allowed != is_so:
            group.is_allowed = is_so
            for alike in group.alikes:
                self._recount(alike)

    def _join(self, pod: P, sources: frozenset[Source], tick: float) -> Alike[P]:
        """Puts a pod to those that leave for the same."""
        alike = self._alike.get(sources)
        if alike is None:
            alike = self._alike[sources] = Alike(sources)
            for source in sorted(sources):  # in one order in every process
                if source not in self._sources:
                    self._sources[source] = {}
                    self._report(source)
                self._sources[source][alike] = None
            self._rejudge(alike, tick)
        alike.pods[pod] = None
        is_going = pod in self._going
        alike.going += is_going
        self._counted += is_going or alike.is_counted
        for name in alike.groups:
            self._groups[name].size += 1
        return alike

    def _leave(self, pod: P, alike: Alike[P]) -> None:
        """Takes a pod out of those that leave for the same."""
        is_going = pod in self._going
        del alike.pods[pod]
        alike.going -= is_going
        self._counted -= is_going or alike.is_counted
        for name in alike.groups:
            self._groups[name].size -= 1
        if alike.pods:
            return
        del self._alike[alike.sources]
        for source in alike.sources:
            del self._sources[source][alike]
            if not self._sources[source]:
                del self._sources[source]
                self._report(source)
        for name in alike.groups:
            del self._groups[name].alikes[alike]

    def _regroup(self, pod: P, before: Alike[P] | None, now: Alike[P] | None) -> None:
        """A pod has come to groups, which are to judge it, and has left others."""
        old, new = (alike.groups if alike is not None else frozenset() for alike in (before, now))
        for name in new - old:
            self._groups[name].unjudged[pod] = None
            self._unsure.add(name)
        for name in old - new:
            self._groups[name].unjudged.pop(pod, None)
            self._shrunk(name)

    def _rejudge(self, alike: Alike[P], tick: float) -> None:
        """Puts pods into the groups of their sources that are not confirmed, and takes them out of others."""
        before = alike.groups
        alike.groups = frozenset(source.group for source in alike.sources if source not in self._confirmed)
        alike.is_meant = not self._confirmed.isdisjoint(alike.sources)
        for name in sorted(alike.groups - before):  # their numbers decide who is judged first
            group = self._groups.get(name)
            if group is None:
                self._number += 1
                group = self._groups[name] = SourceGroup(self._number, tick)
            group.alikes[alike] = None
            group.size += len(alike.pods)
            if alike.pods:
                group.unjudged.update(alike.pods)
                self._unsure.add(name)
        for name in before - alike.groups:
            group = self._groups[name]
            del group.alikes[alike]
            group.size -= len(alike.pods)
            for pod in alike.pods if group.unjudged else ():
                group.unjudged.pop(pod, None)
            self._shrunk(name)
        self._recount(alike)

    def _shrunk(self, name: str) -> None:
        """A group has fewer pods than before, or none any more."""
        if not self._groups[name].size:
            del self._groups[name]
            self._held.pop(name, None)
            self._unsure.discard(name)
        elif name in self._held:
            self._unsure.add(name)

    def _recount(self, alike: Alike[P]) -> None:
        """Notes whether pods count: those that go until they are gone, others while a group may evict them."""
        before = alike.counted
        alike.is_counted = not alike.is_meant and any(map(self._is_allowed, alike.groups))
        self._counted += alike.counted - before
        self._is_roomier |= alike.counted < before

    def _has_devices(self, pod: P) -> bool:
        return self._uses_devices is None or self._uses_devices(pod)

    def _forget(self, tick: float) -> None:
        """Nobody needs to know for ever who left; whatever is held still counts from when it came up."""
        oldest = min((self._came_up(self._groups[name]) for name in self._held), default=None)
        self._recent.hold(self, oldest)
        self._recent.forget(self, (tick if oldest is None else min(oldest, tick)) - self._window)

    def _came_up(self, group: SourceGroup[P]) -> float:
        return self._recent.came_up(group.since)

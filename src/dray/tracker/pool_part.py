"""What of a pool counts for some nodes, mostly all of it: its devices, and whether it can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from dray.api.resource import CounterSet, Device, DeviceTaint, ResourceSlice
from dray.tracker.access import accesses_of
from dray.tracker.columns import ColumnTable, Sheet
from dray.tracker.current_slice import CurrentSlice
from dray.tracker.partitions import Taints, spreading, with_inherited
from dray.tracker.pool_problems import find_problem
from dray.tracker.taints import PublishedTaints, TaintHits, spread
from dray.tracker.view import EffectiveDevice, NodeAccess, PoolView, TrackedTaint


class Known(NamedTuple):
    """What a pool was before a change, in whatever parts: so that what is the same stays the same object."""

    slices: dict[str, CurrentSlice]
    accesses: dict[NodeAccess, NodeAccess]


class PoolPart:
    """The slices of a pool that count for some nodes (`pool_parts`), mostly for all of them.

    Call `take` with these slices, `stage_taints` when all parts of the pool have taken theirs, and when the slices are
    patched, `rebuild`.
    """

    def __init__(self, driver: str, name: str, node: str, taints: PublishedTaints | None) -> None:
        """`taints` are those of all parts of the pool; None if there shall be none."""
        self.driver = driver
        self.name = name
        self.node = node
        self.current: dict[str, CurrentSlice] = {}
        """In the order of their names."""
        self._taints = taints
        self._taints_apart: dict[str, tuple[TrackedTaint, ...]] = {}
        self.accesses: dict[NodeAccess, None] = {}
        self._hidden_from: frozenset[str] = frozenset()
        self._is_spreading = False
        self._view: PoolView | None = None

    def take(
        self,
        slices: Iterable[ResourceSlice],
        hidden_from: frozenset[str],
        known: Known,
        columns: ColumnTable,
    ) -> set[str]:
        """Take the slices that count, and out of `known` what is known of them, in whatever part they were.

        Returns the names of those that are new here or say something new.
        """
        self._hidden_from = hidden_from
        before, self.current = self.current, {}
        fresh: set[str] = set()
        for slice_ in sorted(slices, key=lambda each: each.metadata.name):
            name = slice_.metadata.name
            state = known.slices.pop(name, None)
            if state is None:
                state = CurrentSlice(slice_, columns)
                fresh.add(name)
            elif state.source is not slice_:
                state.update(slice_, columns)
                fresh.add(name)
            elif name not in before:
                fresh.add(name)
            self.current[name] = state
            if name in fresh:
                found = known.accesses
                state.accesses = tuple([found.setdefault(access, access) for access in accesses_of(slice_)])
        self.accesses = {access: None for state in self.current.values() for access in state.accesses}
        return fresh

    def published_taints(self) -> Iterator[DeviceTaint]:
        """The taints that drivers published, in devices and apart from them."""
        for state in self.current.values():
            yield from state.published_taints
        for state in self.current.values():
            for entry in state.source.spec.taints:
                yield entry.taint

    def stage_taints(self) -> set[str]:
        """Collect taints that are published apart from their devices (5055-75).

        Returns the slices with devices for which these changed.
        """
        if self._taints is None:
            return set()
        before = self._taints_apart
        now: dict[str, tuple[TrackedTaint, ...]] = {}
        for state in self.current.values():
            for entry in state.source.spec.taints:
                now[entry.device] = (*now.get(entry.device, ()), self._taints.tracked(entry.taint))
        self._taints_apart = now
        changed = {device for device in before.keys() | now.keys() if before.get(device) != now.get(device)}
        if not changed:
            return set()
        return {name for name, state in self.current.items() if not changed.isdisjoint(state.published.names.values)}

    def rebuild(
        self, dirty: Iterable[CurrentSlice], taint_hits: Callable[[Sheet], TaintHits], *, staged: bool
    ) -> PoolView:
        """Make the effective devices of these slices anew, and the view; it is the old one if it looks the same.

        `staged` says that `take` was called since the last time, so that all of the view may be different.
        """
        for name, taints in self._all_taints(dirty, taint_hits).items():
            self.current[name].taint(taints)
        devices = self._devices()
        if self._view is None:
            self._view = self._make_view(devices)
        elif staged:
            made = self._make_view(devices)
            self._view = self._view if _looks_same(self._view, made) else made
        elif devices != self._view.devices:
            self._view = replace(self._view, devices=devices)
        return self._view

    def _all_taints(
        self, dirty: Iterable[CurrentSlice], taint_hits: Callable[[Sheet], TaintHits]
    ) -> dict[str, list[Taints]]:
        """The taints of the devices in slices that have to be made anew, by slice name and position.

        Where taints reach partitions, which may be in other slices, that is all slices of the pool.
        """
        taints = {
            state.published.slice_name: self._taints_by_position(state, taint_hits(state.patched)) for state in dirty
        }
        if not self._is_spreading and not self._spread(taints):
            return taints
        for name, state in self.current.items():
            if name not in taints:
                taints[name] = self._taints_by_position(state, taint_hits(state.patched))
        self._is_spreading = self._spread(taints)
        slices = {name: (self.current[name].patched.devices, found) for name, found in taints.items()}
        return with_inherited(slices, self._counter_sets())

    def _spread(self, taints: Mapping[str, list[Taints]]) -> bool:
        """Whether any of these taints reaches partitions of its device."""
        return any(
            any(map(spreading, state.patched.devices, found))
            for name, found in taints.items()
            if (state := self.current[name]).consumers
        )

    def _taints_by_position(self, state: CurrentSlice, hits: TaintHits) -> list[tuple[TrackedTaint, ...]]:
        """The taints of each device: from its entry, from `spec.taints`, then from rules."""
        devices = state.patched.devices
        taints = spread(hits, len(devices))
        if self._taints is None or not (self._taints_apart or state.published_taints):
            return taints
        return [
            (*self._published_on(device, self._taints), *from_rules)
            for device, from_rules in zip(devices, taints, strict=True)
        ]

    def _published_on(self, device: Device, taints: PublishedTaints) -> Iterable[TrackedTaint]:
        """Redundant ones count once (5055-38)."""
        own = [taints.tracked(taint) for taint in device.taints]
        found = (*own, *self._taints_apart.get(device.name, ()))
        return {taint.id: taint for taint in found}.values()

    def _devices(self) -> tuple[EffectiveDevice, ...]:
        if len(self.current) == 1:
            return next(iter(self.current.values())).devices
        return tuple(chain.from_iterable(state.devices for state in self.current.values()))

    def _counter_sets(self) -> tuple[CounterSet, ...]:
        return tuple([one for state in self.current.values() for one in state.source.spec.shared_counters])

    def _make_view(self, devices: tuple[EffectiveDevice, ...]) -> PoolView:
        states = self.current.values()
        specs = [state.source.spec for state in states]
        counter_sets = self._counter_sets()
        consumers = chain.from_iterable(state.consumers for state in states)
        problem = find_problem(f"{self.driver}/{self.name}", specs, devices, counter_sets, consumers)
        return PoolView(
            self.driver,
            self.name,
            specs[0].pool.generation,
            devices,
            counter_sets,
            None if problem is None else problem.message,
            problem is not None and problem.incomplete,
            tuple(self.accesses),
            self.node,
            self._hidden_from,
        )


def _looks_same(one: PoolView, other: PoolView) -> bool:
    return (
        one.generation == other.generation
        and one.devices == other.devices
        and one.counter_sets == other.counter_sets
        and one.problem == other.problem
        and one.incomplete == other.incomplete
        and one.accesses == other.accesses
        and one.hidden_from == other.hidden_from
    )

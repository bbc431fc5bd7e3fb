"""After any sequence of events a tracker shows the same as one that starts now, and as its slow twin.

One that does only some of the work at once shows old or new pools meanwhile, and the same in the end.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dray.api.resource.pool import PoolKey, pool_of
from dray.tracker import Change, EffectiveDevice, Event, PoolView, Remove, TrackedObject, Tracker, Upsert
from tracker_objects import DRIVER, device, device_class, on, patch, slice_, taint
from tracker_objects import rule as taint_rule
from tracker_twin import Twin, show, show_pool

OTHER = "nic.example.com"
DRIVERS = st.sampled_from([DRIVER, DRIVER, OTHER])
POOLS = st.sampled_from(["node-1", "node-1", "node-2"])
NAMES = st.sampled_from(["x", "y", "z"])

_OWN = f'device.attributes["{DRIVER}"]'
_MEMORY = f'device.capacity["{DRIVER}"].memory'
EXPRESSIONS = st.sampled_from(
    [
        "true",
        f'device.driver == "{DRIVER}"',
        f'{_OWN}.model == "A"',
        f'"B" == {_OWN}["model"]',
        f'device.driver == "{DRIVER}" && {_OWN}.model in ["A", "C"] && {_OWN}.size == 1',
        f'has({_OWN}.model) && {_OWN}.model == "B"',
        f"{_OWN}.size == 1",
        f"{_OWN}.size",
        f'{_OWN}.size == 1 && {_OWN}.model == "A"',
        f"{_MEMORY}.isInteger()",
        f'{_MEMORY}.compareTo(quantity("1")) == 0 || {_OWN}.model == "A"',
        f'"model" in {_OWN}',
        f'{_OWN}.exists(name, name == "size")',
        'device.attributes["other.org"].level > 1',
        "device.allowMultipleAllocations",
    ]
)
ATTRIBUTES = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["A", "A", "B", 1, "v1.0.0"]),
        "firmware": st.sampled_from(["v1.0.0", "v1.x"]),
        "size": st.sampled_from([1, 1, True, 2]),
        f"{DRIVER}/model": st.sampled_from(["A", "B"]),
        "other.org/level": st.sampled_from([1, 2]),
    },
)
TAINTS = st.sampled_from([taint("example.com/a"), taint("example.com/b", "NoExecute"), taint(data={"a": [1]})])
DEVICES = st.builds(
    device,
    NAMES,
    ATTRIBUTES,
    memory=st.sampled_from(["", "1", "1000m", "2Gi"]),
    taints=st.lists(TAINTS, max_size=2).map(tuple),
    allow_multiple_allocations=st.sampled_from([None, True]),
)


PLACES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{"node_name": "node-1"}, {"node_name": "node-2"}, {"all_nodes": True}]
)


@st.composite
def slices(draw: st.DrawFn) -> TrackedObject:
    entries = draw(st.lists(DEVICES, max_size=3, unique_by=lambda entry: entry.name))
    return slice_(
        draw(st.sampled_from(["s1", "s2", "s3", "s4"])),
        *entries,
        driver=draw(DRIVERS),
        pool=draw(POOLS),
        generation=draw(st.integers(1, 2)),
        count=draw(st.integers(1, 2)),
        **draw(PLACES),
        taints=() if entries else tuple(draw(st.lists(st.builds(on, NAMES, TAINTS), max_size=2))),
    )


CRITERIA = st.fixed_dictionaries(
    {}, optional={"driver": DRIVERS, "pool": POOLS, "device": NAMES, "device_class_name": st.sampled_from(["c1", "c2"])}
)
SELECTORS = st.lists(EXPRESSIONS, max_size=2)


@st.composite
def rules(draw: st.DrawFn) -> TrackedObject:
    name, everything = draw(st.sampled_from(["r1", "r2", "r3"])), draw(st.booleans())
    return taint_rule(name, *draw(SELECTORS), everything=everything, taint=draw(TAINTS), **draw(CRITERIA))


@st.composite
def patches(draw: st.DrawFn) -> TrackedObject:
    values: Any = st.one_of(st.none(), st.sampled_from(["A", "B", 1, "v2.0.0"]))
    names = st.sampled_from(["model", "size", "note", "other.org/level"])
    created = st.sampled_from([None, "2026-06-01T10:00:00Z", "2026-06-01T11:00:00Z"])
    return patch(
        draw(st.sampled_from(["p1", "p2", "p3"])),
        draw(st.dictionaries(names, values, max_size=2)),
        *draw(SELECTORS),
        capacity=draw(st.dictionaries(st.just("memory"), st.sampled_from(["1", "1000m"]), max_size=1)),
        priority=draw(st.sampled_from([None, 0, 1])),
        created=draw(created),
        **draw(CRITERIA),
    )


@st.composite
def classes(draw: st.DrawFn) -> TrackedObject:
    return device_class(draw(st.sampled_from(["c1", "c2"])), *draw(SELECTORS))


OBJECTS = st.one_of(slices(), slices(), rules(), patches(), classes())
REMOVALS = st.sampled_from(
    [
        Remove(kind, f"{letter}{number}")
        for kind, letter in (
            ("ResourceSlice", "s"), ("DeviceTaintRule", "r"), ("ResourceSlicePatch", "p"), ("DeviceClass", "c"),
        )
        for number in (1, 2, 3)
    ]
)  # fmt: skip
EVENTS: st.SearchStrategy[Event] = st.one_of(OBJECTS.map(Upsert), OBJECTS.map(Upsert), REMOVALS)


def _identities(view: PoolView) -> dict[Any, EffectiveDevice]:
    return {(found.id, found.slice_name): found for found in view.devices}


def _look(found: EffectiveDevice) -> tuple[Any, ...]:
    quantities = [amount.value.as_int64() for amount in found.device.capacity.values()]
    return found.device, quantities, found.taints, found.access, found.patches


class TrackerMachine(RuleBasedStateMachine):
    """A tracker, and the objects that it was told of."""

    def __init__(self) -> None:
        super().__init__()
        self.tracker = Tracker()
        self.objects: dict[Remove, TrackedObject] = {}
        self.encoded: dict[Remove, bytes] = {}

    @initialize(events=st.lists(OBJECTS.map(Upsert), max_size=10))
    def start(self, events: list[Event]) -> None:
        self._apply(events)

    @rule(event=EVENTS)
    def apply_one(self, event: Event) -> None:
        self._apply([event])

    @rule(events=st.lists(EVENTS, max_size=4))
    def apply_batch(self, events: list[Event]) -> None:
        self._apply(events)

    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        if self.objects:
            known = data.draw(st.sampled_from(sorted(self.objects)))
            copy = msgspec.structs.replace(self.objects[known])
            assert self.tracker.apply(Upsert(copy)) == Change()

    def _apply(self, events: list[Event]) -> None:
        before = dict(self.tracker.pools)
        for event in events:
            key = event if isinstance(event, Remove) else Remove.of(event.object)
            self.objects.pop(key, None)
            if isinstance(event, Upsert):
                self.objects[key] = event.object
                self.encoded[key] = _encode(event.object)
        change = self.tracker.apply_all(events)
        self._check_change(before, change)

    def _check_change(self, before: dict[tuple[str, str], PoolView], change: Change) -> None:
        after = dict(self.tracker.pools)
        assert change.pools == {key for key in before.keys() | after.keys() if before.get(key) is not after.get(key)}
        for key in before.keys() & after.keys():
            old, new = _identities(before[key]), _identities(after[key])
            for identity in old.keys() & new.keys():
                is_same = old[identity] is new[identity]
                assert is_same is (_look(old[identity]) == _look(new[identity]))

    @invariant()
    def same_as_from_scratch(self) -> None:
        scratch = Tracker()
        scratch.apply_all([Upsert(obj) for obj in self.objects.values()])
        assert show(self.tracker) == show(scratch)
        assert self._usable(self.tracker) == self._usable(scratch)
        assert self._problems(self.tracker) == self._problems(scratch)

    @invariant()
    def same_as_the_twin(self) -> None:
        twin = Twin(self.objects.values())
        shown = show(self.tracker)
        assert shown == twin.show()
        assert self._problems(self.tracker) == twin.failures()

    @invariant()
    def problems_name_a_device_that_is_there(self) -> None:
        there = {found.id for found in self.tracker.devices()}
        assert all(problem.device in there for problem in self.tracker.problems)

    @invariant()
    def objects_are_untouched(self) -> None:
        assert all(_encode(obj) == self.encoded[key] for key, obj in self.objects.items())

    @staticmethod
    def _usable(tracker: Tracker) -> dict[Any, Any]:
        return {
            (key, part.node): (part.problem, part.hidden_from, part.accesses)
            for key, view in tracker.pools.items()
            for part in view.each()
        }

    @staticmethod
    def _problems(tracker: Tracker) -> dict[Any, int]:
        return {
            (problem.kind, problem.name, problem.selector, problem.device_class): problem.count
            for problem in tracker.problems
        }

    def teardown(self) -> None:
        """Nothing is left when everything is gone."""
        self.tracker.apply_all(list(self.objects))
        assert not self.tracker.pools
        assert not self.tracker.problems
        assert len(self.tracker._pools.columns) == 0


def _encode(obj: TrackedObject) -> bytes:
    return msgspec.json.encode(obj, enc_hook=str)


TrackerMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=12)
TestTracker = TrackerMachine.TestCase


AT_ONCE = 8
"""What one pool counts as, if it has no more devices."""


def _look_of(view: PoolView) -> dict[str, Any]:
    return {part.node: (show_pool(part), part.problem) for part in view.each()}


class TurnsMachine(RuleBasedStateMachine):
    """A tracker that does only some of the work at once, and one that does all, which are told the same."""

    def __init__(self) -> None:
        super().__init__()
        self.whole = Tracker()
        self.tracker = Tracker(at_once=AT_ONCE)
        self.seen: dict[PoolKey, list[dict[str, Any]]] = {}
        """How pools looked in the other tracker since both were the same."""
        self.pools: dict[str, PoolKey] = {}
        self.known: dict[Remove, None] = {}

    @rule(events=st.lists(OBJECTS.map(Upsert), max_size=10))
    def apply_many(self, events: list[Event]) -> None:
        self._apply(events)

    @rule(events=st.lists(EVENTS, min_size=1, max_size=3))
    def apply(self, events: list[Event]) -> None:
        self._apply(events)

    @precondition(lambda self: self.tracker.is_behind)
    @rule()
    def go_on(self) -> None:
        before = dict(self.tracker.pools)
        change = self.tracker.go_on()
        self._check(before, change)
        assert len(change.pools) <= 1

    @rule()
    def resume(self) -> None:
        before = dict(self.tracker.pools)
        self._check(before, self.tracker.resume())

    def _apply(self, events: list[Event]) -> None:
        before, was_behind = dict(self.tracker.pools), self.tracker.is_behind
        self.whole.apply_all(events)
        change = self.tracker.apply_all(events)
        self._check(before, change)
        assert len(change.pools - self._of_slices(events)) <= (0 if was_behind else 1)
        for key, view in self.whole.pools.items():
            self.seen.setdefault(key, []).append(_look_of(view))

    def _of_slices(self, events: list[Event]) -> set[PoolKey]:
        """The pools that slices are in, or were."""
        found: set[PoolKey] = set()
        for event in events:
            key = event if isinstance(event, Remove) else Remove.of(event.object)
            self.known[key] = None
            if key.kind == "ResourceSlice":
                found.update({self.pools[key.name]} if key.name in self.pools else ())
                if isinstance(event, Upsert):
                    self.pools[key.name] = pool_of(event.object)  # type: ignore[arg-type]  # it is of a slice
                    found.add(self.pools[key.name])
        return found

    def _check(self, before: dict[PoolKey, PoolView], change: Change) -> None:
        after = self.tracker.pools
        assert change.pools == {key for key in before.keys() | after.keys() if before.get(key) is not after.get(key)}

    @invariant()
    def every_pool_is_old_or_new(self) -> None:
        assert self.tracker.pools.keys() == self.whole.pools.keys()
        for key, view in self.tracker.pools.items():
            assert _look_of(view) in self.seen[key]

    @invariant()
    def nothing_is_left_when_it_is_not_behind(self) -> None:
        if not self.tracker.is_behind:
            assert show(self.tracker) == show(self.whole)
            self.seen = {key: [_look_of(view)] for key, view in self.whole.pools.items()}

    def teardown(self) -> None:
        """In the end both are the same, and nothing is left when everything is gone."""
        turns = 0
        while self.tracker.is_behind:
            self.tracker.go_on()
            turns += 1
        assert turns <= len(self.tracker.pools)
        assert show(self.tracker) == show(self.whole)
        assert len(self.tracker.problems) == len(self.whole.problems)
        self.tracker.apply_all(list(self.known))
        assert not self.tracker.pools
        assert not self.tracker.is_behind
        assert len(self.tracker._pools.columns) == 0


TurnsMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=15)
TestTurns = TurnsMachine.TestCase

"""The guard alone: what is counted, judged and let go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dray.cli.controller_options import GUARD
from dray.eviction.causes import Source
from dray.eviction.guard import Base, Guard
from dray.eviction.node_counts import NodeCounts
from dray.eviction.recent import SLACK, Departed, Recent
from dray.eviction.settings import Limit

WINDOW = 10.0


def make(count: int, recent: Recent[int] | None = None) -> Guard[int]:
    return Guard(Limit(count=count), recent, window=WINDOW)


def judged(guard: Guard[int], tick: float = 0.0, pods: int = 100) -> set[str]:
    return {source.group for source in guard.judge(tick, Base(pods)).sources}


def want(guard: Guard[int], pod: int, sources: Iterable[str], tick: float) -> None:
    guard.want(pod, map(Source, sources), tick)


def allows(guard: Guard[int], source: str | Source) -> bool:
    """Whether everybody may leave whom a source wants."""
    full = Source(source) if isinstance(source, str) else source
    pods = list(guard.pods(full))
    return bool(pods) and all(guard.allows(full, pod) for pod in pods)


def held(guard: Guard[int], source: str) -> bool:
    return guard.hold_of(Source(source)) is not None


def evict(guard: Guard[int], *pods: int, tick: float = 0.0) -> None:
    for pod in pods:
        guard.mark_going(pod, is_so=True)
        guard.want(pod, (), tick)


def test_nothing_is_allowed_before_it_is_judged() -> None:
    guard = make(2)
    want(guard, 1, ["t"], 0.0)
    assert not guard.is_sure
    assert not allows(guard, "t")
    assert judged(guard) == {"t"}
    assert guard.is_sure
    assert allows(guard, "t")


def test_one_more_is_too_many_and_one_less_few_again() -> None:
    guard = make(2)
    for pod in range(3):
        want(guard, pod, ["t"], 0.0)
    judged(guard)
    assert not allows(guard, "t")
    assert str(guard.hold_of(Source("t"))) == "3 pods of 100 would be evicted, more than 2"
    want(guard, 2, [], 0.0)
    assert judged(guard) == {"t"}
    assert allows(guard, "t")
    assert not held(guard, "t")


def test_many_sources_that_are_small_each_are_counted_together() -> None:
    guard = make(50)
    for source in range(20):
        for pod in range(8):
            want(guard, source * 8 + pod, [f"pool-{source:02}"], float(source))
        judged(guard, float(source))
    assert [source for source in range(20) if allows(guard, f"pool-{source:02}")] == [0, 1, 2, 3, 4, 5]
    assert (
        str(guard.hold_of(Source("pool-19")))
        == "8 pods of 100 would be evicted, 48 left or leave besides, more than 50"
    )
    evict(guard, *range(48))
    judged(guard, 20.0)
    assert sum(held(guard, f"pool-{source:02}") for source in range(20)) == 14


def test_a_pod_that_several_want_counts_once() -> None:
    guard = make(3)
    for pod in range(3):
        want(guard, pod, ["driver", "rule"], 0.0)
    judged(guard)
    assert allows(guard, "driver")
    assert allows(guard, "rule")


def test_a_large_source_that_is_held_does_not_stop_small_ones() -> None:
    guard = make(3)
    for pod in range(10):
        want(guard, pod, ["large"], 0.0)
    judged(guard)
    want(guard, 10, ["small"], 1.0)
    judged(guard, 1.0)
    assert allows(guard, "small")
    assert not allows(guard, "large")


def test_a_source_that_grows_too_large_stops() -> None:
    guard = make(3)
    for pod in range(3):
        want(guard, pod, ["old" if pod else "older"], 0.0)
    judged(guard)
    want(guard, 3, ["older"], 1.0)
    assert judged(guard, 1.0) == {"older"}
    assert allows(guard, "old")


def test_those_who_went_count_for_a_while() -> None:
    guard = make(2)
    want(guard, 0, ["t"], 0.0)
    want(guard, 1, ["t"], 0.0)
    judged(guard)
    guard.mark_going(1, is_so=True)
    guard.mark_going(1, is_so=False)  # put off
    want(guard, 1, [], 0.0)
    evict(guard, 0)
    want(guard, 2, ["other"], 9.0)
    want(guard, 3, ["another"], 9.0)
    judged(guard, 9.0)
    assert allows(guard, "other")
    assert not allows(guard, "another")
    want(guard, 4, ["later"], 10.5)
    judged(guard, 10.5)
    assert allows(guard, "later")


def test_time_alone_never_lets_go_of_what_is_held() -> None:
    guard = make(2)
    for pod in range(2):
        want(guard, pod, ["first"], 0.0)
    judged(guard)
    evict(guard, 0, 1)
    want(guard, 2, ["second"], 1.0)
    judged(guard, 1.0)
    assert held(guard, "second")
    for tick in (20.0, 1000.0, 1e6):
        want(guard, 9, ["passing"], tick)
        judged(guard, tick)
        want(guard, 9, [], tick)
        judged(guard, tick)
        assert held(guard, "second")
    want(guard, 2, [], 1e6)
    want(guard, 2, ["second"], 1e6)
    judged(guard, 1e6)
    assert allows(guard, "second")


def test_what_is_confirmed_is_neither_held_nor_counted() -> None:
    guard = make(1)
    for pod in range(5):
        want(guard, pod, ["t"], 0.0)
    judged(guard)
    guard.confirm(Source("t"), is_so=True, tick=0.0)
    assert judged(guard) == {"t"}
    evict(guard, 0, 1, 2)
    want(guard, 10, ["other"], 1.0)
    judged(guard, 1.0)
    assert allows(guard, "other")
    guard.confirm(Source("t"), is_so=False, tick=2.0)
    assert judged(guard, 2.0) == {"t"}
    assert held(guard, "t")


def test_a_source_that_is_another_one_now_is_judged_again() -> None:
    guard = make(1)
    want(guard, 0, ["t"], 0.0)
    judged(guard)
    guard.renew(Source("t"), 1.0)
    assert not allows(guard, "t")
    judged(guard, 1.0)
    assert allows(guard, "t")


def test_who_was_taken_counts_although_the_source_is_held_meanwhile() -> None:
    guard = make(2)
    want(guard, 0, ["t"], 0.0)
    judged(guard)
    guard.mark_going(0, is_so=True)
    for pod in (1, 2):
        want(guard, pod, ["t"], 0.0)
    judged(guard)
    assert not allows(guard, "t")
    want(guard, 5, ["a"], 0.0)
    want(guard, 6, ["b"], 0.0)
    judged(guard)
    assert (allows(guard, "a"), allows(guard, "b")) == (True, False)


def test_a_share_is_of_those_who_are_there_and_those_who_left() -> None:
    guard: Guard[int] = Guard(Limit(percent=50.0), window=WINDOW)
    for pod in range(5):
        want(guard, pod, ["t"], 0.0)
    judged(guard, pods=10)
    evict(guard, *range(5))
    want(guard, 5, ["t"], 1.0)
    judged(guard, 1.0, pods=5)
    assert held(guard, "t")
    judged(guard, 2.0, pods=7)
    assert allows(guard, "t")


def test_guards_that_share_a_list_count_each_others_evictions_each_pod_once() -> None:
    recent: Recent[int] = Recent()
    devices = make(2, recent)
    nodes: Guard[int] = Guard(Limit(count=2), recent, window=WINDOW, uses_devices=lambda pod: pod == 0)
    for guard in (devices, nodes):
        want(guard, 0, ["t"], 0.0)
        judged(guard)
        evict(guard, 0)
    assert len(recent) == 1
    want(nodes, 1, ["n"], 1.0)
    judged(nodes, 1.0)
    evict(nodes, 1, tick=1.0)
    want(nodes, 2, ["n"], 1.0)
    judged(nodes, 1.0)
    assert not allows(nodes, "n")
    want(devices, 3, ["d"], 1.0)
    judged(devices, 1.0)
    assert allows(devices, "d")  # pod 1 used none


def test_who_left_long_ago_is_forgotten_unless_somebody_is_held_since() -> None:
    recent: Recent[int] = Recent()
    for pod in range(2 * SLACK):
        recent.add(pod, float(pod), uses_devices=pod % 2 == 0)
    one, other = object(), object()
    recent.forget(other, 500.0)
    recent.forget(one, 2 * SLACK)
    assert len(recent) == 2 * SLACK
    recent.forget(other, 1500.0)
    assert len(recent) == 500
    assert recent.since(1600.0, only_devices=False) == 400
    assert recent.since(1600.0, only_devices=True) == 200


def test_all_pools_of_a_driver_are_held_together_and_confirmed_one_by_one() -> None:
    guard = make(3)
    pools = [Source("driver", f"pool-{number}") for number in range(4)]
    for pod, pool in enumerate(pools):
        guard.want(pod, [pool], 0.0)
        guard.judge(0.0, Base(100))
    assert [allows(guard, pool) for pool in pools] == [False] * 4
    assert guard.judge(0.0, Base(100)) == (set(), set())
    guard.confirm(pools[0], is_so=True, tick=1.0)
    assert guard.judge(1.0, Base(100)).sources == set(pools)
    assert [allows(guard, pool) for pool in pools] == [True] * 4
    guard.want(10, [pools[1]], 2.0)
    guard.judge(2.0, Base(100))
    assert [allows(guard, pool) for pool in pools] == [True, False, False, False]
    assert str(guard.hold_of(pools[1])) == "4 pods of 100 would be evicted, more than 3"
    assert guard.hold_of(pools[0]) is None


GUARDED = Limit.parse(GUARD)


@pytest.mark.parametrize(
    ("pods", "nodes", "for_devices", "for_nodes"),
    [
        (4, 4, 5, 5),
        (20, 4, 5, 10),  # a node of four, and two that fail
        (32, 4, 8, 16),
        (50, 10, 5, 25),
        (140, 20, 14, 50),
        (1_000, 125, 100, 100),
        (10_000, 1_250, 1_000, 1_000),
        (20, 1, 20, 20),  # all on one node, which can be served like any other
    ],
)
def test_how_many_may_leave_unless_something_else_is_said(
    pods: int, nodes: int, for_devices: int, for_nodes: int
) -> None:
    base = Base(pods, -(-pods // nodes))
    assert GUARDED.at_once(pods, base.nodes_worth) == for_devices
    assert GUARDED.at_once(pods, base._replace(is_of_nodes=True).nodes_worth) == for_nodes


def test_a_node_that_gets_emptier_is_served_to_the_end() -> None:
    """Its worth is what was on it when the first pod left."""
    guard: Guard[int] = Guard(GUARDED, window=WINDOW)
    for pod in range(8):
        want(guard, pod, ["t"], 0.0)
    for pod in range(8):
        guard.judge(pod, Base(20 - pod, 8 - pod if pod < 6 else 2))
        assert guard.allows(Source("t"), pod)
        evict(guard, pod, tick=pod)
    want(guard, 8, ["t"], 8.0)
    guard.judge(8.0, Base(12, 2))
    assert str(guard.hold_of(Source("t"))) == (
        "1 pod of 12 would be evicted, 8 left or leave besides, more than 8 (limit 50,10%,node,spare)"
    )
    guard.want(8, (), 9.0)
    later = 8.0 + 2 * WINDOW
    for pod in range(9, 15):
        want(guard, pod, ["u"], later)
    guard.judge(later, Base(12, 2))
    assert held(guard, "u"), "the node of that time counts no longer than those who left it"


def test_who_is_replaced_counts_for_an_hour_but_is_not_missing() -> None:
    """Else a small cluster could be served once an hour; and one that is never full again must not be emptied."""
    guard: Guard[int] = Guard(GUARDED, window=WINDOW)
    for pod in range(100):
        want(guard, pod, [f"t{pod}"], 0.0)
        guard.judge(0.0, Base(20, 1))
        if held(guard, f"t{pod}"):
            break
        evict(guard, pod)
        if pod % 7:
            guard.note_arrival()
    gone, missing = pod, -(-pod // 7)
    assert (gone, missing) == (29, 5)
    assert str(guard.hold_of(Source(f"t{pod}"))) == (
        "1 pod of 20 would be evicted, 5 left or leave besides, more than 5 (limit 50,10%,node,spare)"
    )
    guard.note_arrival()
    assert not guard.is_sure
    assert judged(guard, pods=20) == {f"t{pod}"}
    for pod in range(gone, 100):
        want(guard, pod, [f"t{pod}"], 0.0)
        guard.judge(0.0, Base(20, 1))
        if held(guard, f"t{pod}"):
            break
        evict(guard, pod)
        guard.note_arrival()
    assert pod == 50, "whoever comes, in an hour no more leave than that"


@given(st.lists(st.sampled_from(["leave", "leave with devices", "come", "come with devices"]), max_size=60))
def test_who_comes_takes_the_place_of_who_left_first(steps: list[str]) -> None:
    recent: Recent[int] = Recent()
    gone: dict[bool, list[tuple[float, bool]]] = {False: [], True: []}
    for tick, step in enumerate(steps):
        what, _, devices = step.partition(" ")
        if what == "leave":
            recent.add(tick, tick, uses_devices=bool(devices))
            for only in (False, True) if devices else (False,):
                gone[only].append((tick, False))
        elif what == "come":
            only = bool(devices)
            first = next((n for n, (_, is_replaced) in enumerate(gone[only]) if not is_replaced), None)
            assert recent.replace(only_devices=only) == (first is not None)
            if first is not None:
                gone[only][first] = (gone[only][first][0], True)
        for only in (False, True):
            for since in range(0, tick, 5):
                left = [is_replaced for moment, is_replaced in gone[only] if moment >= since]
                assert recent.unreplaced(since, only_devices=only) == left.count(False)
                assert recent.since(since, only_devices=only) == len(left)


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | st.sampled_from("abc")), max_size=60))
def test_the_fullest_node_is_known_without_counting(steps: list[tuple[int, str | None]]) -> None:
    counts, where = NodeCounts(), dict[str, str]()
    for number, node in steps:
        uid = str(number)
        where.pop(uid, None)
        if node is None:
            counts.drop(uid)
        else:
            counts.put(uid, node)
            where[uid] = node
        assert counts.fullest == max(Counter(where.values()).values(), default=0)


PODS, SOURCES = 12, [Source(group, place) for group in "abc" for place in "xy"]


@settings(max_examples=100)
@given(data=st.data(), limit=st.integers(0, 6))
def test_in_no_window_more_leave_unconfirmed_than_the_limit(data: st.DataObject, limit: int) -> None:
    guard = make(limit)
    tick, going = 0.0, set[int]()
    unconfirmed: dict[int, float] = {}
    wanted: dict[int, set[Source]] = {}
    left: set[int] = set()
    for _ in range(data.draw(st.integers(1, 60))):
        match data.draw(st.sampled_from(["want", "want", "go", "go", "leave", "stay", "confirm", "pass"])):
            case "want":
                pod = data.draw(st.integers(0, PODS - 1))
                if pod not in left and pod not in going:
                    wanted[pod] = data.draw(st.sets(st.sampled_from(SOURCES), max_size=2))
                    guard.want(pod, wanted[pod], tick)
            case "go":
                able = [
                    pod
                    for pod, sources in wanted.items()
                    if any(guard.allows(source, pod) for source in sources) and pod not in going
                ]
                if able:
                    pod = data.draw(st.sampled_from(able))
                    going.add(pod)
                    guard.mark_going(pod, is_so=True)
                    if not any(map(guard.is_confirmed, wanted[pod])):
                        unconfirmed[pod] = tick
            case "leave" if going:
                pod = data.draw(st.sampled_from(sorted(going)))
                going.discard(pod)
                left.add(pod)
                del wanted[pod]
                guard.want(pod, (), tick)
            case "stay" if going:
                pod = data.draw(st.sampled_from(sorted(going)))
                going.discard(pod)
                unconfirmed.pop(pod, None)
                guard.mark_going(pod, is_so=False)
            case "confirm":
                guard.confirm(data.draw(st.sampled_from(SOURCES)), is_so=data.draw(st.booleans()), tick=tick)
            case "pass":
                tick += data.draw(st.sampled_from([0.5, 3.0, WINDOW]))
        assert sum(moment > tick - WINDOW for moment in unconfirmed.values()) <= limit
        if data.draw(st.booleans()):
            continue
        for _ in range(3):
            guard.judge(tick, Base(PODS))
        assert guard.is_sure
        for source in SOURCES:
            pods = {pod for pod, sources in wanted.items() if source in sources}
            assert set(guard.pods(source)) == pods
            if pods:
                assert allows(guard, source) == (guard.hold_of(source) is None)
            else:
                assert guard.hold_of(source) is None


def test_who_has_left_is_on_the_way_no_more() -> None:
    recent: Recent[str] = Recent()
    for pod in ("gone", "going"):
        recent.begin(pod, uses_devices=True)
    recent.add("gone", 5.0, uses_devices=True)
    assert recent.past(70.0).departed == (Departed(5.0, 1, 1), Departed(70.0, 1, 1))
    recent.stay("going")
    assert recent.past(70.0).departed == (Departed(5.0, 1, 1),)


def test_a_guard_keeps_no_list_of_all_who_ever_left() -> None:
    recent: Recent[int] = Recent()
    guard = make(10, recent)
    for pod in range(3 * SLACK):
        recent.add(pod, float(pod), uses_devices=False)
        guard.judge(float(pod), Base(1000))
        assert len(recent) <= SLACK + 2 * WINDOW

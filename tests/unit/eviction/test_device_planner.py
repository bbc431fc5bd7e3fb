"""From events to evictions, without a server: what is computed, and that nothing else is."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controller_world import manifest, typed
from dray.api.conditions import with_condition
from dray.api.generated.core import Pod, PodCondition, PodSchedulingGroup, PodSpec, PodStatus
from dray.api.meta import Condition, ObjectMeta
from dray.api.references import ObjectName, ObjectRef
from dray.api.resource import DeviceTaintRule, ResourceClaim
from dray.api.times import Time
from dray.eviction import DevicePlanner, preview
from dray.eviction.claim_causes import ClaimCauses
from dray.eviction.rule_condition import plan_condition
from dray.eviction.settings import Limit
from dray.tracker import Remove, Tracker, Upsert
from eviction_objects import DRIVER, V1, device_slice, rule, taint, toleration
from work import lines_run

NOW = 2_000_000_000.0
WHEN = Time("2026-06-01T12:00:00Z")


def pod(number: int, **more: Any) -> Pod:
    meta = ObjectMeta(name=f"p{number}", namespace=f"ns{number % 3}", uid=f"uid-{number}")
    return Pod(metadata=meta, spec=PodSpec(node_name="node"), status=PodStatus(phase="Running", **more))


def put_user(planner: DevicePlanner, number: int, *, seconds: int | None = -1) -> None:
    """Pod and claim of a number, on the device of that number; -1 tolerates nothing."""
    planner.put_pod(pod(number))
    planner.put_claim(ObjectName(f"ns{number % 3}", f"c{number}"), claim_of(number, seconds=seconds))


def claim_of(number: int, *, seconds: int | None = -1) -> ResourceClaim:
    request = {"request": "gpu", "driver": DRIVER, "pool": "pool", "device": f"gpu-{number}"}
    tolerations = [] if seconds == -1 else [toleration(seconds)]
    status = {
        "allocation": {"devices": {"results": [{**request, "tolerations": tolerations}]}},
        "reservedFor": [{"resource": "pods", "name": f"p{number}", "uid": f"uid-{number}"}],
    }
    made: ResourceClaim = typed(manifest(V1, "ResourceClaim", f"c{number}", status=status))
    return made


@pytest.mark.req("SVS-16")
@pytest.mark.parametrize(
    ("in_result", "in_spec", "leaves"), [(True, False, False), (False, True, False), (False, False, True)]
)
def test_what_the_allocation_tolerates_counts_and_else_what_the_claim_says(
    in_result: bool, in_spec: bool, leaves: bool
) -> None:
    result = {"request": "gpu", "driver": DRIVER, "pool": "pool", "device": "gpu-0"}
    exactly = {"deviceClassName": "gpu", "tolerations": [toleration()] if in_spec else []}
    status = {
        "allocation": {"devices": {"results": [{**result, "tolerations": [toleration()] if in_result else []}]}},
        "reservedFor": [{"resource": "pods", "name": "p0", "uid": "uid-0"}],
    }
    planner = DevicePlanner()
    planner.note(Upsert(typed(device_slice("pool", "gpu-0"))))
    planner.put_pod(pod(0))
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    planner.put_claim(ObjectName("ns0", "c0"), typed(manifest(V1, "ResourceClaim", "c0", spec=spec, status=status)))
    planner.note(Upsert(make_rule()))
    finish(planner)
    assert evict(planner) == ({"p0"} if leaves else set())


def make_rule(name: str = "rule", uid: str = "u1", **more: Any) -> DeviceTaintRule:
    made: DeviceTaintRule = typed(rule(name, **{"timeAdded": "2026-06-01T12:00:00Z", **more}))
    return replace(made, metadata=replace(made.metadata, uid=uid, generation=1))


def planned(users: int, *, limit: int = 500) -> DevicePlanner:
    planner = DevicePlanner()
    planner.note(Upsert(typed(device_slice("pool", *(f"gpu-{number}" for number in range(users))))))
    for number in range(users):
        put_user(planner, number)
    finish(planner, limit)
    return planner


def finish(planner: DevicePlanner, limit: int = 500) -> list[ObjectRef]:
    cancelled = []
    while not planner.is_current:
        cancelled += planner.plan(0.0, limit)
    return cancelled


def evict(planner: DevicePlanner, tick: float = 0.0) -> set[str]:
    gone = set()
    for taken in planner.take(NOW, tick):
        planner.departures.evicted(taken.pod, planner.departures.causes(taken.pod))
        planner.put_pod(pod(int(taken.pod.name[1:])), is_gone=True)
        gone.add(taken.pod.name)
    return gone


@pytest.mark.req("5055-102", "5055-106")
@given(users=st.integers(1, 40), steps=st.integers(0, 30))
def test_counts_add_up_at_every_moment(users: int, steps: int) -> None:
    planner = planned(users)
    planner.note(Upsert(make_rule()))
    finish(planner)
    for step in range(steps):
        evict(planner, step * 0.1)
        progress = planner.progress("rule")
        assert progress.pending + progress.evicted == users
        assert progress.namespaces <= min(progress.pending, 3)


@pytest.mark.parametrize("generation", [1, 9])
def test_another_node_cannot_taint_the_devices_of_a_pool(generation: int) -> None:
    """A slice of node-2 in the pool of node-1, with the names of its devices: of no effect on who uses them."""
    planner = DevicePlanner()
    planner.note(Upsert(typed(device_slice("pool", "gpu-0"))))
    planner.put_pod(pod(0))
    key = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
    status = {
        "allocation": {
            "devices": {"results": [{"request": "gpu", "driver": DRIVER, "pool": "pool", "device": "gpu-0"}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [key]}]},
        },
        "reservedFor": [{"resource": "pods", "name": "p0", "uid": "uid-0"}],
    }
    planner.put_claim(ObjectName("ns0", "c0"), typed(manifest(V1, "ResourceClaim", "c0", status=status)))
    finish(planner)
    tainted = [{"name": "gpu-0", "taints": [taint(timeAdded="2026-06-01T12:00:00Z")]}]
    foreign = device_slice("pool", nodeName="node-2", devices=tainted)
    foreign["metadata"]["name"] = "foreign"
    foreign["spec"]["pool"] = {"name": "pool", "generation": generation, "resourceSliceCount": 1}
    planner.note(Upsert(typed(foreign)))
    finish(planner)
    assert evict(planner) == set()
    own = device_slice("pool", devices=tainted)
    planner.note(Upsert(typed(own)))
    finish(planner)
    assert evict(planner) == {"p0"}


@pytest.mark.req("5055-95")
def test_a_rule_that_is_gone_evicts_nobody_while_the_plan_is_on_its_way() -> None:
    planner = planned(50)
    planner.note(Upsert(make_rule(evictionsPerSecond=1000)))
    finish(planner)
    assert len(evict(planner)) == 10
    planner.note(Remove("DeviceTaintRule", "rule"))
    cancelled = planner.plan(0.0, 3)
    assert not planner.is_current
    assert evict(planner, 1.0) == set()
    cancelled += finish(planner, 3)
    assert len(set(cancelled)) == len(cancelled) == 40
    assert planner.wait(NOW, 2.0) is None


@pytest.mark.req("5055-83", "5055-91")
def test_the_first_leave_while_the_rest_is_still_being_planned() -> None:
    planner = planned(400)
    planner.note(Upsert(make_rule()))
    planner.plan(0.0, 20)
    assert len(evict(planner)) == 10
    assert not planner.is_current
    finish(planner, 20)
    assert planner.progress("rule").pending == 390


def test_a_pod_that_changes_in_what_does_not_matter_here_is_not_planned_again() -> None:
    planner = planned(3)
    planner.note(Upsert(make_rule()))
    finish(planner)
    marked = replace(pod(1), status=replace(pod(1).status, message="marked"))
    planner.put_pod(marked)
    assert planner.is_current
    planner.put_pod(marked, is_gone=True)
    planner.put_pod(marked)
    assert not planner.is_current


def test_a_pod_without_causes_to_leave_is_not_planned_at_all() -> None:
    planner = planned(3)
    finish(planner)
    planner.put_pod(pod(1), is_gone=True)
    planner.put_pod(pod(1))
    assert planner.is_current


@pytest.mark.req("5055-83")
def test_what_a_taint_says_besides_does_not_matter() -> None:
    planner = planned(3)
    planner.note(Upsert(make_rule(data={"ticket": [1, 2]}, description="broken")))
    finish(planner)
    assert len(evict(planner)) == 3


@pytest.mark.req("5055-80")
def test_a_rule_of_the_same_name_starts_from_zero() -> None:
    planner = planned(30)
    planner.note(Upsert(make_rule()))
    finish(planner)
    evict(planner)
    planner.note(Remove("DeviceTaintRule", "rule"))
    planner.note(Upsert(make_rule(uid="u2")))
    assert finish(planner) == []
    assert planner.progress("rule")[:3] == (20, 3, 0)
    assert len(evict(planner)) == 10


@pytest.mark.req("SVS-23", "5055-90")
def test_a_rule_on_published_and_unpublished_devices_has_one_rate() -> None:
    planner = planned(10)
    for number in range(10, 20):
        put_user(planner, number)
    planner.note(Upsert(make_rule()))
    finish(planner)
    assert planner.progress("rule").pending == 20
    assert len(evict(planner)) == 10


@pytest.mark.req("5055-105", "5055-104")
@given(
    seconds=st.lists(st.sampled_from([-1, None, 0, 60]), min_size=1, max_size=20),
    selected=st.sets(st.integers(0, 19)),
)
def test_the_preview_is_what_then_happens(seconds: list[int | None], selected: set[int]) -> None:
    planner = planned(len(seconds))
    for number, each in enumerate(seconds):
        put_user(planner, number, seconds=each)
    for number in selected:
        planner.note(Upsert(make_rule(f"r{number}", f"u{number}", effect="None", selector={"device": f"gpu-{number}"})))
    finish(planner)
    would = {one.name for number in selected for one in preview(planner, planner.rules[f"r{number}"]).pods}
    for number in selected:
        planner.note(Upsert(make_rule(f"r{number}", f"u{number}", selector={"device": f"gpu-{number}"})))
    finish(planner)
    assert {one for tick in range(9) for one in evict(planner, float(tick))} == would


def test_only_claims_on_devices_that_changed_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    planner = planned(50)
    looked: list[ObjectName] = []
    update_claim = ClaimCauses._update_claim

    def look(self: ClaimCauses, key: ObjectName) -> None:
        looked.append(key)
        update_claim(self, key)

    monkeypatch.setattr(ClaimCauses, "_update_claim", look)
    planner.note(Upsert(make_rule(selector={"device": "gpu-7"})))
    finish(planner)
    assert looked == [ObjectName("ns1", "c7")]


@pytest.mark.req("5055-101", "5055-103", "SVS-25")
@pytest.mark.parametrize(
    ("effect", "status", "reason"),
    [
        ("NoExecute", "True", "PodsPendingEviction"),
        ("NoSchedule", "False", "OtherEffect"),
        ("None", "False", "NoEffect"),
        ("Unheard", "False", "NoEffect"),
    ],
)
def test_the_condition_says_what_the_rule_does(effect: str, status: str, reason: str) -> None:
    planner = planned(3)
    made = make_rule(effect=effect)
    planner.note(Upsert(made))
    finish(planner)
    condition = plan_condition(planner, made, WHEN)
    assert condition is not None
    assert (condition.status, condition.reason, condition.observed_generation) == (status, reason, 1)
    foreign = Condition(type="Other", status="True", reason="R", message="", last_transition_time=WHEN)
    written = replace(made, status=replace(made.status, conditions=with_condition((foreign,), condition)))
    assert written.status.conditions == (foreign, condition)
    assert plan_condition(planner, written, Time("2026-06-01T13:00:00Z")) is None


@pytest.mark.req("5055-104", "5055-147")
def test_what_a_rule_without_effect_would_do_is_said_once_for_each_spec() -> None:
    planner = planned(3)
    made = make_rule(effect="None")
    planner.note(Upsert(made))
    finish(planner)
    told = plan_condition(planner, made, WHEN)
    assert told is not None
    written = replace(made, status=replace(made.status, conditions=(told,)))
    put_user(planner, 2_000)  # also after a restart, which knows nothing but what is written
    assert plan_condition(planner, written, WHEN) is None
    edited = replace(written, metadata=replace(written.metadata, generation=2))
    again = plan_condition(planner, edited, WHEN)
    assert again is not None
    assert again.message != told.message


@pytest.mark.req("implied-5")
def test_a_pod_that_finishes_is_no_longer_pending() -> None:
    planner = planned(1)
    planner.note(Upsert(make_rule()))
    finish(planner)
    done = pod(0)
    planner.put_pod(replace(done, status=replace(done.status, phase="Succeeded")))
    assert planner.progress("rule").pending == 0
    assert planner.take(NOW, 0.0) == []
    assert planner.active == 0


def test_a_guarded_rule_that_changes_evicts_nobody_before_it_is_judged_again() -> None:
    planner = DevicePlanner(max_evictions=Limit(count=20))
    planner.note(Upsert(typed(device_slice("pool", *(f"gpu-{number}" for number in range(20))))))
    for number in range(20):
        put_user(planner, number)
    planner.note(Upsert(make_rule()))
    finish(planner)
    assert len(evict(planner)) == 10
    changed = make_rule(evictionsPerSecond=1000)
    planner.note(Upsert(replace(changed, metadata=replace(changed.metadata, generation=2))))
    planner.plan(0.0, 1)
    assert not planner.is_current
    assert planner.take(NOW, 100.0) == []
    finish(planner)
    assert len(evict(planner, 101.0) | evict(planner, 102.0)) == 10


def test_what_is_too_much_is_held_while_the_preview_still_counts_it() -> None:
    planner = DevicePlanner(max_evictions=Limit(count=5))
    planner.note(Upsert(typed(device_slice("pool", *(f"gpu-{number}" for number in range(6))))))
    for number in range(6):
        put_user(planner, number)
    made = make_rule()
    planner.note(Upsert(made))
    finish(planner)
    assert planner.take(NOW, 0.0) == []
    assert planner.progress("rule").pending == 6
    assert planner.hold_of(made) is not None
    assert len(preview(planner, made).pods) == 6
    planner.note(Remove("DeviceTaintRule", "rule"))
    finish(planner)
    assert planner.hold_of(made) is None
    assert planner.progress("rule").pending == 0


def test_slices_are_taken_in_some_at_a_time_and_nobody_leaves_meanwhile() -> None:
    """Everything comes at once when a controller starts. The last slice may be the one that takes the taint away."""
    planner = DevicePlanner()
    for number in range(200):
        planner.note(Upsert(typed(device_slice(f"pool-{number}", "gpu-0", pool={"name": f"pool-{number}"}))))
    planner.note(Upsert(typed(device_slice("pool", *(f"gpu-{number}" for number in range(5))))))
    planner.note(Upsert(make_rule()))
    for number in range(5):
        put_user(planner, number)
    passes = 0
    while not planner.is_current:
        assert planner.take(1e12, 0.0) == []
        planner.plan(0.0)
        passes += 1
    assert passes >= 3
    assert {taken.pod.uid for taken in planner.take(1e12, 0.0)} == {f"uid-{number}" for number in range(5)}


@pytest.mark.parametrize("first", ["group", "leaving", "other"])
def test_a_group_goes_on_leaving_as_a_whole_after_a_restart(first: str) -> None:
    """The pod on the tainted device is on its way out; whoever starts anew finds that the others have to follow."""
    spec = {"disruptionMode": {"all": {}}, "schedulingPolicy": {"gang": {"minCount": 2}}}
    group = typed(manifest("scheduling.k8s.io/v1beta1", "PodGroup", "g", spec=spec))
    condition = PodCondition(type="DisruptionTarget", status="True")
    leaving = member(replace(pod(0), status=PodStatus(phase="Running", conditions=(condition,))))
    leaving = replace(leaving, metadata=replace(leaving.metadata, deletion_timestamp=WHEN))
    planner = DevicePlanner()
    planner.note(Upsert(typed(device_slice("pool", "gpu-0", "gpu-3"))))
    steps: dict[str, Callable[[], object]] = {
        "group": lambda: planner.put_group(ObjectName("ns0", "g"), group),
        "leaving": lambda: planner.put_pod(leaving),
        "other": lambda: planner.put_pod(member(pod(3))),
    }
    for step in (first, *(name for name in steps if name != first)):
        steps[step]()
    planner.put_claim(ObjectName("ns0", "c0"), claim_of(0))
    planner.note(Upsert(make_rule(selector={"device": "gpu-0"})))
    finish(planner)
    assert evict(planner) == {"p3"}


def member(of: Pod) -> Pod:
    return replace(of, spec=replace(of.spec, scheduling_group=PodSchedulingGroup(pod_group_name="g")))


def of_many_pools(pools: int) -> DevicePlanner:
    """Each has eight devices, and a pod on one of them. Rules take effect on one pool at a time."""
    planner = DevicePlanner(Tracker(at_once=8))
    for number in range(pools):
        planner.note(Upsert(typed(device_slice(f"pool-{number}", *(f"gpu-{each}" for each in range(8))))))
        planner.put_pod(pod(number))
        planner.put_claim(ObjectName(f"ns{number % 3}", f"c{number}"), of_pool(number))
    finish(planner)
    return planner


def of_pool(number: int) -> ResourceClaim:
    """The claim of a number, on a device in the pool of that number."""
    claim = claim_of(number)
    allocation = claim.status.allocation
    assert allocation is not None
    result = replace(allocation.devices.results[0], pool=f"pool-{number}", device="gpu-3")
    allocation = replace(allocation, devices=replace(allocation.devices, results=(result,)))
    return replace(claim, status=replace(claim.status, allocation=allocation))


def test_nobody_leaves_before_a_rule_has_taken_effect_on_all_devices() -> None:
    planner = of_many_pools(12)
    planner.note(Upsert(make_rule(evictionsPerSecond=1000)))
    passes = 0
    while not planner.is_current:
        assert evict(planner) == set()
        planner.plan(0.0)
        passes += 1
    assert passes >= 12
    assert planner.progress("rule").pending == 12
    assert len(evict(planner)) == 10


@pytest.mark.req("5055-95")
def test_a_rule_that_is_taken_away_while_it_takes_effect_evicts_nobody() -> None:
    planner = of_many_pools(12)
    planner.note(Upsert(make_rule(evictionsPerSecond=1000)))
    for _ in range(4):
        planner.plan(0.0)
    planner.note(Remove("DeviceTaintRule", "rule"))
    while not planner.is_current:
        assert evict(planner) == set()
        planner.plan(0.0)
    assert evict(planner, 1.0) == set()
    assert planner.pending == 0


@pytest.mark.req("5055-95")
@pytest.mark.parametrize("effect", ["", "None"])
def test_a_rule_that_is_gone_or_changed_evicts_nobody_while_devices_still_have_its_taint(effect: str) -> None:
    """Also nobody whose claim is looked at again meanwhile."""
    planner = of_many_pools(12)
    planner.note(Upsert(make_rule(evictionsPerSecond=1000)))
    finish(planner)
    planner.note(Upsert(make_rule(effect=effect)) if effect else Remove("DeviceTaintRule", "rule"))
    planner.plan(0.0)
    while not planner.is_current:
        for number in range(12):
            planner.put_pod(pod(number, message="again"))
            planner.put_claim(ObjectName(f"ns{number % 3}", f"c{number}"), of_pool(number))
        assert evict(planner, 5.0) == set()
        planner.plan(5.0)
    assert evict(planner, 5.0) == set()
    assert planner.pending == 0


def test_what_the_guard_holds_by_now_does_not_leave_while_others_are_told() -> None:
    """Also not one that was taken, and not for a rule that may take others."""
    planner = DevicePlanner(max_evictions=Limit(count=30))
    planner.note(Upsert(typed(device_slice("pool", *(f"gpu-{number}" for number in range(40))))))
    for number in range(30):
        put_user(planner, number)
    planner.note(Upsert(make_rule(evictionsPerSecond=1)))
    finish(planner)
    taken = planner.take(NOW, 0.0)
    assert len(taken) == 10
    put_user(planner, 30)
    planner.plan(1.0, 5)
    assert not planner.is_current
    assert planner.take(NOW, 100.0) == []
    assert not any(planner.must_leave(each.pod) for each in taken)
    finish(planner)
    assert planner.take(NOW, 100.0) == []


def test_a_pod_does_not_leave_for_a_slow_rule_as_fast_as_for_one_that_is_gone() -> None:
    planner = planned(40)
    planner.note(Upsert(make_rule("fast", "u1", evictionsPerSecond=1000)))
    planner.note(Upsert(make_rule("slow", "u2", evictionsPerSecond=1)))
    finish(planner)
    assert len(planner.take(NOW, 0.0)) == 20  # ten at once for each
    planner.note(Remove("DeviceTaintRule", "fast"))
    planner.plan(0.0, 5)
    assert not planner.is_current
    assert len(planner.take(NOW, 1.0)) <= 1


def test_what_is_held_of_pools_is_told_when_it_changes() -> None:
    """Each pod that comes or changes has the planner work; thousands of pools may be held meanwhile."""
    planner = DevicePlanner(max_evictions=Limit(count=1))
    tainted = [{"name": f"gpu-{number}", "taints": [taint()]} for number in range(3)]
    planner.note(Upsert(typed(device_slice("pool", *tainted))))
    for number in range(3):
        put_user(planner, number)
    finish(planner)
    held = planner.take_held_pools()
    assert held is not None
    assert [hold.pods for _, hold in held.values()] == [3]
    planner.put_pod(pod(3))
    planner.put_pod(pod(2, message="again"))
    finish(planner)
    assert planner.take_held_pools() is None
    planner.put_pod(pod(2), is_gone=True)
    finish(planner)
    held = planner.take_held_pools()
    assert held is not None
    assert [hold.pods for _, hold in held.values()] == [2]
    planner.put_pod(pod(1), is_gone=True)
    finish(planner)
    assert planner.take_held_pools() == {}


@pytest.mark.parametrize("what", ["comes", "is confirmed", "goes"])
def test_no_turn_is_longer_for_a_rule_that_concerns_more_pods(what: str) -> None:
    def longest(pods: int) -> int:
        planner = DevicePlanner(max_evictions=Limit(percent=100.0 if what == "goes" else 10.0))
        rule = make_rule(evictionsPerSecond=1_000_000)
        planner.note(Upsert(typed(device_slice("pool", *(f"gpu-{number}" for number in range(pods))))))
        for number in range(pods):
            put_user(planner, number, seconds=30)
        if what != "comes":
            planner.note(Upsert(rule))
            finish(planner)
        if what == "comes":
            planner.note(Upsert(rule))
        elif what == "is confirmed":
            confirmed = replace(rule.metadata, annotations={"dray.dev/confirm-evictions": "1"})
            planner.note(Upsert(replace(rule, metadata=confirmed)))
        else:
            planner.note(Remove("DeviceTaintRule", "rule"))
        if what != "is confirmed":
            planner.plan(0.0, 20)  # devices of one pool are looked at together
        turns: list[int] = []
        while not planner.is_current or turns[-1] > 100:
            turns.append(lines_run(lambda: planner.plan(0.0, 20)).total())
            turns.append(lines_run(lambda: planner.take(NOW, 0.0)).total())
            turns.append(lines_run(lambda: planner.wait(NOW, 0.0)).total())
        return max(turns)

    assert longest(1_600) < 1.2 * longest(400)

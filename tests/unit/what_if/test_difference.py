"""What a change would do: devices, claims, evictions with their times, new places, pending claims."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import builders
import dray
from dray.api.times import Time
from dray.snapshot import Snapshot
from dray.what_if.deletions import delete
from dray.what_if.difference import Difference, compare
from snapshot_objects import Manifest, claim, device, device_class, held, node, patch, pod, resource_slice, rule

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
KEY = {"key": "example.com/bad", "operator": "Exists"}


def cluster(*objects: Manifest, nodes: int = 2, devices: int = 2) -> Snapshot:
    slices = [
        resource_slice(f"node-{node}", *(device(f"gpu-{number}") for number in range(devices)))
        for node in range(1, nodes + 1)
    ]
    return dray.load(device_class(), *slices, *objects)


def after(base: Snapshot, *objects: Manifest, now: datetime = NOW) -> Difference:
    return compare(base, base.with_objects(*objects), now)


def seconds(difference: Difference) -> list[float]:
    """How long after NOW each pod leaves."""
    return [(Time.parse(pod.expected).datetime() - NOW).total_seconds() for pod in difference.evictions]


def test_devices_that_a_rule_taints() -> None:
    difference = after(cluster(), rule("r", "NoSchedule", pool="node-1"))
    assert [(change.pool, change.device, change.change) for change in difference.devices] == [
        ("node-1", "gpu-0", "unusable"),
        ("node-1", "gpu-1", "unusable"),
    ]
    assert difference.devices[0].reasons == ("tainted example.com/bad:NoSchedule by rule r",)
    assert [(change.object, change.change) for change in difference.objects] == [("DeviceTaintRule r", "added")]
    assert not difference.is_disruptive


def test_and_gives_back_when_it_goes() -> None:
    base = cluster(rule("r", pool="node-1"), held(claim("a"), "node-1", "gpu-0", pods=("p",)), claim("x", count=2))
    difference = compare(base, base.without("devicetaintrule/r"), NOW)
    assert {change.change for change in difference.devices} == {"usable"}
    assert difference.spared == ("ml/p",)
    assert not difference.is_disruptive
    assert "1 pod may stay: ml/p." in str(difference)


A = 'device.attributes["gpu.example.com"].a == 1'


def test_selectors_that_fail_on_devices_are_told_with_what_makes_them_fail() -> None:
    """A rule that is added, one that is there and whose devices or class change; not one that failed before."""
    fails: Manifest = {"selectors": builders.cel(A)}
    base = cluster(resource_slice("node-3", builders.device("gpu-0", {"a": 1})), rule("old", **fails))
    failing = "DeviceTaintRule new passes over 4 devices: selector #0: runtime error: "
    (note,) = after(base, rule("new", "NoSchedule", **fails)).notes
    assert note.startswith(failing)
    assert f"Note: {failing}" in " ".join(str(after(base, rule("new", "NoSchedule", **fails))).split())
    assert after(base, rule("other", "NoSchedule", pool="node-1")).notes == ()
    (note,) = after(base, resource_slice("node-3", device("gpu-0"))).notes
    assert note.startswith("DeviceTaintRule old passes over 5 devices: ")
    by_class = cluster(rule("r", deviceClassName="gpu"), rule("s", deviceClassName="gpu"))
    told = after(by_class, device_class(A)).notes
    assert [note.partition(":")[0] for note in told] == [
        f"DeviceTaintRule {name} passes over 4 devices" for name in "rs"
    ]
    (note, _) = after(by_class, device_class("device.nothing")).notes
    assert note.startswith(
        "DeviceTaintRule r selects no device at all: device class gpu: selector #0: compilation failed"
    )
    many = cluster(*(rule(f"r{number}", deviceClassName="gpu") for number in range(8)))
    told = after(many, device_class(A)).notes
    assert told[5:] == ("selectors of DeviceTaintRule r5, DeviceTaintRule r6, DeviceTaintRule r7 fail on devices, too",)


def test_devices_of_several_pools_of_a_node_are_told_apart() -> None:
    second = builders.resource_slice("more", device("gpu-0"), device("gpu-1"), pool="more")
    told = str(after(cluster(second, nodes=1), rule("r", "NoSchedule", driver="gpu.example.com")))
    assert "node-1  more/gpu-0 … node-1/gpu-1  tainted" in told
    (row,) = [line for line in str(after(cluster(), rule("r", pool="node-1"))).splitlines() if "node-1  gpu" in line]
    assert row.split()[:2] == ["node-1", "gpu-0,"]


def test_devices_that_come_and_go() -> None:
    base = cluster()
    gone = compare(base, base.without("resourceslice/node-1-slice"), NOW)
    new = compare(base.without("resourceslice/node-1-slice"), base, NOW)
    assert [change.change for change in gone.devices] == ["removed"] * 2
    assert [change.change for change in new.devices] == ["added"] * 2
    assert compare(base, dray.load(device_class()), NOW).devices[0].change == "removed"


def test_a_patch_changes_values_and_classes() -> None:
    base = cluster().with_objects(device_class('device.attributes["gpu.example.com"].model == "H100"'))
    difference = after(base, patch("p", {"gpu.example.com/model": {"string": "X"}}, pool="node-1", device="gpu-1"))
    (change,) = difference.devices
    assert (change.change, change.reasons) == ("unusable", ("no device class matches any more",))
    assert (change.classes_lost, change.patches) == (("gpu",), ("p",))
    assert change.to_dict()["values"] == {"gpu.example.com/model": {"before": "H100", "after": "X"}}
    assert "model H100 → X; patched by p; no longer of class gpu" in str(difference)


def shared(amount: str) -> Manifest:
    """A device that is given away in shares, with so much to give."""
    return device("gpu-0", memory=amount, allowMultipleAllocations=True)


def share(name: str, amount: str) -> Manifest:
    """A claim that has a share of it."""
    made = held(claim(name), "node-1", "gpu-0")
    (result,) = made["status"]["allocation"]["devices"]["results"]
    result |= {"shareID": "11111111-2222-4333-8444-555555555555", "consumedCapacity": {"memory": amount}}
    return made


def test_devices_of_which_holders_leave_nothing_are_not_usable() -> None:
    """Whether a change leaves something of them counts, not only whether anything taints them."""
    used_up = "capacity used up (ml/x)"
    base = dray.load(node("node-1"), device_class(), resource_slice("node-1", shared("80Gi")), share("x", "60Gi"))
    (less,) = after(base, resource_slice("node-1", shared("60Gi"))).devices
    assert (less.change, less.reasons) == ("unusable", (used_up,))
    full = dray.load(
        *(node("node-1"), device_class(), resource_slice("node-1", shared("60Gi"))),
        *(share("x", "60Gi"), rule("off", "NoSchedule", pool="node-1")),
    )
    (untainted,) = compare(full, full.without("devicetaintrule/off"), now=NOW).devices
    untold = "no longer tainted example.com/bad:NoSchedule by rule off"
    assert (untainted.change, untainted.reasons) == ("changed", (untold, used_up))


def test_a_class_that_selects_other_devices() -> None:
    narrowed = device_class('device.driver == "nothing.example.com"')
    assert {change.change for change in after(cluster(), narrowed).devices} == {"unusable"}


@pytest.mark.req("4381-101", "4381-102")
def test_claims_keep_devices_that_are_gone() -> None:
    base = cluster(held(claim("a"), "node-1", "gpu-0", pods=("p",)))
    difference = compare(base, base.without("resourceslice/node-1-slice"), NOW)
    (change,) = difference.claims
    assert (change.claim, change.gone, change.pods) == ("ml/a", True, ("ml/p",))
    assert not difference.evictions
    assert difference.is_disruptive


def test_a_noexecute_rule_evicts_the_pods_of_the_claims_at_once() -> None:
    base = cluster(
        held(claim("a"), "node-1", "gpu-0", pods=("p", "q")), held(claim("b"), "node-2", "gpu-0", pods=("z",))
    )
    difference = after(base, rule("r", pool="node-1"))
    assert [(eviction.pod, eviction.rules) for eviction in difference.evictions] == [("ml/p", ("r",)), ("ml/q", ("r",))]
    assert seconds(difference) == [0, 0]
    assert difference.is_disruptive


@pytest.mark.parametrize(
    ("tolerations", "waits"),
    [
        ([], [0]),
        ([{**KEY, "effect": "NoExecute"}], []),
        ([{**KEY, "effect": "NoExecute", "tolerationSeconds": 300}], [300]),
        ([{**KEY, "effect": "NoExecute", "tolerationSeconds": -5}], [0]),
        ([{**KEY, "effect": "NoSchedule"}], [0]),
        ([KEY], []),
    ],
)
def test_tolerations_decide_when(tolerations: list[Manifest], waits: list[float]) -> None:
    base = cluster(held(claim("a", tolerations=tolerations), "node-1", "gpu-0", pods=("p",)))
    difference = after(base, rule("r", pool="node-1"))
    assert seconds(difference) == waits
    assert difference.protected == (0 if waits else 1)


def test_tolerations_of_the_request_count_if_the_allocation_has_none() -> None:
    tolerant = claim("a", tolerations=[{**KEY, "effect": "NoExecute"}])
    allocated = held(tolerant, "node-1", "gpu-0", pods=("p",))
    del allocated["status"]["allocation"]["devices"]["results"][0]["tolerations"]
    assert not after(cluster(allocated), rule("r", pool="node-1")).evictions


def test_time_that_has_passed_since_the_taint_counts() -> None:
    tolerant = claim("a", tolerations=[{**KEY, "effect": "NoExecute", "tolerationSeconds": 60}])
    base = cluster(held(tolerant, "node-1", "gpu-0", pods=("p",)))
    difference = after(base, rule("r", pool="node-1"), now=NOW + timedelta(seconds=50))
    assert seconds(difference) == [60]


def test_the_rate_and_the_burst() -> None:
    claims = [held(claim(f"c{n:02}"), "node-1", f"gpu-{n}", pods=(f"p{n:02}",)) for n in range(30)]
    base = cluster(*claims, nodes=1, devices=30)
    slow = after(base, rule("r", rate=5))
    assert seconds(slow) == [0] * 10 + [(n - 10) // 5 for n in range(11, 31)]
    assert slow.finished == "2026-06-01T12:00:04Z"
    assert seconds(after(base, rule("r")))[-1] == 2
    both = after(base, rule("r", rate=1), rule("s", rate=1000))
    assert seconds(both)[-1] == 0


def test_pods_that_are_finished_leaving_or_others_are_not_evicted() -> None:
    leaving = pod("q")
    leaving["metadata"]["deletionTimestamp"] = "2026-06-01T11:00:00Z"
    other = pod("r")
    other["metadata"]["uid"] = "another"
    base = cluster(
        held(claim("a"), "node-1", "gpu-0", pods=("p", "q", "r", "s")),
        pod("p", phase="Succeeded"),
        leaving,
        other,
        pod("s"),
    )
    assert [eviction.pod for eviction in after(base, rule("r", pool="node-1")).evictions] == ["ml/s"]


def test_a_rule_by_name_evicts_from_a_device_that_is_not_published() -> None:
    base = cluster(held(claim("a"), "node-9", "gpu-0", pods=("p",)))
    assert [eviction.pod for eviction in after(base, rule("r", pool="node-9")).evictions] == ["ml/p"]
    by_cel = rule("r", selectors=[{"cel": {"expression": "true"}}])
    assert not after(base, by_cel).evictions


def test_a_taint_of_the_driver_evicts_too() -> None:
    bad = device("gpu-0", taints=[{"key": "hot", "effect": "NoExecute", "timeAdded": "2026-06-01T11:59:00Z"}])
    base = cluster(held(claim("a"), "node-1", "gpu-0", pods=("p",)))
    difference = after(base, resource_slice("node-1", bad, device("gpu-1")))
    assert [(eviction.pod, eviction.causes) for eviction in difference.evictions] == [("ml/p", ("hot:NoExecute",))]


@pytest.mark.req("5055-105")
@pytest.mark.parametrize("effect", ["None", "NoSchedule"])
def test_a_rule_without_effect_says_what_it_would_do(effect: str) -> None:
    base = cluster(held(claim("a"), "node-1", "gpu-0", pods=("p", "q")), claim("x"))
    difference = after(base, rule("r", effect, pool="node-1"))
    assert not difference.evictions
    assert difference.rules[0].to_dict() == {
        "rule": "r", "effect": effect, "devices": 2, "allocated": 1, "pods": 2, "namespaces": 1,
    }  # fmt: skip
    assert "selects 2 devices, 1 of them allocated" in str(difference)
    assert "with NoExecute it would evict 2 pods in 1 namespace" in str(difference)


def test_the_simulation_counts_what_noexecute_evicts() -> None:
    tolerant = held(claim("b", tolerations=[{**KEY, "effect": "NoExecute"}]), "node-1", "gpu-1", pods=("t",))
    base = cluster(held(claim("a"), "node-1", "gpu-0", pods=("p",)), tolerant)
    simulated = after(base, rule("r", "None", pool="node-1")).rules[0].pods
    assert simulated == len(after(base, rule("r", pool="node-1")).evictions) == 1


def test_pods_move_one_after_the_other() -> None:
    claims = [held(claim(name), "node-1", f"gpu-{n}", pods=(f"p-{name}",)) for n, name in enumerate("ab")]
    base = cluster(*claims, held(claim("c"), "node-2", "gpu-0"))
    difference = after(base, rule("r", pool="node-1"))
    assert [(eviction.pod, eviction.fits, eviction.fits_on) for eviction in difference.evictions] == [
        ("ml/p-a", True, "node-2"),
        ("ml/p-b", False, None),
    ]
    assert "Note: ml/p-b fits nowhere else (0/2 nodes are available: 2 cannot allocate all claims)." in str(difference)


def test_a_device_that_has_to_be_left_again_is_not_elsewhere() -> None:
    tolerant = claim("a", tolerations=[{**KEY, "effect": "NoExecute", "tolerationSeconds": 60}])
    base = cluster(held(tolerant, "node-1", "gpu-0", pods=("p",)))
    (eviction,) = after(base, rule("r", pool="node-1")).evictions
    assert eviction.fits_on == "node-2"


def test_a_claim_that_others_go_on_using_stays_where_it_is() -> None:
    shared = held(claim("nic"), "node-2", "gpu-1", pods=("p", "stays"))
    base = cluster(held(claim("a"), "node-1", "gpu-0", pods=("p",)), shared)
    (eviction,) = after(base, rule("r", pool="node-1")).evictions
    assert (eviction.claims, eviction.fits) == (("ml/a", "ml/nic"), True)


def test_pending_claims_that_fit_now_or_no_longer() -> None:
    base = cluster(claim("x"), claim("y", count=3))
    worse = after(base, rule("r", driver="gpu.example.com"), claim("new"))
    assert [(change.claim, change.fitted_before, change.fits) for change in worse.pending] == [
        ("ml/x", True, False),
        ("ml/new", None, False),
    ]
    assert worse.is_disruptive
    assert "Pending claims, each as if the others did not wait:" in str(worse)
    better = after(base, resource_slice("node-3", *(device(f"gpu-{n}") for n in range(3))))
    assert [(change.claim, change.node) for change in better.pending] == [("ml/y", "node-3")]
    assert "Pending claims:" in str(better)
    assert not better.is_disruptive


def test_that_nothing_is_known_of_nodes_is_said_where_somebody_is_judged_by_them() -> None:
    base = cluster(held(claim("a"), "node-1", "gpu-0", pods=("p",)))
    unlooked = "no Node node-1, node-2 was given: room, labels, taints and state were not looked at"
    assert unlooked in after(base, rule("r", pool="node-1")).notes
    assert after(base, rule("r", "NoSchedule", pool="node-1")).notes == ()
    known = base.with_objects(node("node-1"), node("node-2"))
    assert unlooked not in after(known, rule("r", pool="node-1")).notes


def test_nothing_different() -> None:
    base = cluster(claim("x"))
    difference = compare(base, base, NOW)
    assert difference.to_dict() == {"now": "2026-06-01T12:00:00Z"}
    assert str(difference) == "What if nothing is different?\n\nNo device, claim or pod would notice."


def test_for_programs_and_for_narrow_terminals() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "trainer", "uid": "u", "controller": True}
    owned = pod("trainer-0")
    owned["metadata"]["ownerReferences"] = [owner]
    base = cluster(held(claim("a"), "node-1", "gpu-0", pods=("trainer-0",)), owned)
    difference = after(base, rule("r", pool="node-1"))
    plain: dict[str, Any] = json.loads(json.dumps(difference.to_dict()))
    assert plain["evictions"][0]["owner"] == "Job ml/trainer"
    assert plain["evictions"][0]["node"] == "node-1"
    assert "Job ml/trainer" in str(difference)
    assert max(map(len, difference.text(60).splitlines())) <= 60


def test_a_pod_that_would_leave_anyhow_and_has_to_leave_earlier_is_told() -> None:
    patience = [{"key": "slow", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]
    used = held(claim("a", tolerations=patience), "node-1", "gpu-0", pods=("p",))
    slow = builders.taint("slow", "NoExecute", timeAdded="2026-06-01T12:00:00Z")
    first = builders.taint_rule("first", {"pool": "node-1"}, slow)
    base = dray.load(device_class(), resource_slice("node-1", device("gpu-0")), used, pod("p"), first)
    assert not compare(base, base.with_objects(node("node-2")), NOW).evictions
    (eviction,) = compare(base, base.with_objects(rule("second", pool="node-1")), NOW).evictions
    assert (eviction.pod, eviction.due) == ("ml/p", "2026-06-01T12:00:00Z")
    later = {**slow, "timeAdded": "2026-06-01T12:10:00Z"}
    assert not compare(base, base.with_objects(builders.taint_rule("third", {"pool": "node-1"}, later)), NOW).evictions


@pytest.mark.parametrize(("policy", "victims"), [("PreemptLowerPriority", ("ml/p",)), ("Never", ())])
def test_pods_that_would_have_to_go_for_a_new_one_are_told(policy: str, victims: tuple[str, ...]) -> None:
    used = held(claim("a"), "node-1", "gpu-0", pods=("p",))
    high = builders.manifest("scheduling.k8s.io/v1", "PriorityClass", "high", "", value=10, preemptionPolicy=policy)
    there = pod("p")
    there["spec"]["resourceClaims"] = [builders.pod_claim("gpu", claim="a")]
    base = dray.load(device_class(), resource_slice("node-1", device("gpu-0")), node("node-1"), used, there, high)
    boss = pod("boss", "", phase="Pending")
    boss["spec"] |= {"priorityClassName": "high", "resourceClaims": [builders.pod_claim("gpu", claim="b")]}
    difference = compare(base, base.with_objects(boss, claim("b")), NOW)
    (change,) = [one for one in difference.pending if one.pod]
    assert (change.fits, change.victims, difference.is_disruptive) == (False, victims, bool(victims))
    assert ("makes pods of lower priority go: ml/p" in str(difference)) == bool(victims)


def test_who_is_deleted_does_not_stay_and_a_claim_that_is_let_go_of_is_not_new() -> None:
    tolerant = claim("a", tolerations=[{**KEY, "effect": "NoExecute", "tolerationSeconds": 600}])
    used = held(tolerant, "node-1", "gpu-0", pods=("p",))
    base = cluster(node("node-1"), node("node-2"), used, pod("p"), rule("r", pool="node-1"))
    gone = compare(base, delete(base, ["pod/ml/p"], NOW), NOW)
    assert gone.spared == ()
    assert "may stay" not in str(gone)
    ((change,), (row,)) = gone.pending, [line for line in str(gone).splitlines() if line.startswith("  ml/a")]
    assert (change.claim, change.fitted_before, change.is_new, change.was_allocated) == ("ml/a", None, False, True)
    assert row.split()[1:3] == ["was", "allocated"]
    assert compare(base, base.without("devicetaintrule/r"), NOW).spared == ("ml/p",)
    (new,) = after(base, claim("b")).pending
    assert new.is_new
    assert "  ml/b   new     fits on" in str(after(base, claim("b")))


def test_a_pod_that_could_not_be_judged_is_not_new() -> None:
    waits = pod("waits", "", phase="Pending")
    other = {**waits, "spec": {**waits["spec"], "schedulerName": "another"}}
    base = cluster(node("node-1"), other, claim("x"))
    (change,) = [one for one in after(base, waits).pending if one.pod]
    assert (change.fits, change.fitted_before, change.is_new) == (True, None, False)
    assert "  ml/waits  not known  fits on node-1" in str(after(base, waits))


def test_tolerations_are_spoken_of_where_they_help() -> None:
    base = cluster(node("node-1"), node("node-2"))
    tainted = after(base, rule("r", "NoSchedule", pool="node-1"))
    assert "2 devices unusable for claims without toleration:" in str(tainted)
    assert all(change.is_tolerable for change in tainted.devices)
    gone = compare(base, base.without("node/node-1"), NOW)
    assert "2 devices unusable:" in str(gone)
    assert not any(change.is_tolerable for change in gone.devices)

"""Who a taint would hit: found by what evicts, with owners, budgets and new places."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import builders
import dray
from dray.api.generated.core import Node, Pod, Taint
from dray.api.node_annotations import Ration
from dray.api.references import ObjectName, ObjectRef
from dray.api.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from dray.api.times import Time
from dray.eviction import DevicePlanner
from dray.eviction.drain import DrainTerms
from dray.snapshot import Snapshot
from dray.snapshot.device_selection import DeviceSelection, resolve
from dray.snapshot.taint_rules import TaintRequest, as_stored, build_rules
from dray.tracker import Upsert
from dray.what_if.drain_preview import paced, tell_broken
from dray.what_if.evictions import forecast
from dray.what_if.taint_preview import TaintPreview, preview_nodes, preview_rules
from dray.what_if.taint_preview_text import tell
from snapshot_objects import Manifest, claim, device, device_class, held, pod, resource_slice, rule

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
TOLERATION = {"key": "example.com/bad", "operator": "Exists", "effect": "NoExecute"}


def node(name: str, **spec: Any) -> Manifest:
    return builders.node(name, labels={"name": name}, **spec)


def budget(name: str, allowed: int, **labels: str) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed},
    }


def worker(name: str, node_name: str = "node-1", owner: str = "", **spec: Any) -> Manifest:
    made = pod(name, node_name, phase="Running")
    made["metadata"]["labels"] = {"app": owner or name}
    if owner:
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": "u", "controller": True}
        made["metadata"]["ownerReferences"] = [reference]
    made["spec"] |= spec
    return made


def cluster(*objects: Manifest, nodes: int = 3, devices: int = 2) -> Snapshot:
    slices = [
        resource_slice(f"node-{number}", *(device(f"gpu-{one}") for one in range(devices)))
        for number in range(1, nodes + 1)
    ]
    made = {one["metadata"]["name"]: one for one in objects if one["kind"] == "Node"}
    machines = [made.get(f"node-{number}", node(f"node-{number}")) for number in range(1, nodes + 1)]
    return dray.load(device_class(), *slices, *machines, *(one for one in objects if one["kind"] != "Node"))


def look(snapshot: Snapshot, effect: str = "NoExecute", rate: int | None = None, **selection: Any) -> TaintPreview:
    asked = TaintRequest(selection=DeviceSelection(**selection), key="example.com/bad", effect=effect, rate=rate)
    rules = build_rules(asked, resolve(snapshot, asked.selection))
    return preview_rules(snapshot, as_stored(rules, snapshot, Time.of(NOW)), NOW)


def test_pods_with_owner_priority_budget_and_new_places() -> None:
    snapshot = cluster(
        held(claim("a"), "node-1", "gpu-0", pods=("p",)),
        worker("p", owner="train", priority=1000),
        budget("strict", 0, app="train"),
        budget("loose", 5, app="train"),
        budget("others", 0, app="else"),
    )
    found = look(snapshot, node="node-1")
    (one,) = found.pods
    assert (one.pod, one.owner, one.priority, one.node) == ("ml/p", "Job ml/train", 1000, "node-1")
    assert one.budget is not None
    assert (one.budget.name, one.budget.allowed, one.budget.needed) == ("strict", 0, 1)
    assert (one.fits, one.fits_on, one.also_on) == (True, "node-2", ("node-3",))
    assert (len(found.devices), found.held, found.namespaces) == (2, 1, {"ml": 1})
    text = tell(found)
    assert "Would evict 1 pod in 1 namespace; 0 protected by tolerations." in text
    assert text.splitlines()[-1].split() == [
        "ml/p", "Job", "ml/train", "1000", "0", "of", "1", "allowed,", "2", "budgets", "yes:", "node-2,", "node-3",
    ]  # fmt: skip
    assert "Evicts 1 pod" in tell(found, is_done=True)


@pytest.mark.req("5055-104")
def test_what_is_held_without_a_pod_that_can_be_told_to_leave_is_said() -> None:
    waiting = worker("p", "")
    snapshot = cluster(
        held(claim("a"), "node-1", "gpu-0", pods=("p",)),
        held(claim("b"), "node-1", "gpu-1"),
        held(claim("c"), "node-2", "gpu-0", pods=("q",)),
        waiting,
        worker("q", "node-2"),
    )
    found = look(snapshot, node="node-1")
    assert (found.held, found.pods) == (2, ())
    assert found.notes == (
        "ml/a, ml/b stay allocated (reserved for ml/p): nobody who uses them is on a node, to be told to leave",
    )
    assert look(snapshot, node="node-2").notes == ()
    assert look(snapshot, effect="NoSchedule", node="node-1").notes == (), "nobody leaves, whoever is there"


@pytest.mark.parametrize(
    ("allowed", "said"), [(-1, "0 of 2"), (0, "0 of 2"), (1, "1 of 2"), (2, "2 of 2"), (5, "2 of 2")]
)
def test_of_those_that_have_to_leave_a_budget_allows_so_many(allowed: int, said: str) -> None:
    snapshot = cluster(
        held(claim("a"), "node-1", "gpu-0", pods=("p", "q")),
        worker("p", owner="train"),
        worker("q", owner="train"),
        budget("web", allowed, app="train"),
    )
    found = look(snapshot, node="node-1")
    assert [one.budget and one.budget.allowed for one in found.pods] == [allowed, allowed]
    assert tell(found).count(f"{said} allowed") == 2


def test_every_budget_counts_all_of_its_pods_and_a_drain_says_who_has_several() -> None:
    snapshot = cluster(
        held(claim("a"), "node-1", "gpu-0", pods=("p", "q", "r")),
        *(worker(name, owner="train") for name in "pq"),
        worker("r", owner="tuned"),
        budget("own", 1, app="tuned"),
        {**budget("all", 2), "spec": {"selector": {}}},
    )
    found = look(snapshot, node="node-1")
    assert [(one.pod, one.budget and one.budget.name, len(one.more_budgets)) for one in found.pods] == [
        ("ml/p", "all", 0),
        ("ml/q", "all", 0),
        ("ml/r", "all", 1),
    ]
    assert tell_broken(found) == ("disruption budget ml/all is broken: 3 pods leave, and it allows 2",)
    drained = paced(found, DrainTerms(), ("example.com/bad:NoSchedule",), snapshot)
    said = "the eviction API lets nobody go who is under several disruption budgets (all, own): ml/r stays until"
    assert drained.notes[0] == f"{said} no more than one is about them"
    assert drained.may_wait
    assert f"{said} the deadline" in paced(found, DrainTerms(deadline=9.0), (), snapshot).notes


def test_who_goes_for_nothing_breaks_no_budget() -> None:
    unready = {"conditions": [{"type": "Ready", "status": "False"}]}
    policy = {"selector": {"matchLabels": {"app": "train"}}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    sick = worker("p", owner="train")
    sick["status"] |= unready
    begins = worker("q", owner="train")
    begins["status"]["phase"] = "Pending"
    snapshot = cluster(
        held(claim("a"), "node-1", "gpu-0", pods=("p", "q")), sick, begins, {**budget("web", 0), "spec": policy}
    )
    assert [one.budget for one in look(snapshot, node="node-1").pods] == [None, None]


def test_pods_that_tolerate_it_are_protected_and_others_do_not_count() -> None:
    snapshot = cluster(
        held(claim("a", tolerations=[TOLERATION]), "node-1", "gpu-0", pods=("stays",)),
        held(claim("b"), "node-1", "gpu-1", pods=("done", "unscheduled", "goes")),
        held(claim("c"), "node-2", "gpu-0", pods=("elsewhere",)),
        worker("stays"),
        pod("done", phase="Succeeded"),
        worker("unscheduled", node_name=""),
        worker("goes"),
        worker("elsewhere", "node-2"),
    )
    found = look(snapshot, node="node-1")
    assert [one.pod for one in found.pods] == ["ml/goes"]
    assert found.protected == ("ml/stays",)


@pytest.mark.parametrize("effect", ["None", "NoSchedule"])
def test_another_effect_evicts_nobody_and_says_who_would_be(effect: str) -> None:
    snapshot = cluster(held(claim("a"), "node-1", "gpu-0", pods=("p",)), worker("p"))
    found = look(snapshot, effect, node="node-1")
    assert not found.evicts
    assert [one.pod for one in found.pods] == ["ml/p"]
    assert f"Evicts nobody: the effect is {effect}. With NoExecute it would evict 1 pod in 1 namespace" in tell(found)


@pytest.mark.parametrize(
    "unfit",
    [
        node("node-2", unschedulable=True),
        node("node-2", taints=[{"key": "x", "effect": "NoSchedule"}]),
        node("node-2", taints=[{"key": "known", "effect": "NoExecute"}]),
    ],
)
def test_a_node_that_does_not_take_the_pod_is_no_new_place(unfit: Manifest) -> None:
    brief = [{"key": "known", "operator": "Exists", "tolerationSeconds": 60}]
    snapshot = cluster(held(claim("a"), "node-1", "gpu-0", pods=("p",)), worker("p", tolerations=brief), unfit, nodes=3)
    (one,) = look(snapshot, node="node-1").pods
    assert (one.fits_on, one.also_on) == ("node-3", ())
    (alone,) = look(cluster(held(claim("a"), "node-1", "gpu-0", pods=("p",)), worker("p"), unfit, nodes=2)).pods
    assert alone.fits is False


def test_a_node_selector_of_the_pod_counts() -> None:
    chosen = worker("p", nodeSelector={"name": "node-3"})
    (one,) = look(cluster(held(claim("a"), "node-1", "gpu-0", pods=("p",)), chosen), node="node-1").pods
    assert one.fits_on == "node-3"


def test_the_rate_says_how_long_it_takes_and_long_lists_are_cut() -> None:
    claims = [held(claim(f"c{n:02}"), "node-1", f"gpu-{n}", pods=(f"p{n:02}",)) for n in range(30)]
    snapshot = cluster(*claims, *(worker(f"p{n:02}") for n in range(30)), nodes=2, devices=30)
    found = look(snapshot, rate=2, node="node-1")
    assert found.finished == "2026-06-01T12:00:10Z"
    text = tell(found)
    assert "Would evict 30 pods in 1 namespace within 10 s" in text
    assert "… and 10 more" in text
    assert text.endswith("\nNote: 10 pods leave at once, then 2 a second.")
    assert max(map(len, tell(found, 60).splitlines())) <= 60


def test_who_cannot_be_judged_does_not_count_as_fitting_nowhere() -> None:
    foreign = worker("q", schedulerName="volcano")
    foreign["metadata"]["namespace"] = "web"
    used = held(claim("b"), "node-1", "gpu-1", pods=("q",))
    used["metadata"]["namespace"] = "web"
    text = tell(
        look(cluster(held(claim("a"), "node-1", "gpu-0", pods=("p",)), used, worker("p"), foreign), node="node-1")
    )
    rows = {line.split()[0]: line for line in text.splitlines() if re.match(r"  (ml|web) ", line)}
    assert "0, of 1 not known" in rows["web"]
    assert "not known" not in rows["ml"]


def test_several_namespaces_are_summed_up() -> None:
    other = held(claim("b"), "node-1", "gpu-1", pods=("q",))
    other["metadata"]["namespace"] = "web"
    snapshot = cluster(held(claim("a"), "node-1", "gpu-0", pods=("p",)), other, worker("p", owner="train"))
    found = look(snapshot, node="node-1")
    assert found.namespaces == {"ml": 1, "web": 1}
    *_, ml, web, note = tell(found).splitlines()
    assert "Job ml/train" in ml
    assert web.split() == ["web", "1", "1", "–"]
    assert note == "Note: web/q has no controller: nobody makes another in its place."


def test_a_rule_that_is_there_is_looked_at_as_it_will_be() -> None:
    snapshot = cluster(
        held(claim("a"), "node-1", "gpu-0", pods=("p",)),
        held(claim("b"), "node-2", "gpu-0", pods=("hit-by-another",)),
        worker("p"),
        worker("hit-by-another", "node-2"),
        rule("other", pool="node-2"),
    )
    asked = TaintRequest(selection=DeviceSelection(node="node-1"), key="k", effect="None")
    before = snapshot.with_typed(
        as_stored(build_rules(asked, resolve(snapshot, asked.selection)), snapshot, Time.of(NOW))
    )
    again = preview_rules(before, build_rules(asked, resolve(before, asked.selection)), NOW)
    assert [one.pod for one in again.pods] == ["ml/p"]
    assert again.pods[0].rules == (asked.name,)


def node_preview(snapshot: Snapshot, *taints: tuple[str, str]) -> TaintPreview:
    machine = next(one for one in snapshot.objects(Node) if one.metadata.name == "node-1")
    return preview_nodes(snapshot, [machine], [Taint(key=key, effect=effect) for key, effect in taints], NOW)


@pytest.mark.parametrize("seconds", [10**12, 2**63 - 1])
def test_pods_that_stay_until_after_the_calendar_has_ended(seconds: int) -> None:
    tolerations = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]
    held_claim = held(claim("a", tolerations=tolerations), "node-1", "gpu-0", pods=("p",))
    snapshot = cluster(held_claim, worker("p", tolerations=tolerations))
    asked = TaintRequest(selection=DeviceSelection(node="node-1"), key="k", effect="NoExecute")
    rules = build_rules(asked, resolve(snapshot, asked.selection))
    of_node, of_devices = node_preview(snapshot, ("k", "NoExecute")), preview_rules(snapshot, rules, NOW)
    assert [one.expected for one in of_node.pods] == ["9999-12-31T23:59:59Z"]
    assert not of_devices.pods
    assert tell(of_node)


def test_a_node_taint_moves_the_pods_that_do_not_tolerate_it() -> None:
    seconds = [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]
    snapshot = cluster(
        held(claim("a"), "node-1", "gpu-0", pods=("p",)),
        worker("p", owner="train"),
        worker("plain"),
        worker("later", tolerations=seconds),
        worker("stays", tolerations=[{"operator": "Exists"}]),
        worker("elsewhere", "node-2"),
        pod("done", phase="Succeeded"),
    )
    found = node_preview(snapshot, ("k", "NoExecute"))
    assert found.evicts
    assert {one.pod: (one.fits_on, one.expected[-9:]) for one in found.pods} == {
        "ml/p": ("node-2", "12:00:00Z"),
        "ml/plain": ("node-3", "12:00:00Z"),  # the emptiest, as the scheduler would have it
        "ml/later": ("node-3", "12:05:00Z"),
    }
    assert found.protected == ("ml/stays",)
    assert tell(found).startswith("Node node-1 gets k:NoExecute.\nWould evict 3 pods in 1 namespace within 5 min")
    assert not node_preview(snapshot, ("k", "NoSchedule")).evicts


def test_the_rate_of_nodes_is_one_for_all_of_them_and_says_when_pods_leave() -> None:
    workers = [worker(f"p{number:02}", f"node-{1 + number % 2}") for number in range(30)]
    snapshot = cluster(*workers)
    machines = [one for one in snapshot.objects(Node) if one.metadata.name != "node-3"]
    found = preview_nodes(snapshot, machines, [Taint(key="k", effect="NoExecute")], NOW, Ration(2, "both"))
    assert found.nodes == ("node-1", "node-2")
    assert sum(one.expected == found.now for one in found.pods) in (10, 11)
    assert found.finished == str(Time.of(NOW + timedelta(seconds=10)))
    assert {one.due for one in found.pods} == {found.now}
    text = tell(found)
    assert text.startswith("2 nodes get k:NoExecute: node-1, node-2.\nWould evict 30 pods in 1 namespace within 10 s")
    assert found.notes == ("10 pods leave at once, then 2 a second",)
    at_once = preview_nodes(snapshot, machines, [Taint(key="k", effect="NoExecute")], NOW)
    assert not at_once.notes
    assert at_once.finished == at_once.now


@st.composite
def worlds(draw: st.DrawFn) -> list[Manifest]:
    """Claims on devices of two nodes, with tolerations, pods in all states, and rules of all effects."""
    objects: list[Manifest] = []
    for number in range(draw(st.integers(1, 4))):
        seconds = draw(st.sampled_from([None, 0, 60]))
        toleration = TOLERATION if seconds is None else {**TOLERATION, "tolerationSeconds": seconds}
        tolerations = [toleration] if draw(st.booleans()) else []
        names = tuple(draw(st.sets(st.sampled_from("pqrs"), max_size=3)))
        where, what = draw(st.sampled_from(["node-1", "node-2", "gone"])), draw(st.sampled_from(["gpu-0", "gpu-1"]))
        objects.append(held(claim(f"c{number}", tolerations=tolerations), where, what, pods=names))
    for name in "pqrs":
        made = worker(name, draw(st.sampled_from(["node-1", ""])))
        made["status"]["phase"] = draw(st.sampled_from(["Pending", "Running", "Succeeded"]))
        if draw(st.booleans()):
            objects.append(made)
    for number in range(draw(st.integers(1, 2))):
        selector: dict[str, Any] = draw(
            st.sampled_from([{}, {"pool": "node-1"}, {"pool": "gone"}, {"device": "gpu-0"}])
        )
        objects.append(rule(f"r{number}", draw(st.sampled_from(["None", "NoExecute"])), **selector))
    return objects


@settings(max_examples=150)
@given(worlds())
def test_the_forecast_names_whom_the_planner_of_the_controller_evicts(objects: list[Manifest]) -> None:
    snapshot = cluster(*objects, nodes=2)
    pods = {ObjectRef.of(one): one for one in snapshot.objects(Pod)}
    planner = DevicePlanner()
    for tainting in snapshot.objects(DeviceTaintRule):
        planner.note(Upsert(tainting))
    for published in snapshot.objects(ResourceSlice):
        planner.note(Upsert(published))
    for one in pods.values():
        planner.put_pod(one)
    for made in snapshot.objects(ResourceClaim):
        planner.put_claim(ObjectName(made.metadata.namespace, made.metadata.name), made)
    while not planner.is_current:
        planner.plan(0.0)
    expected = {str(ref) for ref in pods if planner.departures.causes(ref)}
    known = {str(ref) for ref in pods}
    assert {str(ref) for ref in forecast(snapshot, NOW).evictions} & known == expected


@pytest.mark.parametrize("tolerates", [True, False])
def test_pods_of_a_group_that_shares_a_claim_leave_or_are_protected(tolerates: bool) -> None:
    tolerations = [TOLERATION] if tolerates else None
    shared = held(claim("links", tolerations=tolerations), "node-1", "gpu-0")
    shared["status"]["reservedFor"] = [{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang"}]
    spec = {
        "schedulingPolicy": {"basic": {}},
        "resourceClaims": [{"name": "links", "resourceClaimName": "links"}],
    }
    members = [pod("p"), pod("q")]
    for member in members:
        member["spec"] |= {"schedulingGroup": {"podGroupName": "gang"}, "resourceClaims": spec["resourceClaims"]}
    gang = builders.manifest("scheduling.k8s.io/v1beta1", "PodGroup", "gang", "ml", spec=spec)
    base = dray.load(device_class(), resource_slice("node-1", device("gpu-0")), shared, gang, *members)
    made = base.with_objects(rule("r", pool="node-1"))
    found = preview_rules(base, list(made.objects(DeviceTaintRule)), NOW)
    leaving, staying = (one.pod for one in found.pods), found.protected
    assert (sorted(leaving), sorted(staying)) == (([], ["ml/p", "ml/q"]) if tolerates else (["ml/p", "ml/q"], []))

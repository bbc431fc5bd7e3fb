"""Pods that have to leave, wait or come may have the priority to make others go: these are told, too."""

from __future__ import annotations

from typing import Any

import pytest

import builders
import dray
from dray.api.generated.core import Node, Taint
from dray.snapshot import Snapshot
from dray.snapshot.pod_explanation import explain_pod
from dray.what_if.difference import compare
from dray.what_if.making_room import MAX_PREEMPTING
from dray.what_if.taint_preview import preview_nodes
from dray.what_if.taint_preview_text import tell
from snapshot_objects import Manifest, claim, device, device_class, held, node, resource_slice, rule
from what_if_objects import NOW, apply, quota

EVICT = [Taint(key="k", effect="NoExecute")]


def runs(name: str, on: str, priority: int = 0, cpu: str = "", owner: str = "", **spec: Any) -> Manifest:
    """A pod on a node."""
    kind, _, maker = owner.partition("/")
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": maker, "uid": f"uid-{maker}", "controller": True}
    meta = {"uid": f"uid-{name}", "labels": {"app": maker or name}, "ownerReferences": [reference] if owner else []}
    spec |= {"priority": priority, "containers": [builders.container(cpu=cpu)]}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return builders.pod(name, namespace="ml", node=on, meta=meta, status=status, **spec)


def small(name: str, cpu: int = 1) -> Manifest:
    return node(name, allocatable={"cpu": str(cpu), "memory": "32Gi", "pods": "110"})


def evicted(base: Snapshot, name: str) -> list[tuple[str, bool | None, tuple[str, ...]]]:
    (there,) = [one for one in base.objects(Node) if one.metadata.name == name]
    return [(one.pod, one.fits, one.victims) for one in preview_nodes(base, [there], EVICT, NOW).pods]


@pytest.mark.parametrize(
    ("policy", "victims"), [("PreemptLowerPriority", ("ml/low",)), ("Never", ())], ids=["goes", "never"]
)
def test_who_goes_for_a_pod_that_has_to_leave_is_told(policy: str, victims: tuple[str, ...]) -> None:
    boss = runs("boss", "node-1", 10, "1", preemptionPolicy=policy)
    base = dray.load(small("node-1"), small("node-2"), boss, runs("low", "node-2", 0, "1"))
    assert evicted(base, "node-1") == [("ml/boss", False, victims)]
    (there,) = [one for one in base.objects(Node) if one.metadata.name == "node-1"]
    told = "Note: ml/boss fits nowhere else, and makes pods of lower priority go: ml/low."
    assert (told in tell(preview_nodes(base, [there], EVICT, NOW))) == bool(victims)
    tainted = node("node-1", spec={"taints": [{"key": "k", "effect": "NoExecute"}]})
    assert (told in str(apply(base, tainted))) == bool(victims)


def test_whoever_went_is_not_there_for_the_next() -> None:
    pods = [runs("a", "node-1", 10, "1"), runs("b", "node-1", 10, "1"), runs("low", "node-2", 0, "1")]
    base = dray.load(small("node-1", 2), small("node-2"), *pods)
    assert evicted(base, "node-1") == [("ml/a", False, ("ml/low",)), ("ml/b", False, ())]


def test_devices_of_those_who_go_are_free_for_the_pod() -> None:
    used = [held(claim(name), on, "gpu-0", pods=(name,)) for name, on in (("boss", "node-1"), ("low", "node-2"))]
    slices = [resource_slice(name, device("gpu-0")) for name in ("node-1", "node-2")]
    pods = [
        runs(name, on, priority, resourceClaims=[builders.pod_claim("gpu", claim=name)])
        for name, on, priority in (("boss", "node-1", 10), ("low", "node-2", 0))
    ]
    base = dray.load(device_class(), *slices, node("node-1"), node("node-2"), *used, *pods)
    (told,) = apply(base, rule("r", pool="node-1")).evictions
    assert (told.pod, told.fits, told.victims) == ("ml/boss", False, ("ml/low",))


def test_it_is_looked_for_of_so_many_alone() -> None:
    count = MAX_PREEMPTING + 2
    bosses = [runs(f"boss-{number:02}", "node-1", 10, "1") for number in range(count)]
    low = [runs(f"low-{number:02}", "node-2", 0, "1") for number in range(count)]
    base = dray.load(small("node-1", count), small("node-2", count), *bosses, *low)
    assert [len(victims) for _, _, victims in evicted(base, "node-1")] == [*[1] * MAX_PREEMPTING, 0, 0]


def test_a_daemon_gets_another_device_of_its_node_or_none() -> None:
    used = held(claim("agent"), "node-1", "gpu-0", pods=("agent",))
    uses = {"resourceClaims": [builders.pod_claim("gpu", claim="agent")]}
    agent = runs("agent", "node-1", 0, "", "DaemonSet/agent", **uses)
    slices = [resource_slice(name, device("gpu-0"), device("gpu-1")) for name in ("node-1", "node-2")]
    base = dray.load(device_class(), *slices, node("node-1"), node("node-2"), used, agent)
    (told,) = apply(base, rule("r", pool="node-1", device="gpu-0")).evictions
    assert (told.fits, told.fits_on) == (True, "node-1")
    (told,) = apply(base, rule("r", pool="node-1")).evictions
    assert (told.fits, told.why_not) == (False, "a pod of a DaemonSet: it is for its node alone")


def test_who_goes_for_new_pods_of_a_workload_is_told() -> None:
    made = builders.workload("web", 2, namespace="ml", meta={"uid": "uid-web"})
    made["spec"]["template"]["spec"] |= {"priorityClassName": "high", "containers": [builders.container(cpu="1")]}
    high = builders.manifest("scheduling.k8s.io/v1", "PriorityClass", "high", "", value=10)
    base = dray.load(small("node-1"), runs("low", "node-1", 0, "1"), high)
    difference = apply(base, made)
    (change,) = difference.workloads
    assert (change.fitting, change.tried, change.victims) == (1, 2, ("ml/low",))
    assert change.loses
    assert "makes pods of lower priority go: ml/low" in str(difference)


def test_old_pods_without_a_node_leave_their_place_in_a_quota() -> None:
    """Who is made anew comes when the old ones are gone, also if these had no node."""
    old = [runs(f"web-{number}", on, 0, "", "DaemonSet/web") for number, on in enumerate(("node-1", "node-2"))]
    old[1]["spec"].pop("nodeName")
    old[1]["status"] = {"phase": "Pending"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}
    needs = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    old[1]["spec"]["affinity"] = {"nodeAffinity": needs}
    made = builders.workload("web", kind="DaemonSet", namespace="ml", meta={"uid": "uid-web"})
    base = dray.load(node("node-1"), node("node-2"), made, *old, {**quota(pods="2"), "status": {}})
    made["spec"]["template"]["metadata"]["labels"]["version"] = "2"
    (change,) = apply(base, made).workloads
    assert (change.fitting, change.tried, change.why_not) == (2, 2, "")


def gang(large: str) -> Snapshot:
    """Two nodes on each of which somebody less important runs, and a group of two that wants one CPU, and so many."""
    group = builders.manifest(
        "scheduling.k8s.io/v1beta1",
        "PodGroup",
        "train",
        "ml",
        spec={"schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 5},
    )
    low = [runs(f"low-{number}", f"node-{number}", 0, "1") for number in (1, 2)]
    member: Manifest = {"schedulingGroup": {"podGroupName": "train"}, "priority": 5}
    pods = [
        builders.pod(name, namespace="ml", cpu=cpu, meta={"uid": f"uid-{name}"}, status={"phase": "Pending"}, **member)
        for name, cpu in (("small", "1"), ("large", large))
    ]
    return dray.load(small("node-1"), small("node-2"), group, *low, *pods)


def test_who_goes_for_a_group_goes_for_all_of_it_or_not_at_all() -> None:
    """A pod of a group alone would have a place if somebody went; nobody goes while the group has none."""
    told = explain_pod(gang("1"), "ml/small")
    assert "Preempting ml/low-1 (priority 0), ml/low-2 (priority 0) would help the group." in told.text()
    assert told.to_dict()["preemption"]["victims"] == ["ml/low-1", "ml/low-2"]
    told = explain_pod(gang("2"), "ml/small")
    assert told.status == "pending"
    assert told.preemption is None
    assert "Preempting" not in told.text()


@pytest.mark.parametrize(("large", "victims"), [("1", ("ml/low-1", "ml/low-2")), ("2", ())])
def test_what_if_says_of_a_group_who_goes_for_it(large: str, victims: tuple[str, ...]) -> None:
    whole = gang(large)
    base = whole.without("pod/ml/small", "pod/ml/large")
    difference = compare(base, whole, NOW)
    assert [(one.pod, one.fits, one.victims) for one in difference.pending if one.pod] == [
        ("ml/small", False, victims),
        ("ml/large", False, victims),
    ]

"""What if a pod goes or gets other labels, a namespace goes, or what a workload names is another one?"""

from __future__ import annotations

from typing import Any

import pytest

import builders
import dray
from dray.snapshot import Snapshot
from dray.what_if.difference import Difference
from snapshot_objects import Manifest, claim, device, device_class, held, node, resource_slice
from what_if_objects import apply, quota, remove

WEB = {"app": "web"}


def owned(name: str, kind: str, owner: str, labels: Manifest = WEB, on: str = "node-1", **spec: Any) -> Manifest:
    """A pod that runs, and belongs to a workload."""
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}
    meta = {"uid": f"uid-{name}", "labels": labels, "ownerReferences": [reference] if kind else []}
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return builders.pod(name, namespace="ml", meta=meta, status=ready, nodeName=on, **spec)


def web(replicas: int, kind: str = "ReplicaSet", name: str = "web", **spec: Any) -> Manifest:
    return builders.workload(name, replicas, kind=kind, namespace="ml", meta={"uid": f"uid-{name}"}, **spec)


def cluster(*objects: Manifest, nodes: int = 2, gpus: int = 1) -> Snapshot:
    machines = [node(f"node-{number + 1}") for number in range(nodes)]
    devices = [device(f"gpu-{number}") for number in range(gpus)]
    slices = [resource_slice(one["metadata"]["name"], *devices) for one in machines]
    return dray.load(*machines, device_class(), *slices, *objects)


def workloads(difference: Difference) -> list[tuple[str, int, int, int, int]]:
    return [(one.workload, one.pods, one.wanted, one.fitting, one.tried) for one in difference.workloads]


# Pods that are deleted


def test_a_pod_that_is_deleted_is_made_anew_by_what_owns_it() -> None:
    base = cluster(web(2), owned("web-1", "ReplicaSet", "web"), owned("web-2", "ReplicaSet", "web"))
    difference = remove(base, "pod/ml/web-1")
    assert [(one.pod, one.owner, one.comes_again) for one in difference.deleted] == [
        ("ml/web-1", "ReplicaSet ml/web", "makes another")
    ]
    assert workloads(difference) == [("ReplicaSet ml/web", 1, 2, 1, 1)]
    assert difference.is_disruptive


def test_and_whether_the_next_one_fits_is_told() -> None:
    full = [node("node-1", spec={"unschedulable": True}), node("node-2", spec={"unschedulable": True})]
    base = cluster(web(1), owned("web-1", "ReplicaSet", "web")).with_objects(*full)
    difference = remove(base, "pod/ml/web-1")
    assert workloads(difference) == [("ReplicaSet ml/web", 0, 1, 0, 1)]
    assert "were unschedulable" in difference.workloads[0].why_not


@pytest.mark.parametrize(
    ("kind", "owner", "again"),
    [
        ("", "", "nobody makes another"),
        ("RocketSet", "moon", "not known"),
        ("ReplicaSet", "web", "its owner goes, too"),
    ],
)
def test_who_is_not_known_to_come_again_is_told_as_such(kind: str, owner: str, again: str) -> None:
    base = cluster(web(1), owned("alone", kind, owner, labels={}))
    refs = ["pod/ml/alone", *(["replicaset/ml/web"] if owner == "web" else [])]
    assert [one.comes_again for one in remove(base, *refs).deleted] == [again]


def test_a_pod_that_waits_for_a_node_is_deleted_as_well() -> None:
    difference = remove(cluster(builders.pod("waits", namespace="ml", nodeName="")), "pod/ml/waits")
    assert [(one.pod, one.node, one.comes_again) for one in difference.deleted] == [
        ("ml/waits", "", "nobody makes another")
    ]
    assert difference.is_disruptive
    assert "would notice" not in str(difference)


def test_what_a_workload_owns_goes_with_it() -> None:
    used = held(claim("train"), "node-1", "gpu-0", pods=("web-1",))
    waits = claim("waits", selector='device.attributes["gpu.example.com"].model == "H100"')
    base = cluster(web(1), owned("web-1", "ReplicaSet", "web"), used, waits, nodes=1)
    difference = remove(base, "replicaset/ml/web")
    assert [(one.pod, one.comes_again) for one in difference.deleted] == [("ml/web-1", "its owner goes, too")]
    assert {one.claim: one.node for one in difference.pending}["ml/waits"] == "node-1"
    assert workloads(difference) == [("ReplicaSet ml/web", 1, 0, 0, 0)]


def test_a_namespace_goes_with_all_that_is_in_it() -> None:
    used = held(claim("train"), "node-1", "gpu-0", pods=("web-1",))
    other = builders.claim("waits", builders.request("gpu", deviceClassName="gpu"), namespace="other")
    namespace = builders.manifest("v1", "Namespace", "ml", "")
    base = cluster(namespace, web(1), owned("web-1", "ReplicaSet", "web"), used, other, nodes=1)
    difference = remove(base, "namespace/ml")
    gone = {one.object for one in difference.objects if one.change == "removed"}
    assert gone == {"Namespace ml", "ReplicaSet ml/web", "Pod ml/web-1", "ResourceClaim ml/train"}
    assert [(one.claim, one.node) for one in difference.pending] == [("other/waits", "node-1")]
    assert difference.unjudged == ("whatever else is in Namespace ml",)
    assert difference.is_disruptive


# Pods that are labelled otherwise


def test_labels_decide_who_counts_a_pod_as_theirs() -> None:
    budget = builders.manifest(
        "policy/v1", "PodDisruptionBudget", "keep", "ml", spec={"selector": {"matchLabels": WEB}}
    )
    service = builders.manifest("v1", "Service", "front", "ml", spec={"selector": WEB, "ports": [{"port": 80}]})
    base = cluster(budget, service, web(1), owned("web-1", "ReplicaSet", "web"))
    difference = apply(base, builders.pod("web-1", namespace="ml", meta={"labels": {"app": "debug"}}))
    (told,) = difference.relabelled
    assert told.labels == ("app web → debug",)
    assert told.effects == (
        "no longer under disruption budget ml/keep",
        "no longer behind Service ml/front",
        "ReplicaSet ml/web lets it go, and makes another",
    )
    assert workloads(difference) == [("ReplicaSet ml/web", 0, 1, 1, 1)]
    back = apply(base.with_objects(owned("free", "", "", {})), owned("free", "", "", WEB))
    assert back.relabelled[0].effects == (
        "now under disruption budget ml/keep",
        "now behind Service ml/front",
        "ReplicaSet ml/web takes it as its own",
    )
    assert workloads(back) == [("ReplicaSet ml/web", 2, 1, 0, 0)]


def test_labels_that_nobody_selects_by_are_told_as_that() -> None:
    difference = apply(cluster(owned("one", "", "", {})), owned("one", "", "", {"note": "x"}))
    assert "no budget, Service or workload selects by them" in str(difference)
    assert "would notice" not in str(difference)


def test_who_waits_hears_of_labels_by_affinity() -> None:
    term = {"labelSelector": {"matchLabels": WEB}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    waits = builders.pod("waits", namespace="ml", meta={"uid": "w"}, status={"phase": "Pending"}, affinity=affinity)
    named = node("node-1", labels={"kubernetes.io/hostname": "node-1"})
    base = cluster(owned("web-1", "", ""), waits, nodes=1).with_objects(named)
    difference = apply(base, builders.pod("web-1", namespace="ml", meta={"labels": {"app": "debug"}}))
    assert [(one.pod, one.fitted_before, one.fits) for one in difference.pending] == [("ml/waits", False, True)]


def test_a_manifest_over_a_pod_that_runs_leaves_it_where_it_is() -> None:
    base = cluster(owned("web-1", "", "", WEB, serviceAccountName="default"))
    after = base.with_applied(builders.pod("web-1", namespace="ml", meta={"labels": {"app": "x"}}))
    spec = after.get("pods", "ml", "web-1").spec  # type: ignore[union-attr]  # a pod
    assert (spec.node_name, spec.service_account_name) == ("node-1", "default")


# What workloads name


def trainers(name: str, template: str = "one-gpu", kind: str = "Deployment") -> Manifest:
    made = builders.workload(name, 1, kind=kind, namespace="ml", meta={"uid": f"uid-{name}"})
    made["spec"]["template"]["spec"]["resourceClaims"] = [builders.pod_claim("gpu", template=template)]
    return made


def template(count: int = 1, class_name: str = "gpu") -> Manifest:
    wanted = builders.request("gpu", deviceClassName=class_name, count=count)
    return builders.claim_template("one-gpu", wanted, namespace="ml")


CHANGES = {
    "template asks for more": (template(count=4), "ResourceClaimTemplate one-gpu"),
    "class selects nothing": (device_class('device.driver == "no.example.com"'), "DeviceClass gpu"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_the_next_pod_of_who_names_a_class_or_template_is_tried(change: str, kind: str) -> None:
    manifest, name = CHANGES[change]
    difference = apply(cluster(template(), trainers("train", kind=kind), web(1, "Deployment")), manifest)
    assert [(one.workload, one.names, one.fitted_before, one.fits) for one in difference.next_pods] == [
        (f"{kind} ml/train", (name,), True, False)
    ]
    assert difference.is_disruptive


@pytest.mark.parametrize("ref", ["resourceclaimtemplate/ml/one-gpu", "deviceclass/gpu"])
def test_and_of_who_names_one_that_goes(ref: str) -> None:
    difference = remove(cluster(template(), trainers("train")), ref)
    assert [(one.fitted_before, one.fits) for one in difference.next_pods] == [(True, False)]
    assert difference.next_pods[0].why_not


def test_the_pod_that_is_there_makes_way_for_the_next_one() -> None:
    used = held(claim("train"), "node-1", "gpu-0", pods=("train-1",))
    runs = owned("train-1", "Deployment", "train", {"app": "train"})
    runs["spec"]["resourceClaims"] = [builders.pod_claim("gpu", claim="train")]
    base = cluster(template(), trainers("train"), runs, used, nodes=1)
    difference = apply(base, device_class('device.driver != ""'))
    assert [(one.fitted_before, one.fits) for one in difference.next_pods] == [(True, True)]


def test_an_extended_resource_that_a_class_stands_for_counts() -> None:
    wants = web(1, "Deployment", containers=[builders.container(resources={"limits": {"example.com/gpu": "1"}})])
    stands = device_class()
    stands["spec"]["extendedResourceName"] = "example.com/gpu"
    difference = remove(cluster(wants).with_objects(stands), "deviceclass/gpu")
    assert [(one.names, one.fitted_before, one.fits) for one in difference.next_pods] == [
        (("DeviceClass gpu",), True, False)
    ]


def test_whoever_refers_to_what_goes_is_named_also_if_nothing_can_be_said_of_their_pods() -> None:
    """Who did not fit before and does not after, templates that nobody uses yet, rules and patches of a class."""
    alternatives = [{"name": "a", "deviceClassName": "gpu"}]
    other = builders.claim_template("other", {"name": "r", "firstAvailable": alternatives}, namespace="ml")
    large = builders.claim("large", builders.request("r", deviceClassName="gpu", count=30), namespace="ml")
    has = held(claim("has"), "node-1", "gpu-0", pods=("train-1",))
    extended = {"limits": {"deviceclass.resource.kubernetes.io/gpu": "40"}}
    asks = web(1, "Deployment", "asks", containers=[builders.container(resources=extended)])
    rule = builders.taint_rule("old", {"deviceClassName": "gpu"}, builders.taint("k", "NoSchedule"))
    patch = builders.slice_patch("rack", {"example.com/rack": {"int": 1}}, deviceClassName="gpu")
    waits = builders.pod("waits", namespace="ml")
    waits["spec"]["resourceClaims"] = [builders.pod_claim("a", template="other")]
    base = cluster(template(), other, large, has, asks, rule, patch, waits)
    difference = remove(base, "deviceclass/gpu")
    (found,) = difference.orphaned
    assert found.gone == "DeviceClass gpu"
    assert sorted(found.referred_by) == [
        "Deployment ml/asks",
        "DeviceTaintRule old",
        "ResourceClaim ml/large",
        "ResourceClaimTemplate ml/one-gpu",
        "ResourceClaimTemplate ml/other",
        "ResourceSlicePatch rack",
    ]
    assert "Gone, and still referred to:" in str(difference)
    template_gone = remove(base, "resourceclaimtemplate/ml/other").orphaned
    assert [(one.gone, one.referred_by) for one in template_gone] == [
        ("ResourceClaimTemplate ml/other", ("Pod ml/waits",))
    ]
    assert not remove(base, "resourceclaimtemplate/ml/one-gpu").orphaned
    assert not remove(base, "resourceclaim/ml/large").orphaned


def test_a_resource_for_which_another_class_stands_still_refers_to_none_that_goes() -> None:
    wants = web(1, "Deployment", containers=[builders.container(resources={"limits": {"example.com/gpu": "1"}})])
    base = cluster(wants).with_objects(*(standing(name) for name in ("gpu", "second")))
    assert not remove(base, "deviceclass/gpu").orphaned
    (found,) = remove(base.without("deviceclass/second"), "deviceclass/gpu").orphaned
    assert found.referred_by == ("Deployment ml/web",)


def standing(name: str) -> Manifest:
    made = device_class(name=name)
    made["spec"]["extendedResourceName"] = "example.com/gpu"
    return made


# DaemonSets


def daemons(**spec: Any) -> Manifest:
    made = builders.workload("agent", None, kind="DaemonSet", namespace="ml", meta={"uid": "uid-agent"})
    made["spec"]["template"]["spec"].update(spec)
    return made


def agents(*nodes: str) -> list[Manifest]:
    return [owned(f"agent-{one}", "DaemonSet", "agent", {"app": "agent"}, on=one) for one in nodes]


def daemon_changes(difference: Difference) -> list[tuple[tuple[str, ...], tuple[str, ...], int, int]]:
    return [(one.comes_to, one.goes_from, one.fitting, one.tried) for one in difference.workloads]


def test_daemons_follow_nodes() -> None:
    base = cluster(daemons(), *agents("node-1", "node-2"))
    assert daemon_changes(apply(base, node("node-3"))) == [(("node-3",), (), 1, 1)]
    cordoned = apply(base, node("node-3", spec={"unschedulable": True}))
    assert daemon_changes(cordoned) == [(("node-3",), (), 1, 1)]  # daemons put up with that
    small = apply(base, node("node-3", allocatable={"cpu": "8", "memory": "32Gi", "pods": "0"}))
    assert daemon_changes(small) == [(("node-3",), (), 0, 1)]
    taint = {"taints": [{"key": "x", "effect": "NoExecute"}]}
    tainted = apply(base, node("node-2", spec=taint))
    assert daemon_changes(tainted) == [((), ("node-2",), 0, 0)]
    assert [(one.pod, one.fits, one.why_not) for one in tainted.evictions] == [
        ("ml/agent-node-2", False, "a pod of a DaemonSet: it is for its node alone")
    ]
    assert daemon_changes(remove(base, "node/node-2")) == []
    assert daemon_changes(remove(base, "pod/ml/agent-node-2")) == [(("node-2",), (), 1, 1)]


def test_daemons_follow_labels_of_nodes() -> None:
    base = cluster(daemons(nodeSelector={"gpu": "yes"}), *agents("node-1")).with_objects(
        node("node-1", labels={"gpu": "yes"})
    )
    moved = apply(base, node("node-2", labels={"gpu": "yes"}), node("node-1", labels={"gpu": "no"}))
    assert daemon_changes(moved) == [(("node-2",), ("node-1",), 1, 1)]
    assert moved.is_disruptive


def test_daemon_sets_that_come_go_or_change() -> None:
    base = cluster(daemons(), *agents("node-1", "node-2"))
    assert workloads(remove(base, "daemonset/ml/agent")) == [("DaemonSet ml/agent", 2, 0, 0, 0)]
    anew = apply(base, daemons(priorityClassName="x"))
    assert [(one.replaced, one.fitting, one.tried) for one in anew.workloads] == [(True, 2, 2)]
    assert daemon_changes(apply(cluster(), daemons())) == [(("node-1", "node-2"), (), 2, 2)]


# What nobody looks at


def test_what_is_not_followed_is_named() -> None:
    base = cluster(owned("web-1", "", ""), web(1, "Deployment"))
    noted = web(1, "Deployment")
    noted["metadata"]["annotations"] = {"team": "a"}
    assert apply(base, noted).unjudged == ("the annotations of Deployment ml/web",)
    other = owned("web-1", "", "", containers=[{"name": "main", "image": "other"}])
    assert apply(base, other).unjudged == ("spec (containers) of Pod ml/web-1",)
    assert apply(base, owned("web-1", "", "")).unjudged == ()


# Quotas


def test_pods_that_a_quota_keeps_out_do_not_fit() -> None:
    base = cluster(quota(pods="2"), web(1), owned("web-1", "ReplicaSet", "web"))
    difference = apply(base, web(4))
    assert workloads(difference) == [("ReplicaSet ml/web", 1, 4, 1, 3)]
    assert difference.workloads[0].why_not == "not let in by quota ml/q: pods used 2 of 2, 1 more needed"
    again = remove(base.with_objects(quota(pods="1")), "pod/ml/web-1")
    assert workloads(again) == [("ReplicaSet ml/web", 0, 1, 1, 1)]  # what is gone makes room


def test_claims_count_with_their_pods() -> None:
    limit = quota(**{"count/resourceclaims.resource.k8s.io": "1"})
    made = trainers("train")
    made["spec"]["replicas"] = 2
    difference = apply(cluster(limit, template()), made)
    assert workloads(difference) == [("Deployment ml/train", 0, 2, 1, 2)]
    assert "count/resourceclaims.resource.k8s.io used 1 of 1" in difference.workloads[0].why_not


def test_who_has_to_leave_is_not_let_in_again_where_a_quota_is_overdrawn() -> None:
    runs = [owned(f"web-{number}", "ReplicaSet", "web") for number in (1, 2)]
    base = cluster(web(2), *runs, quota(pods="1"))
    difference = apply(base, node("node-1", spec={"taints": [{"key": "x", "effect": "NoExecute"}]}))
    assert [(one.fits, one.why_not) for one in difference.evictions] == [
        (True, None),
        (False, "not let in by quota ml/q: pods used 1 of 1, 1 more needed"),
    ]


def test_a_quota_that_is_about_other_objects_is_another_one() -> None:
    scoped = quota(pods="5")
    scoped["spec"]["scopes"] = ["BestEffort"]
    difference = apply(cluster(quota(pods="5"), owned("web-1", "", "")), scoped)
    assert [(one.resource, one.used) for one in difference.quotas] == [("pods", "1")]

"""What if a node goes, is cordoned or tainted, a workload or a quota is another one? Whoever notices is told."""

from __future__ import annotations

from typing import Any

import pytest

import builders
import dray
from dray.snapshot import Snapshot
from dray.what_if.difference import Difference, compare
from snapshot_objects import Manifest, claim, device, device_class, held, node, pod, resource_slice
from what_if_objects import NOW, quota


def cluster(*objects: Manifest) -> Snapshot:
    """Two nodes with a GPU each; ml/runs uses that of node-1."""
    slices = [resource_slice(name, device("gpu-0")) for name in ("node-1", "node-2")]
    used = held(claim("train"), "node-1", "gpu-0", pods=("runs",))
    return dray.load(node("node-1"), node("node-2"), device_class(), *slices, used, pod("runs"), *objects)


def waiting(name: str, claim_name: str = "", **spec: Any) -> Manifest:
    used = [builders.pod_claim("gpu", claim=claim_name)] if claim_name else []
    meta, status = {"uid": f"uid-{name}"}, {"phase": "Pending"}
    return builders.pod(name, namespace="ml", claims=used, meta=meta, status=status, **spec)


def apply(base: Snapshot, *objects: Manifest) -> Difference:
    return compare(base, base.with_objects(*objects), NOW)


def test_a_node_that_goes_takes_its_pods_and_devices_along() -> None:
    base = cluster()
    difference = compare(base, base.without("node/node-1"), NOW)
    assert [(one.pod, one.causes, one.fits, one.fits_on) for one in difference.evictions] == [
        ("ml/runs", ("node node-1 is gone",), True, "node-2")
    ]
    assert [(one.device, one.change, one.reasons) for one in difference.devices] == [
        ("gpu-0", "unusable", ("node node-1 is gone",))
    ]
    assert [(one.claim, one.reasons) for one in difference.claims] == [("ml/train", ("node node-1 is gone",))]
    assert "in 40 s" in str(difference), "who collects its pods waits: it may register again"
    assert [(one.node, one.reasons, one.pods) for one in difference.nodes] == [("node-1", ("gone",), 1)]
    assert difference.is_disruptive
    assert "would notice" not in str(difference)


@pytest.mark.parametrize("change", ["gone", "tainted"])
def test_the_devices_of_pods_that_leave_a_node_are_named(change: str) -> None:
    base = cluster()
    tainted = node("node-1", spec={"taints": [{"key": "broken", "effect": "NoExecute"}]})
    after = base.without("node/node-1") if change == "gone" else base.with_objects(tainted)
    difference = compare(base, after, NOW)
    (leaves,) = difference.evictions
    assert (leaves.devices, leaves.held) == ((), ("gpu.example.com/node-1/gpu-0",)), "it is not for them that it leaves"
    row = next(line for line in str(difference).splitlines() if "ml/runs" in line and "ml/train" in line)
    assert "node-1/gpu-0" in row


def test_a_claim_has_no_better_chances_than_the_pod_that_waits_with_it() -> None:
    """It would fit on node-2, where the pod does not go: that node goes, and nobody loses a chance."""
    there = {"nodeSelector": {"kubernetes.io/hostname": "node-1"}}
    base = cluster(claim("wants"), waiting("waits", "wants", **there))
    assert not compare(base, base.without("node/node-2"), NOW).pending


def test_who_waits_for_a_node_that_goes_or_is_cordoned_is_told() -> None:
    base = cluster(claim("wants"), waiting("waits", "wants"))
    changes = {
        "gone": base.without("node/node-2"),
        "cordoned": base.with_objects(node("node-2", spec={"unschedulable": True})),
        "not ready": base.with_objects(node("node-2", ready="False")),
    }
    for what, after in changes.items():
        difference = compare(base, after, NOW)
        assert [(one.claim or one.pod, one.fitted_before, one.fits) for one in difference.pending][:1] == [
            ("ml/wants", True, False)
        ], what
        assert difference.nodes[0].reasons == (what,)
        assert difference.devices[0].reasons == (f"node node-2 is {what}",)
        assert difference.is_disruptive
    gone_pod = compare(base, changes["cordoned"], NOW).pending[1]
    assert (gone_pod.pod, gone_pod.fits) == ("ml/waits", False)
    assert "were unschedulable" in gone_pod.message


@pytest.mark.parametrize(
    ("added", "seconds", "leaves"),
    [
        ("11:58:00", 0, "12:00:00"),
        ("11:58:00", 120, "12:02:00"),
        ("11:58:00", 240, ""),
        ("11:54:00", 0, ""),
    ],
    ids=["at once instead of in three minutes", "a minute sooner", "it leaves before that", "it leaves now anyway"],
)
def test_who_has_to_leave_a_node_sooner_than_before_is_told(added: str, seconds: int, leaves: str) -> None:
    """The node is unreachable since a while, which its pod tolerates for five minutes; then somebody taints it."""
    lost = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": f"2026-06-01T{added}Z"}
    patient = pod("patient")
    patient["spec"]["tolerations"] = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": most}
        for key, most in ((lost["key"], 300), ("bad", seconds))
        if most
    ]
    base = dray.load(node("node-1", spec={"taints": [lost]}), node("node-2"), patient)
    difference = apply(base, node("node-1", spec={"taints": [lost, {"key": "bad", "effect": "NoExecute"}]}))
    assert [(one.pod, one.expected) for one in difference.evictions] == (
        [("ml/patient", f"2026-06-01T{leaves}Z")] if leaves else []
    )
    assert difference.is_disruptive == bool(leaves)


def test_a_taint_on_a_node_makes_pods_leave_when_their_toleration_ends() -> None:
    toleration = {"key": "bad", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    patient = pod("patient")
    patient["spec"]["tolerations"] = [toleration]
    tainted = node("node-1", spec={"taints": [{"key": "bad", "effect": "NoExecute"}]})
    difference = apply(cluster(patient), tainted)
    assert [(one.pod, one.causes, one.expected) for one in difference.evictions] == [
        ("ml/runs", ("bad:NoExecute",), "2026-06-01T12:00:00Z"),
        ("ml/patient", ("bad:NoExecute",), "2026-06-01T12:01:00Z"),
    ]
    assert difference.nodes[0].reasons == ("tainted bad:NoExecute",)
    harmless = apply(cluster(), node("node-1", spec={"taints": [{"key": "bad", "effect": "PreferNoSchedule"}]}))
    assert not harmless.evictions


def deployment(replicas: int, cpu: str = "4", kind: str = "Deployment") -> Manifest:
    return builders.workload("web", replicas, kind=kind, namespace="ml", containers=[builders.container(cpu=cpu)])


def web(name: str) -> Manifest:
    made = pod(name)
    made["metadata"]["labels"] = {"app": "web"}
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "4"}}
    return made


def test_the_pods_of_a_workload_that_grows_shrinks_or_is_made_anew_are_told() -> None:
    base = cluster(deployment(1), web("web-0"))
    more = apply(base, deployment(5)).workloads[0]
    assert (more.pods, more.wanted, more.tried, more.fitting) == (1, 5, 4, 3)
    assert "Insufficient cpu" in more.why_not
    fewer = apply(base, deployment(0))
    assert (fewer.workloads[0].pods, fewer.workloads[0].wanted, fewer.is_disruptive) == (1, 0, True)
    anew = apply(base, deployment(1, cpu="9")).workloads[0]
    assert (anew.replaced, anew.tried, anew.fitting) == (True, 1, 0)
    gone = compare(base, base.without("deployment/ml/web"), NOW)
    assert (gone.workloads[0].wanted, gone.is_disruptive) == (0, True)
    assert apply(base, deployment(1)).workloads == ()


def training(env: str, **spec: Any) -> Manifest:
    """Two pods with a device each."""
    container = builders.container(env=[{"name": "VERSION", "value": env}])
    made = builders.workload("web", 2, namespace="ml", containers=[container], **spec)
    made["spec"]["template"]["spec"]["resourceClaims"] = [builders.pod_claim("gpu", template="gpu")]
    return made


def full_cluster(workload: Manifest) -> Snapshot:
    """Both devices are held for the pods that are there."""
    objects = [device_class(), resource_slice("node-1", device("gpu-0"), device("gpu-1")), node("node-1"), workload]
    objects.append(builders.claim_template("gpu", builders.request("gpu"), namespace="ml"))
    for number in range(2):
        mine = pod(f"web-{number}", resourceClaimStatuses=[{"name": "gpu", "resourceClaimName": f"c{number}"}])
        mine["metadata"]["labels"] = {"app": "web"}
        mine["spec"]["resourceClaims"] = [builders.pod_claim("gpu", template="gpu")]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": f"web-{number}", "uid": f"uid-web-{number}"}
        used = held(claim(f"c{number}"), "node-1", f"gpu-{number}", pods=(f"web-{number}",))
        used["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        objects += [mine, used]
    return dray.load(*objects)


@pytest.mark.parametrize(
    ("how", "fitting"),
    [
        ({}, 0),  # a quarter of two: one more may come first, for which there is no device, and none may be missing
        ({"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}, 2),
        ({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "50%"}}}, 2),
        ({"strategy": {"type": "Recreate"}}, 2),
        ({"kind": "StatefulSet"}, 2),
    ],
)
def test_pods_that_are_made_anew_get_what_old_ones_leave_as_the_workload_says(how: Manifest, fitting: int) -> None:
    base = full_cluster(training("1", **how))
    difference = apply(base, training("2", **how))
    (change,) = difference.workloads
    assert (change.replaced, change.pods, change.tried, change.fitting) == (True, 2, 2, fitting)
    assert difference.is_disruptive == (fitting < 2)


@pytest.mark.parametrize("how", [{"paused": True}, {"kind": "StatefulSet", "updateStrategy": {"type": "OnDelete"}}])
def test_pods_that_are_not_made_anew_stay(how: Manifest) -> None:
    assert apply(full_cluster(training("1", **how)), training("2", **how)).workloads == ()


@pytest.mark.parametrize(("partition", "kept"), [(0, 0), (1, 1), (2, None), (9, None)])
def test_pods_of_a_stateful_set_below_its_partition_stay(partition: int, kept: int | None) -> None:
    how = {"kind": "StatefulSet", "updateStrategy": {"rollingUpdate": {"partition": partition}}}
    found = apply(full_cluster(training("1", **how)), training("2", **how))
    told = [(one.replaced, one.kept, one.tried, one.fitting) for one in found.workloads]
    assert told == ([] if kept is None else [(True, kept, 2 - kept, 2 - kept)])
    assert ("all but 1 made anew" in str(found)) == (kept == 1)


def test_whether_pods_of_another_scheduler_fit_is_not_said() -> None:
    strange = deployment(2)
    strange["spec"]["template"]["spec"]["schedulerName"] = "volcano"
    (change,) = apply(cluster(), strange).workloads
    assert (change.tried, change.fitting) == (0, 0)
    assert "cannot be judged: it is for scheduler volcano" in change.why_not


def test_a_job_wants_as_many_pods_as_it_has_work_for() -> None:
    template = deployment(1)["spec"]["template"]
    spec = {"parallelism": 3, "completions": 2, "template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "ml"}, "spec": spec}
    found = apply(cluster(), job).workloads[0]
    assert (found.workload, found.wanted, found.fitting) == ("Job ml/j", 2, 2)


def test_a_quota_that_is_used_up_lets_nothing_more_in() -> None:
    difference = apply(cluster(quota(pods="9", secrets="1")), quota(pods="1", secrets="1"))
    assert [(one.resource, one.before, one.after, one.used, one.is_full) for one in difference.quotas] == [
        ("pods", "9", "1", "1", True)
    ]
    assert difference.is_disruptive
    devices = apply(cluster(), quota(**{"gpu.deviceclass.resource.k8s.io/devices": "5"})).quotas[0]
    assert (devices.used, devices.is_full) == ("1", False)


def test_a_class_that_goes_is_missed_by_who_waits_for_it() -> None:
    base = cluster(claim("wants"))
    difference = compare(base, base.without("deviceclass/gpu"), NOW)
    assert [(one.claim, one.fits) for one in difference.pending] == [("ml/wants", False)]


NOTICED = "No device, claim or pod would notice."


@pytest.mark.parametrize(
    "unknown",
    [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "ml"}},
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "ml"}},
        {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "n", "namespace": "ml"}},
    ],
)
def test_nobody_is_said_to_notice_only_of_what_was_looked_at(unknown: Manifest) -> None:
    told = str(apply(cluster(), unknown))
    assert NOTICED not in told
    assert f"What a change of {unknown['kind']} " in told
    assert NOTICED in str(apply(cluster(), node("node-2", spec={"podCIDR": "10.0.0.0/24"})))


@pytest.mark.parametrize("ready", ["True", "False"])
def test_allocate_and_explain_pass_over_nodes_that_take_no_pods(ready: str) -> None:
    closed = node("node-2", ready=ready, spec={} if ready == "False" else {"unschedulable": True})
    snapshot = cluster(claim("wants")).with_objects(closed)
    why = "not ready" if ready == "False" else "cordoned"
    assert snapshot.allocate("ml/wants").status == "unsatisfiable"
    assert snapshot.allocate("ml/wants", node="node-2").message == f"node node-2 is {why}"
    told = snapshot.explain("ml/wants")
    assert f"Take no pods: node-2 ({why})." in str(told)
    assert told.to_dict()["passedOver"] == {"node-2": why}

"""What if what surrounds pods is another one: a disruption budget, a PodGroup, labels of a namespace, a Service?"""

from __future__ import annotations

from typing import Any

import pytest

import builders
import dray
from dray.api.generated.core import Node, Taint
from dray.eviction.told_limit import LIMIT_ANNOTATION
from dray.snapshot import Snapshot
from dray.snapshot.pod_explanation import explain_pod
from dray.what_if.taint_preview import preview_nodes
from snapshot_objects import DRIVER, Manifest, claim, device, device_class, held, node, resource_slice
from what_if_objects import NOW, apply, remove

WEB = {"app": "web"}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
ENFORCE = "pod-security.kubernetes.io/enforce"


def pod(name: str, on: str = "node-1", **spec: Any) -> Manifest:
    """A pod that runs, or waits if it is on no node."""
    meta = {"uid": f"uid-{name}", "labels": WEB}
    status = READY if on else {"phase": "Pending"}
    return builders.pod(name, namespace="ml", meta=meta, status=status, nodeName=on, **spec)


def budget(name: str = "keep", labels: Manifest = WEB, **spec: Any) -> Manifest:
    return builders.manifest(
        "policy/v1", "PodDisruptionBudget", name, "ml", spec={"selector": {"matchLabels": labels}, **spec}
    )


def namespace(name: str, **labels: str) -> Manifest:
    return builders.manifest("v1", "Namespace", name, "", meta={"labels": labels})


def cluster(*objects: Manifest) -> Snapshot:
    return dray.load(*(node(name, labels={"kubernetes.io/hostname": name}) for name in ("node-1", "node-2")), *objects)


# Budgets


def test_a_new_budget_says_whose_drains_wait() -> None:
    difference = apply(cluster(pod("a"), pod("b", "node-2")), budget(minAvailable=2))
    (told,) = difference.budgets
    assert (told.pods, told.before, told.after) == (2, None, 0)
    assert (told.held, told.nodes) == (("ml/a", "ml/b"), ("node-1", "node-2"))
    assert difference.unjudged == ()
    assert "drains of node-1, node-2 wait for ml/a, ml/b" in str(difference)
    assert not difference.is_disruptive


@pytest.mark.parametrize("change", ["smaller", "gone"])
def test_a_budget_that_allows_more_lets_pods_go(change: str) -> None:
    base = cluster(pod("a"), pod("b", "node-2"), budget(minAvailable=2))
    difference = apply(base, budget(minAvailable=1)) if change == "smaller" else remove(base, "pdb/ml/keep")
    (told,) = difference.budgets
    assert (told.before, told.after) == (0, 1 if change == "smaller" else None)
    assert told.let_go == ("ml/a", "ml/b")
    assert told.held == ()


def test_who_is_under_two_budgets_cannot_be_evicted_at_all() -> None:
    base = cluster(pod("a"), pod("b", "node-2"), budget(minAvailable=1))
    difference = apply(base, budget("too", maxUnavailable="100%"))
    (told,) = difference.budgets
    assert told.several == told.held == ("ml/a", "ml/b")
    assert "cannot be evicted at all" in str(difference)


def test_a_budget_about_nobody_says_so() -> None:
    difference = apply(cluster(pod("a")), budget(labels={"app": "other"}, minAvailable=1))
    assert "it is about no pod" in str(difference)


def test_a_pod_that_is_deleted_counts_for_its_budget() -> None:
    base = cluster(pod("a"), pod("b", "node-2"), budget(minAvailable=1))
    (told,) = remove(base, "pod/ml/a").budgets
    assert (told.before, told.after, told.held) == (1, 0, ("ml/b",))


@pytest.mark.parametrize("refs", [("namespace/ml",), ("pdb/ml/keep", "pod/ml/a", "pod/ml/b")])
def test_pods_that_go_with_their_budget_are_not_said_to_be_let_go(refs: tuple[str, ...]) -> None:
    base = cluster(namespace("ml"), pod("a"), pod("b", "node-2"), budget(minAvailable=2))
    difference = remove(base, *refs)
    (told,) = difference.budgets
    assert (told.pods, told.before, told.after, told.let_go) == (0, 0, None, ())
    assert "none of its pods stays" in str(difference)
    assert "can be" not in str(difference)


def test_a_budget_that_nobody_has_counted_yet_is_counted_in_previews() -> None:
    base = cluster(pod("a"), pod("b", "node-2"), budget(minAvailable=1))
    machine = builders.typed(node("node-1"), Node)
    (leaving,) = preview_nodes(base, [machine], [Taint(key="x", effect="NoExecute")], NOW).pods
    assert leaving.budget is not None
    assert leaving.budget.allowed == 1


def test_victims_are_chosen_with_budgets_as_the_scheduler_does() -> None:
    def worker(name: str, on: str, app: str) -> Manifest:
        made = pod(name, on, containers=[builders.container(cpu="3")], priority=0)
        return {**made, "metadata": {**made["metadata"], "labels": {"app": app}}}

    machines = [node(f"node-{number}", allocatable={"cpu": "4", "pods": "10"}) for number in (1, 2)]
    kept = {**budget(minAvailable=1), "status": {"disruptionsAllowed": 0, "observedGeneration": 1, "expectedPods": 1}}
    urgent = pod("urgent", "", containers=[builders.container(cpu="3")], priority=10)
    base = dray.load(*machines, worker("kept", "node-1", "web"), worker("free", "node-2", "other"), kept, urgent)
    assert "Preempting ml/free" in explain_pod(base, "ml/urgent").text()
    without = base.with_objects({**kept, "spec": {"selector": {"matchLabels": {"app": "other"}}}})
    assert "Preempting ml/kept" in explain_pod(without, "ml/urgent").text()


# PodGroups


def group(count: int, **spec: Any) -> Manifest:
    policy = {"schedulingPolicy": {"gang": {"minCount": count}}}
    return builders.manifest("scheduling.k8s.io/v1beta1", "PodGroup", "train", "ml", spec={**policy, **spec})


def worker(name: str, on: str = "") -> Manifest:
    return pod(name, on, schedulingGroup={"podGroupName": "train"})


def test_a_gang_that_needs_fewer_pods_can_run() -> None:
    base = cluster(worker("a"), worker("b"), group(3))
    difference = apply(base, group(2))
    (told,) = difference.groups
    assert (told.pods, told.needed, told.before, told.after) == (2, 2, "pending", "fits")
    assert {one.pod for one in difference.pending if one.fits} == {"ml/a", "ml/b"}
    assert difference.unjudged == ()
    assert not difference.is_disruptive


def test_a_gang_that_needs_more_cannot() -> None:
    difference = apply(cluster(worker("a"), worker("b"), group(2)), group(3))
    (told,) = difference.groups
    assert (told.before, told.after) == ("fits", "pending")
    assert "2 of the 3 that it needs are there" in told.message
    assert difference.is_disruptive


def test_a_group_for_which_pods_wait_comes() -> None:
    (told,) = apply(cluster(worker("a"), worker("b")), group(2)).groups
    assert (told.before, told.after) == (None, "fits")


def test_a_group_with_pods_is_only_marked_when_it_is_deleted() -> None:
    base = cluster(worker("a", "node-1"), worker("b", "node-2"), group(2))
    difference = remove(base, "podgroup/ml/train")
    assert [(one.before, one.after) for one in difference.groups] == [("scheduled", "scheduled")]
    assert "goes once none of them is left" in str(difference.notes)
    assert not remove(cluster(group(2)), "podgroup/ml/train").notes


def test_how_the_pods_of_a_group_leave_is_told() -> None:
    base = cluster(worker("a", "node-1"), worker("b", "node-2"), group(2))
    difference = apply(base, group(2, disruptionMode={"all": {}}))
    assert [one.leaves_as_a_whole for one in difference.groups] == [True]
    assert "who leaves takes all others along" in str(difference)


# Labels of namespaces


def apart_from(**labels: str) -> Manifest:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaceSelector": {"matchLabels": labels}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_a_stricter_namespace_lets_in_no_more_of_the_pods_that_run() -> None:
    web = builders.workload("web", 1, kind="ReplicaSet", namespace="ml")
    base = cluster(namespace("ml"), web, pod("a", hostNetwork=True), pod("b"))
    difference = apply(base, namespace("ml", **{ENFORCE: "baseline"}))
    (told,) = difference.namespaces
    assert told.labels == (f"{ENFORCE} unset → baseline",)
    assert "of 2 pods there, 1 would not be let in again (ml/a)" in told.effects[0]
    assert difference.unjudged == ()
    (following,) = difference.next_pods
    assert (following.workload, following.fitted_before, following.fits) == ("ReplicaSet ml/web", True, True)


def test_the_next_pod_of_a_workload_is_not_let_in() -> None:
    web = builders.workload("web", 1, kind="ReplicaSet", namespace="ml")
    difference = apply(cluster(namespace("ml"), web), namespace("ml", **{ENFORCE: "restricted"}))
    (following,) = difference.next_pods
    assert (following.fitted_before, following.fits) == (True, False)
    assert 'violates PodSecurity "restricted:latest"' in following.why_not
    assert difference.is_disruptive


@pytest.mark.parametrize("way", ["rollout", "eviction"])
def test_pods_that_come_are_judged_by_pod_security(way: str) -> None:
    strict = namespace("ml", **{ENFORCE: "restricted"})
    web = builders.workload("web", 1, kind="ReplicaSet", namespace="ml")
    if way == "rollout":
        (told,) = apply(cluster(strict), web).workloads
        assert (told.tried, told.fitting) == (1, 0)
        assert "violates PodSecurity" in told.why_not
    else:
        (leaving,) = remove(cluster(strict, pod("a")), "node/node-1").evictions
        assert leaving.fits is False
        assert "violates PodSecurity" in (leaving.why_not or "")


def test_labels_by_which_pods_keep_others_away() -> None:
    base = cluster(
        *(namespace("ml"), namespace("other")),
        builders.pod("near", namespace="other", meta={"uid": "n"}, status=READY, nodeName="node-1"),
        builders.pod("near-too", namespace="other", meta={"uid": "m"}, status=READY, nodeName="node-2"),
        pod("waits", "", affinity=apart_from(team="red")),
    )
    difference = apply(base, namespace("other", team="red"))
    assert [(one.pod, one.fitted_before, one.fits) for one in difference.pending] == [("ml/waits", True, False)]
    assert difference.namespaces[0].effects == (
        "affinity of ml/waits finds other pods there than before, when it is next asked",
    )


@pytest.mark.parametrize(
    ("who", "spec"),
    [
        ("ValidatingWebhookConfiguration", {"webhooks": [{"name": "a.b.c", "namespaceSelector": "SELECTOR"}]}),
        ("MutatingWebhookConfiguration", {"webhooks": [{"name": "a.b.c", "namespaceSelector": "SELECTOR"}]}),
        ("ValidatingAdmissionPolicy", {"spec": {"matchConstraints": {"namespaceSelector": "SELECTOR"}}}),
        (
            "ValidatingAdmissionPolicyBinding",
            {"spec": {"policyName": "p", "matchResources": {"namespaceSelector": "SELECTOR"}}},
        ),
    ],
)
def test_who_is_asked_about_objects_by_labels_of_their_namespace(who: str, spec: Manifest) -> None:
    def filled(value: Any) -> Any:
        if value == "SELECTOR":
            return {"matchLabels": {"checked": "yes"}}
        if isinstance(value, dict):
            return {key: filled(one) for key, one in value.items()}
        return [filled(one) for one in value] if isinstance(value, list) else value

    asked = builders.manifest("admissionregistration.k8s.io/v1", who, "gate", "", **filled(spec))
    base = cluster(namespace("ml"), asked)
    (told,) = apply(base, namespace("ml", checked="yes")).namespaces
    assert told.effects == (f"now asked about objects there: {who} gate",)
    (told,) = apply(base.with_applied(namespace("ml", checked="yes")), namespace("ml", checked="no")).namespaces
    assert told.effects == (f"no longer asked: {who} gate",)


def test_labels_that_nobody_looks_at() -> None:
    difference = apply(cluster(namespace("ml"), pod("a")), namespace("ml", owner="us"))
    assert "nobody who is there looks at them" in str(difference)
    assert difference.unjudged == ()


# Services


def test_pods_behind_a_service() -> None:
    def service(**selector: str) -> Manifest:
        return builders.manifest("v1", "Service", "front", "ml", spec={"selector": selector, "ports": [{"port": 80}]})

    base = cluster(pod("a"), pod("b", "node-2"), service(**WEB))
    difference = apply(base, service(app="other"))
    assert [(one.service, one.before, one.after) for one in difference.services] == [("ml/front", 2, 0)]
    assert difference.is_disruptive
    assert "nothing is decided about pods and devices" in str(difference)
    assert not apply(cluster(pod("a")), service(**WEB)).is_disruptive
    assert remove(base, "service/ml/front").is_disruptive


# What keeps pods where they are


@pytest.mark.parametrize(
    ("annotations", "selector", "told"),
    [
        ({"dray.dev/stop-evictions": "true"}, {"driver": DRIVER}, "evictions by dray are stopped"),
        (
            {"dray.dev/stop-evictions": "true", LIMIT_ANNOTATION: "none"},
            {"driver": DRIVER},
            "all evictions are stopped",
        ),
        ({LIMIT_ANNOTATION: "1,10%"}, {"driver": DRIVER}, "They stay until `dray confirm`"),
        ({LIMIT_ANNOTATION: "50,10%"}, {}, "An empty selector is held however few leave"),
        ({LIMIT_ANNOTATION: "50,10%"}, {"driver": DRIVER}, ""),
    ],
)
def test_what_holds_pods_that_have_to_leave_is_told(annotations: Manifest, selector: Manifest, told: str) -> None:
    users = [held(claim(f"c{number}"), "node-1", f"gpu-{number}", pods=(f"p{number}",)) for number in range(2)]
    place = builders.manifest("v1", "Namespace", "kube-system", "", meta={"annotations": annotations})
    slices = resource_slice("node-1", device("gpu-0"), device("gpu-1"))
    base = cluster(device_class(), slices, place, *users, pod("p0"), pod("p1"))
    difference = apply(base, builders.taint_rule("r", selector, builders.taint("x", "NoExecute")))
    assert len(difference.evictions) == 2
    assert told in str(difference.notes)
    assert bool(difference.notes) == bool(told)

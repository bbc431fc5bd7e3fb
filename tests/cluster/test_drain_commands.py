"""`dray drain` keeps disruption budgets, says what it waits for, and can be paused; on a cluster with real budgets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dray_process import DrayProcess
from patience import PATIENCE, eventually
from taint_cluster import TaintCluster, taint_cluster

LIMIT = "dray.dev/max-evictions"
BUDGETS = "policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaintCluster]:
    with taint_cluster(tmp_path_factory.mktemp("drains")) as running:
        yield running


@pytest.fixture
def cluster(shared: TaintCluster) -> Iterator[TaintCluster]:
    yield shared
    shared.delete(BUDGETS)
    shared.clean()


def protect(cluster: TaintCluster, workload: str, available: int) -> None:
    """A budget that lets so many pods of a workload be available at least."""
    selector = {"matchLabels": {"app": workload}}
    document = {"metadata": {"name": workload}, "spec": {"minAvailable": available, "selector": selector}}
    cluster.create(BUDGETS, document)
    eventually(lambda: cluster.get(f"{BUDGETS}/{workload}")["status"].get("currentHealthy"))


def test_a_drain_keeps_a_budget_that_allows_nobody_and_says_so(cluster: TaintCluster) -> None:
    pods = cluster.run_pods("api", 2, "node-1")
    protect(cluster, "api", 2)
    look = cluster.dray("drain", "node", "node-1", "--dry-run", "--evictions-per-second", "1")
    assert "Note: 1 pod a second at most, from the first one on." in look.stdout
    assert "Note: 2 of 2 pods wait for disruption budget default/api, which allows 0 now." in look.stdout
    done = cluster.dray("drain", "node", "node-1", "--timeout", "2s")
    assert done.exit_code == 1, done.stderr
    assert "0 of 2 pods evicted · 2 waiting for a disruption budget" in done.stdout
    assert re.search(rf"default/{pods[0]}: .*disruption budget api", done.stdout)
    assert "2 pods still there. Nobody else leaves; go on with the same command, or put back with:" in done.stdout
    assert cluster.pods("api") == pods
    broken = cluster.dray("drain", "node", "node-1", "--ignore-budgets", "--dry-run")
    assert "Note: disruption budget default/api is broken: 2 pods leave, and it allows 0." in broken.stdout
    late = cluster.dray("drain", "node", "node-1", "--deadline", "1s", "--timeout", f"{PATIENCE:g}s", "-o", "json")
    assert late.exit_code == 0, late.stderr
    result = json.loads(late.stdout)["result"]
    assert (result["evicted"], result["atDeadline"]) == (2, 2)
    assert "dray: the deadline is over: who is left is deleted, whatever budgets say" in late.stderr


def test_a_pod_under_two_budgets_stays_is_told_of_and_keeps_nobody_else(cluster: TaintCluster) -> None:
    (stuck,) = cluster.run_pods("api", 1, "node-1")
    cluster.run_pods("web", 1, "node-1")
    protect(cluster, "api", 0)
    selector = {"matchLabels": {"app": "api"}}
    cluster.create(BUDGETS, {"metadata": {"name": "more"}, "spec": {"minAvailable": 0, "selector": selector}})
    done = cluster.dray("drain", "node", "node-1", "--timeout", "2s")
    assert done.exit_code == 1, done.stderr
    assert f"under several disruption budgets (api, more): default/{stuck} stays until" in " ".join(done.stdout.split())
    assert "1 of 2 pods evicted · 1 waiting for a disruption budget" in done.stdout
    assert re.search(rf"  default/{stuck}: .*more than one PodDisruptionBudget", done.stdout)
    table = cluster.dray("get", "nodes").stdout
    assert "1 pod leaves, 1 waits for budget default/api and default/more" in table
    cluster.delete(f"{BUDGETS}/more")
    assert cluster.dray("drain", "node", "node-1", "--timeout", f"{PATIENCE:g}s").exit_code == 0


def test_a_drain_of_two_nodes_goes_on_with_the_one_that_keeps_its_taint(cluster: TaintCluster) -> None:
    (first,) = cluster.run_pods("api", 1, "node-1")
    (second,) = cluster.run_pods("web", 1, "node-2")
    protect(cluster, "api", 1)
    protect(cluster, "web", 1)

    def somebody_else() -> None:
        eventually(lambda: cluster.node_taints("node-2"))
        cluster.dray("untaint", "node", "node-2")
        cluster.delete(f"{BUDGETS}/api")

    admin = threading.Timer(1.0, somebody_else)
    admin.start()
    done = cluster.dray("drain", "node", "node-1", "node-2", "--wait", "--timeout", f"{PATIENCE:g}s")
    admin.join()
    assert done.exit_code == 1
    assert "✔ tainted (node node-1)   ✔ 1 of 1 evicted   ✔ 1 gone" in done.stdout
    assert "1 pod stays: tolerated by now, or not reached by the taint any more." in done.stdout
    assert "Called off for node-2: the taint is gone there." in done.stdout
    assert done.stdout.endswith("Put back with: dray untaint node node-1 maintenance:NoSchedule\n")
    assert second in cluster.pods("web")
    assert first not in cluster.pods("api")


def test_a_drain_of_a_node_that_is_deleted_says_so(tmp_path: Path) -> None:
    """It said that the taint or the drain was taken back, or that the node is gone: one of them."""
    with taint_cluster(tmp_path) as cluster:
        cluster.run_pods("api", 2, "node-1")
        protect(cluster, "api", 2)

        def somebody_else() -> None:
            eventually(lambda: cluster.node_taints("node-1"))
            cluster.delete("v1/nodes/node-1")

        admin = threading.Timer(1.0, somebody_else)
        admin.start()
        done = cluster.dray("drain", "node", "node-1", "--wait", "--timeout", f"{PATIENCE:g}s")
        admin.join()
        assert done.exit_code == 1, done.stderr
        assert "✘ called off: node node-1 is gone; 0 of 2 evicted" in done.stdout


def test_a_drain_whose_pods_finish_meanwhile_is_done(cluster: TaintCluster) -> None:
    pods = cluster.run_pods("api", 2, "node-1")
    protect(cluster, "api", 2)

    def somebody_else() -> None:
        eventually(lambda: cluster.node_taints("node-1"))
        for name in pods:
            cluster.patch(f"v1/namespaces/default/pods/{name}/status", {"status": {"phase": "Succeeded"}})

    admin = threading.Timer(1.0, somebody_else)
    admin.start()
    done = cluster.dray("drain", "node", "node-1", "--wait", "--timeout", f"{PATIENCE:g}s")
    admin.join()
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "Node is idle. Put back with: dray untaint node node-1 maintenance:NoSchedule" in done.stdout


def test_devices_that_a_rule_does_not_select_any_more_are_not_said_to_be_idle(cluster: TaintCluster) -> None:
    cluster.run_pods("api", 1, "node-1")
    protect(cluster, "api", 1)

    def somebody_else() -> None:
        (rule,) = eventually(cluster.rules)
        path = f"resource.k8s.io/v1/devicetaintrules/{rule['metadata']['name']}"
        cluster.patch(path, {"spec": {"deviceSelector": {"device": "gpu-7"}}})

    admin = threading.Timer(1.0, somebody_else)
    admin.start()
    done = cluster.dray("drain", "device", "--node", "node-1", "--wait", "--timeout", f"{PATIENCE:g}s")
    admin.join()
    assert done.exit_code == 1
    assert "1 pod stays: tolerated by now, or not reached by the taint any more." in done.stdout
    assert "8 devices are idle, but for 1 pod that stays." in done.stdout


def test_a_drain_of_more_than_the_guard_allows_asks_first(tmp_path: Path) -> None:
    with taint_cluster(tmp_path, "--max-evictions", "1") as guarded:
        pods = guarded.run_pods("api", 2, "node-1")
        eventually(lambda: LIMIT in guarded.get("v1/namespaces/kube-system")["metadata"].get("annotations", {}))
        look = guarded.dray("drain", "node", "node-1", "--dry-run")
        assert "Guard: 2 of 2 pods (100.0%), limit 1: 1 pod. It asks first; --yes for scripts." in look.stdout
        for asked in (["node", "node-1"], ["device", "--node", "node-1"]):
            refused = guarded.dray("drain", *asked, stdin="no\n")
            assert refused.exit_code == 1
            assert "More pods leave than the guard's limit of 1. Type the number of pods (2) to go on" in refused.stderr
        assert guarded.pods("api") == pods
        assert not guarded.node_taints("node-1")
        done = guarded.dray("drain", "node", "node-1", "--yes", "--timeout", f"{PATIENCE:g}s")
        assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("key", ["maintenance", "example.com/repair"])
def test_a_drain_that_keeps_budgets_takes_the_place_of_what_evicts_for_its_key(key: str, cluster: TaintCluster) -> None:
    """With everything that was said about it; what is about other keys is somebody else's."""
    other = {"key": "other", "effect": "NoExecute", "value": "theirs"}
    pods = cluster.run_pods("api", 1, "node-1")
    rated = ("--evictions-per-second", "1", "--for", "2h")
    waits = [{"key": name, "effect": "NoExecute", "operator": "Exists"} for name in (key, "other")]
    for pod in pods:
        there = cluster.get(f"v1/namespaces/default/pods/{pod}")["spec"]["tolerations"]
        cluster.patch(f"v1/namespaces/default/pods/{pod}", {"spec": {"tolerations": [*there, *waits]}})
    assert cluster.dray("taint", "node", "node-1", f"{key}:NoExecute", "other=theirs:NoExecute", *rated).exit_code == 0
    done = cluster.dray("drain", "node", "node-1", f"{key}:NoExecute", "--timeout", f"{PATIENCE:g}s")
    assert done.exit_code == 0, done.stderr
    assert (
        f"Note: {key}:NoExecute of node-1 makes way for it: that evicts whatever disruption budgets say." in done.stdout
    )
    assert cluster.node_taints("node-1") == [other, {"key": key, "effect": "NoSchedule"}]
    told = cluster.get("v1/nodes/node-1")["metadata"]["annotations"]
    assert told["dray.dev/evictions-per-second"] == "other:NoExecute=1"
    assert re.fullmatch("other:NoExecute=[^,]*", told["dray.dev/taints-expire-at"])
    assert cluster.dray("untaint", "node", "node-1", key).exit_code == 0
    assert cluster.dray("untaint", "node", "node-1", "other").exit_code == 0
    told = cluster.get("v1/nodes/node-1")["metadata"]["annotations"]
    assert not [name for name in told if name in ("dray.dev/evictions-per-second", "dray.dev/taints-expire-at")]


def test_pods_leave_one_by_one_as_they_are_replaced(cluster: TaintCluster) -> None:
    pods = cluster.run_pods("web", 3, "node-2")
    protect(cluster, "web", 2)
    done = cluster.dray("drain", "node", "node-2", "--wait-for-replacements", "--wait")
    assert done.exit_code == 0, done.stderr
    assert "✔ 3 of 3 evicted   ✔ 3 gone" in done.stdout
    eventually(lambda: len(cluster.pods("web")) == 3)
    assert not set(pods) & set(cluster.pods("web"))


def test_a_drain_is_paused_and_goes_on(cluster: TaintCluster) -> None:
    pods = cluster.run_pods("job", 1, "node-3")
    cluster.patch("v1/nodes/node-3", {"metadata": {"annotations": {"dray.dev/drain-paused": "true"}}})
    environment = {**os.environ, "KUBECONFIG": str(cluster.server.kubeconfig)}
    with DrayProcess(
        "drain", "node", "node-3", stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == (
            "dray: the drain is paused (dray drain resume node/node-3 lets it go on)\n"
        )
        assert cluster.pods("job") == pods
        resumed = cluster.dray("drain", "resume", "node/node-3")
        assert (resumed.exit_code, resumed.stdout) == (0, "Drains of node/node-3 go on.\n")
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert "✔ 1 of 1 evicted" in said
    assert cluster.dray("drain", "pause", "pod/x").exit_code == 2
    assert cluster.dray("drain", "pause", "node", "node-3").stdout.startswith("Drains of node/node-3 stand still")
    assert cluster.dray("drain", "resume", "node", "node-3").exit_code == 0


def test_a_pause_ends_with_its_drain(cluster: TaintCluster) -> None:
    """One that nobody sees would stop the next drain."""
    refused = cluster.dray("drain", "pause", "node", "node-3")
    assert refused.exit_code == 2
    assert "node/node-3 is not drained, so nothing is paused. Begin with: dray drain node node-3" in refused.stderr
    assert cluster.dray("drain", "node", "node-3").exit_code == 0
    assert cluster.dray("drain", "pause", "node", "node-3").exit_code == 0
    assert cluster.dray("untaint", "node", "node-3").exit_code == 0
    left = cluster.get("v1/nodes/node-3")["metadata"].get("annotations", {})
    assert not [name for name in left if name.startswith("dray.dev/drain")]


def test_a_node_says_that_it_is_drained_who_leaves_it_and_what_they_wait_for(cluster: TaintCluster) -> None:
    cluster.run_pods("api", 2, "node-1")
    protect(cluster, "api", 2)
    assert cluster.dray("drain", "node", "node-1", "--timeout", "1s").exit_code == 1
    found = {one["name"]: one for one in json.loads(cluster.dray("get", "nodes", "-o", "json").stdout)["items"]}
    assert found["node-1"]["state"] == ["ready", "draining"]
    assert (found["node-1"]["leaving"], found["node-1"]["waitingForBudgets"]) == (2, {"default/api": 2})
    assert found["node-2"]["state"] == ["ready"]
    table = cluster.dray("get", "nodes").stdout
    assert re.search(r"^node-1 +ready, draining .* 2 pods leave, 2 wait for budget default/api$", table, re.MULTILINE)
    cluster.delete(BUDGETS)
    assert cluster.dray("drain", "node", "node-1", "--wait").exit_code == 0
    assert re.search(r"^node-1 +ready, drained ", cluster.dray("get", "nodes").stdout, re.MULTILINE)
    assert cluster.dray("untaint", "node", "node-1").exit_code == 0
    assert re.search(r"^node-1 +ready +8 ", cluster.dray("get", "nodes").stdout, re.MULTILINE)
    assert cluster.dray("taint", "node", "node-1", "team=x:NoSchedule").exit_code == 0
    assert re.search(r"^node-1 +ready, tainted ", cluster.dray("get", "nodes").stdout, re.MULTILINE)


def test_a_drain_of_a_node_leaves_the_pods_of_daemon_sets_where_they_are(cluster: TaintCluster) -> None:
    spec = {"containers": [{"name": "c", "image": "x"}], "nodeSelector": {"kubernetes.io/hostname": "node-2"}}
    template = {"metadata": {"labels": {"app": "driver"}}, "spec": spec}
    made = {
        "metadata": {"name": "driver"},
        "spec": {"selector": {"matchLabels": {"app": "driver"}}, "template": template},
    }
    cluster.create("apps/v1/namespaces/default/daemonsets", made)
    eventually(lambda: cluster.pods("driver"))
    (driver,) = cluster.pods("driver")
    cluster.run_pods("api", 1, "node-2")
    done = cluster.dray("drain", "node", "node-2", "--wait")
    assert done.exit_code == 0, done.stderr
    assert f"Note: default/{driver} stays: pods of DaemonSets and static pods belong to their node." in done.stdout
    assert "✔ 1 of 1 evicted" in done.stdout
    assert "Node is idle, but for 1 DaemonSet or static pod. Put back with" in done.stdout
    assert cluster.pods("driver") == [driver]
    cluster.delete("apps/v1/namespaces/default/daemonsets/driver")


def test_an_empty_selector_empties_no_small_cluster_either(cluster: TaintCluster) -> None:
    pods = cluster.run_pods("api", 2, "node-1")
    cluster.create(
        "resource.k8s.io/v1/devicetaintrules",
        {"metadata": {"name": "all"}, "spec": {"deviceSelector": {}, "taint": {"key": "k", "effect": "NoExecute"}}},
    )
    eventually(lambda: "rule/all" in cluster.dray("confirm").stdout)
    assert cluster.pods("api") == pods
    assert cluster.dray("cancel", "rule/all").exit_code == 0
    cluster.delete("resource.k8s.io/v1/devicetaintrules/all")
    look = cluster.dray("taint", "device", "k:NoExecute", "--dry-run")
    assert (
        "An empty selector is held however few leave, unless the number of devices, or --yes, confirms it"
        in look.stdout
    )
    devices = len(json.loads(cluster.dray("get", "devices", "-o", "json").stdout)["items"])
    done = cluster.dray("taint", "device", "k:NoExecute", "--evictions-per-second", "100", stdin=f"{devices}\n")
    assert done.exit_code == 0, done.stderr
    eventually(lambda: not set(pods) & set(cluster.pods("api")))
    assert not [one for one in cluster.get("v1/events")["items"] if one["involvedObject"]["name"].startswith("k-")]


def test_devices_are_drained_as_budgets_allow(cluster: TaintCluster) -> None:
    cluster.run_pods("train", 2, "node-4")
    protect(cluster, "train", 1)
    done = cluster.dray("drain", "device", "--node", "node-4", "--wait")
    assert done.exit_code == 0, done.stderr
    assert "✔ 2 of 2 evicted   ✔ claims released" in done.stdout
    (rule,) = cluster.rules()
    assert rule["spec"]["taint"]["effect"] == "NoSchedule"

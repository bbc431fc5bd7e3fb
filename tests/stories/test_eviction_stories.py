"""The stories of KEP-5055 and KEP-3902, told end to end with stock kubectl on a `dray up` with simulated nodes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import builders
from patience import KUBECTL_PATIENCE, PATIENCE, eventually
from taint_cluster import TaintCluster, taint_cluster

EXAMPLES = Path(__file__).parents[2] / "examples" / "taints"
SIGN = "health.example.com/degraded"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaintCluster]:
    with taint_cluster(tmp_path_factory.mktemp("stories")) as running:
        yield running


@pytest.fixture
def cluster(shared: TaintCluster) -> Iterator[TaintCluster]:
    yield shared
    shared.clean()


def set_slice_taints(cluster: TaintCluster, node: str, device: str, *taints: dict[str, Any]) -> None:
    """What the driver of a node does when the health of a device changes: it publishes the slice anew."""
    path = "resource.k8s.io/v1/resourceslices"
    found = next(one for one in cluster.get(path)["items"] if one["spec"]["pool"]["name"] == node)
    for one in found["spec"]["devices"]:
        one.pop("taints", None)
        if one["name"] == device and taints:
            one["taints"] = list(taints)
    cluster.patch(f"{path}/{found['metadata']['name']}", {"spec": {"devices": found["spec"]["devices"]}})


def rule(name: str, effect: str, **more: Any) -> str:
    """A rule about the devices of node-1; `more` are fields of the taint."""
    tainted = builders.taint("example.com/reset", effect, **more)
    return yaml.safe_dump(builders.taint_rule(name, {"pool": "node-1"}, tainted))


def condition(cluster: TaintCluster, name: str) -> dict[str, Any]:
    """EvictionInProgress of a rule, once it is about the spec as it is now."""

    def current() -> dict[str, Any] | None:
        found = cluster.get(f"resource.k8s.io/v1/devicetaintrules/{name}")
        told = next(iter(found.get("status", {}).get("conditions", [])), None)
        return told if told and told["observedGeneration"] == found["metadata"]["generation"] else None

    found: dict[str, Any] = eventually(current)
    return found


@pytest.mark.req("5055-126", "5055-129", "5055-130")
def test_a_degraded_device_is_seen_blocked_emptied_reset_and_put_back(cluster: TaintCluster) -> None:
    kubectl = cluster.kubectl
    careful = cluster.run_pods("careful", 1, "node-1")
    (gpu,) = cluster.holders("node-1")
    # The driver tells what it sees; nobody is hurt.
    set_slice_taints(cluster, "node-1", gpu, {"key": SIGN, "effect": "None", "data": {"eccErrors": 7}})
    taints = kubectl("get", "resourceslices", "-o", "jsonpath={.items[*].spec.devices[*].taints}")
    assert json.loads(taints)[0]["data"] == {"eccErrors": 7}
    assert cluster.pods("careful") == careful
    # The admin keeps new work away first ...
    kubectl("apply", "-f", "-", stdin=rule("reset-node-1", "NoSchedule"))
    assert condition(cluster, "reset-node-1")["reason"] == "OtherEffect"
    assert cluster.pods("careful") == careful
    # ... then empties the devices, so that they can be reset; who rather runs degraded says so and stays.
    tolerance = [{"key": "example.com/reset", "operator": "Exists"}]
    maintenance = cluster.run_pods("maintenance", 1, "node-1", tolerations=tolerance)
    kubectl("apply", "-f", "-", stdin=rule("reset-node-1", "NoExecute"))
    kubectl("wait", "--for=condition=EvictionInProgress=false", "devicetaintrule/reset-node-1", KUBECTL_PATIENCE)
    eventually(lambda: cluster.pods("careful") and cluster.pods("careful") != careful)
    assert cluster.pods("maintenance") == maintenance
    eventually(lambda: gpu not in cluster.holders("node-1"))
    # The device is well again: the driver takes its sign away, the admin the rule.
    set_slice_taints(cluster, "node-1", gpu)
    kubectl("delete", "devicetaintrule", "reset-node-1")
    assert len(cluster.run_pods("next", 2, "node-1")) == 2


@pytest.mark.req("5055-127")
def test_a_health_monitor_with_no_other_rights_takes_devices_offline_and_back(
    cluster: TaintCluster, tmp_path: Path
) -> None:
    kubectl = cluster.kubectl
    before = cluster.run_pods("train", 1, "node-2")
    (gpu,) = cluster.holders("node-2")
    kubectl("apply", "-f", str(EXAMPLES / "health_monitor_role.yaml"))
    document = yaml.safe_load(cluster.server.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": kubectl("create", "token", "health-monitor").strip()}
    kubeconfig = tmp_path / "monitor"
    kubeconfig.write_text(yaml.safe_dump(document))

    def look() -> str:
        """One round of the monitor."""
        environment = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(kubeconfig)}
        script = EXAMPLES / "health_monitor.sh"
        done = subprocess.run([script], capture_output=True, text=True, env=environment, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert look() == ""
    set_slice_taints(cluster, "node-2", gpu, {"key": SIGN, "effect": "None"})
    assert look() == f"devicetaintrule.resource.k8s.io/health-node-2-{gpu} created\n"
    eventually(lambda: cluster.pods("train") and cluster.pods("train") != before)
    eventually(lambda: gpu not in cluster.holders("node-2"))
    set_slice_taints(cluster, "node-2", gpu)
    assert "deleted" in look()
    assert cluster.rules() == []
    for verb, what in (("update", "resourceslices"), ("delete", "pods"), ("get", "resourceclaims")):
        asked = kubectl.run("auth", "can-i", verb, what, "--as=system:serviceaccount:default:health-monitor")
        assert asked.stdout.strip() == "no"


@pytest.mark.req("5055-128", "5055-105", "5055-107", "5055-145")
def test_safe_eviction_looks_first_and_then_evicts(cluster: TaintCluster) -> None:
    kubectl = cluster.kubectl
    pods = cluster.run_pods("train", 8, "node-1")
    kubectl("apply", "-f", "-", stdin=rule("careful", "None"))
    told = condition(cluster, "careful")
    assert (told["status"], told["reason"]) == ("False", "NoEffect")
    described = kubectl("describe", "devicetaintrule", "careful")
    assert "8 published devices selected. 8 allocated devices selected." in described
    assert "8 pods would be evicted in 1 namespace" in described
    assert cluster.pods("train") == pods
    change = json.dumps({"spec": {"taint": {"effect": "NoExecute", "evictionsPerSecond": 5}}})
    kubectl("patch", "devicetaintrule", "careful", "--type=merge", "-p", change)
    kubectl("wait", "--for=condition=EvictionInProgress=false", "devicetaintrule/careful", KUBECTL_PATIENCE)
    eventually(lambda: len(cluster.pods("train")) == 8)
    assert not set(pods) & set(cluster.pods("train"))
    assert condition(cluster, "careful")["reason"] == "Completed"
    kubectl("delete", "devicetaintrule", "careful")


@pytest.mark.req("5055-128")
def test_deleting_the_rule_calls_off_what_has_not_happened(cluster: TaintCluster) -> None:
    kubectl = cluster.kubectl
    waits = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}]
    pods = cluster.run_pods("patient", 2, "node-1", tolerations=waits)
    kubectl("apply", "-f", "-", stdin=rule("hasty", "NoExecute"))
    told = condition(cluster, "hasty")
    assert (told["status"], told["reason"]) == ("True", "PodsPendingEviction")
    kubectl("delete", "devicetaintrule", "hasty")
    events = "v1/namespaces/default/events"
    eventually(lambda: "Cancelling deletion" in {one["message"] for one in cluster.get(events)["items"]})
    assert cluster.pods("patient") == pods


@pytest.mark.req("3902-03", "3902-10")
def test_a_node_is_emptied_for_maintenance_and_put_back(cluster: TaintCluster) -> None:
    kubectl = cluster.kubectl
    pods = cluster.run_pods("train", 3, "node-3")
    kubectl("taint", "node", "node-3", "maintenance=disk:NoExecute")
    eventually(lambda: len(cluster.pods("train")) == 3 and not set(pods) & set(cluster.pods("train")))
    eventually(lambda: cluster.holders("node-3") == [])
    marked = {one["spec"]["nodeName"] for one in cluster.running("train")}
    assert "node-3" not in marked
    kubectl("taint", "node", "node-3", "maintenance-")
    assert cluster.node_taints("node-3") == []
    assert len(cluster.run_pods("next", 1, "node-3")) == 1


@pytest.mark.req("3902-15")
def test_a_node_that_is_gone_for_good_is_marked_out_of_service(cluster: TaintCluster) -> None:
    kubectl = cluster.kubectl
    pods = cluster.run_pods("train", 2, "node-4")
    # The machine shuts down: its last word is that it is not ready, then it falls silent.
    kubectl("annotate", "node", "node-4", "dray.dev/simulated-state=stopped")
    last = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]}}
    kubectl("patch", "node", "node-4", "--subresource=status", "-p", json.dumps(last))
    # Pods are asked to leave, and nobody is there to stop them: they hang.
    kubectl("taint", "node", "node-4", "down=yes:NoExecute")
    everybody = "v1/namespaces/default/pods?labelSelector=app%3Dtrain"

    def hanging() -> set[str]:
        found = cluster.get(everybody)["items"]
        return {one["metadata"]["name"] for one in found if "deletionTimestamp" in one["metadata"]}

    eventually(lambda: hanging() == set(pods))
    assert len(cluster.holders("node-4")) == 2
    kubectl("taint", "node", "node-4", "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
    eventually(lambda: not set(pods) & {one["metadata"]["name"] for one in cluster.get(everybody)["items"]})
    eventually(lambda: len(cluster.pods("train")) == 2)
    eventually(lambda: cluster.holders("node-4") == [])
    kubectl("annotate", "node", "node-4", "dray.dev/simulated-state-")
    eventually(
        lambda: (
            "True" in kubectl("get", "node", "node-4", "-o", 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')
        )
    )

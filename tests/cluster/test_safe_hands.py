"""Review, then do exactly that; confirm or cancel what is held; stop everything at once. On a running cluster."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
import yaml

from dray.cli.shapes import schema
from dray.what_if.plan import Plan
from dray_process import DrayProcess
from patience import eventually
from taint_cluster import TaintCluster, taint_cluster

ABOUT_TAINTS = ("taints-expire-at", "evictions-per-second", "confirm-evictions")
SELECTS_OTHER = 'device.driver == "other.example.com"'


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaintCluster]:
    with taint_cluster(tmp_path_factory.mktemp("hands"), "--max-evictions", "1") as running:
        yield running


@pytest.fixture
def cluster(shared: TaintCluster) -> Iterator[TaintCluster]:
    yield shared
    shared.dray("stop-evictions", "--resume")
    shared.clean()


def test_a_plan_is_applied_only_while_it_does_what_was_reviewed(cluster: TaintCluster, tmp_path: Path) -> None:
    cluster.run_pods("train", 1, "node-1")
    file = str(tmp_path / "drain.plan")
    how = ("--evictions-per-second", "5", "--dry-run")  # the last goes without saying, and is no part of the plan
    planned = cluster.dray("plan", "drain", "node", "node-1", *how, "-o", file)
    assert planned.exit_code == 0, planned.stderr
    assert "Would evict 1 pod" in planned.stdout
    assert planned.stdout.endswith(
        f"Plan written to {file}; `dray apply {file}` does it if nothing that matters has changed until then.\n"
    )
    plan = json.loads(Path(file).read_text())
    assert plan["command"] == ["drain", "node", "node-1", "--evictions-per-second", "5"]
    assert cluster.node_taints("node-1") == []
    assert cluster.dray("apply", file, "--dry-run").exit_code == 0
    cluster.run_pods("late", 1, "node-1")
    moved = cluster.dray("apply", file)
    assert moved.exit_code == 1
    assert "dray: the cluster has moved since" in moved.stderr
    assert "preview.pods: default/late-" in moved.stderr
    assert cluster.node_taints("node-1") == []
    cluster.dray("plan", "drain", "node", "node-1", "-o", file)
    done = cluster.dray("apply", file)
    assert done.exit_code == 0, done.stderr
    assert "✔ 2 of 2 evicted" in done.stdout
    elsewhere = msgspec.convert({**plan, "cluster": "elsewhere"}, Plan).sealed()
    Path(file).write_bytes(msgspec.json.encode(elsewhere))
    other = cluster.dray("apply", file)
    assert (other.exit_code, cluster.rules()) == (2, [])
    assert "was planned on another cluster" in other.stderr


def test_manifests_are_planned_live_and_from_a_dump(cluster: TaintCluster, tmp_path: Path) -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "planned"},
        "spec": {"deviceSelector": {"pool": "node-1"}, "taint": {"key": "k", "effect": "NoSchedule"}},
    }
    manifest, file, dump = tmp_path / "rule.yaml", str(tmp_path / "rule.plan"), tmp_path / "dump.yaml"
    manifest.write_text(yaml.safe_dump(rule))
    assert "8 devices" in cluster.dray("what-if", "--apply", str(manifest)).stdout
    planned = cluster.dray("plan", "rule", str(manifest), "-o", file)
    assert planned.exit_code == 0, planned.stderr
    manifest.unlink()  # the plan has what was reviewed
    applied = cluster.dray("apply", file)
    assert (applied.exit_code, applied.stdout) == (0, "DeviceTaintRule planned applied\n"), applied.stderr
    assert [one["metadata"]["name"] for one in cluster.rules()] == ["planned"]
    dump.write_text(
        cluster.kubectl("get", "nodes,pods,resourceslices,resourceclaims,deviceclasses", "-A", "-o", "yaml")
    )
    offline = cluster.dray("plan", "taint", "node", "node-2", "k:NoExecute", "-f", str(dump), "-o", file)
    assert offline.exit_code == 0, offline.stderr
    assert json.loads(Path(file).read_text())["cluster"] == ""
    assert cluster.dray("apply", file).exit_code == 0
    assert [one["key"] for one in cluster.node_taints("node-2")] == ["k"]
    assert cluster.dray("plan", "get", "nodes", "-o", file).exit_code == 2
    assert cluster.dray("taint", "node", "node-2", "k:NoExecute", "-f", str(dump)).exit_code == 2


def test_programs_are_told_what_came_of_a_plan(cluster: TaintCluster, tmp_path: Path) -> None:
    def applied(*options: str) -> tuple[int, dict[str, Any]]:
        done = cluster.dray("apply", file, *options, "-o", "json")
        document = json.loads(done.stdout)
        jsonschema_rs.validator_for(schema("PlanApplication")).validate(document)
        return done.exit_code, document

    file, manifest = str(tmp_path / "a.plan"), tmp_path / "class.yaml"
    cluster.dray("plan", "taint", "device", "--node", "node-1", "--device", "gpu-0", "k:NoSchedule", "-o", file)
    assert applied("--dry-run")[1]["applied"] is False
    code, document = applied()
    assert (code, document["applied"], document["result"]["kind"]) == (0, True, "Taint")
    assert [one["spec"]["taint"]["key"] for one in cluster.rules()] == ["k"]
    made = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "planned"}, "spec": {}}
    manifest.write_text(json.dumps(made))
    cluster.dray("plan", "change", str(manifest), "-o", file)
    code, document = applied()
    assert (code, document["objects"], document["result"]) == (0, ["DeviceClass planned"], None)
    code, document = applied()
    assert (code, document["applied"], bool(document["moved"])) == (1, False, True)
    cluster.kubectl("delete", "deviceclass", "planned")


@pytest.mark.parametrize("how", [("-f",), ()], ids=["with -f", "as words"])
def test_a_plan_for_more_nodes_keeps_its_node_groups(
    cluster: TaintCluster, how: tuple[str, ...], tmp_path: Path
) -> None:
    groups, file, dump = tmp_path / "groups.yaml", str(tmp_path / "more.plan"), tmp_path / "dump.yaml"
    spec = {"fromNode": "node-1"}
    group = {"apiVersion": "dray.dev/v1", "kind": "NodeGroup", "metadata": {"name": "more"}, "spec": spec}
    groups.write_text(yaml.safe_dump(group))
    dump.write_text(
        cluster.kubectl("get", "nodes,pods,resourceslices,resourceclaims,deviceclasses", "-A", "-o", "yaml")
    )
    for source in ((), ("-f", str(dump))):
        planned = cluster.dray("plan", "scale-up", *how, str(groups), *source, "-o", file)
        assert planned.exit_code == 0, planned.stderr
        assert bool(json.loads(Path(file).read_text())["cluster"]) == (not source)
        groups.unlink()  # the plan has what was reviewed
        applied = cluster.dray("apply", file)
        assert applied.exit_code == 0, applied.stderr
        assert applied.stdout.endswith("Nobody adds nodes here: do it where your nodes come from.\n")
        groups.write_text(yaml.safe_dump(group))
    cluster.kubectl("run", "waits", "--image=x", "--overrides", '{"spec": {"nodeSelector": {"no": "where"}}}')
    eventually(lambda: cluster.dray("apply", file).exit_code == 1)
    cluster.kubectl("delete", "pod", "waits", "--now")


def test_what_is_held_is_listed_confirmed_and_cancelled(cluster: TaintCluster) -> None:
    assert cluster.dray("confirm").exit_code == 1
    cluster.run_pods("train", 3, "node-1")
    cluster.dray("taint", "device", "--node", "node-1", "k:NoExecute")
    (rule,) = cluster.rules()
    target = f"rule/{rule['metadata']['name']}"
    eventually(lambda: target in cluster.dray("confirm").stdout)
    assert cluster.dray("cancel", target).stdout == f"Cancelled: {target}.\n"
    again = cluster.dray("cancel", target)
    assert (again.exit_code, "evicts nobody" in again.stdout) == (1, True), again.stdout
    assert cluster.rules()[0]["spec"]["taint"]["effect"] == "NoSchedule"
    eventually(lambda: cluster.dray("confirm").exit_code == 1)
    cluster.dray("taint", "device", "--node", "node-1", "k:NoExecute")
    eventually(lambda: json.loads(cluster.dray("confirm", "-o", "json").stdout)["items"])
    before = cluster.pods("train")
    assert cluster.dray("confirm", target).exit_code == 0
    eventually(lambda: not set(before) & set(cluster.pods("train")))
    assert cluster.dray("confirm", "pod/x").exit_code == 2


def test_a_node_that_is_cancelled_ends_when_it_would_have_and_keeps_nothing_else(cluster: TaintCluster) -> None:
    """Else it would be out of service for good, and the next taint of the key go at a rate, or confirmed, unasked."""
    lasts = ("--for", "2h", "--evictions-per-second", "1")
    assert cluster.dray("taint", "node", "node-2", "k:NoExecute", "other:NoSchedule", *lasts).exit_code == 0
    before = cluster.get("v1/nodes/node-2")["metadata"]["annotations"]
    cluster.patch("v1/nodes/node-2", {"metadata": {"annotations": {"dray.dev/confirm-evictions": "k"}}})
    assert cluster.dray("cancel", "node/node-2").exit_code == 0
    assert {(one["key"], one["effect"]) for one in cluster.node_taints("node-2")} == {
        ("k", "NoSchedule"),
        ("other", "NoSchedule"),
    }
    after = cluster.get("v1/nodes/node-2")["metadata"]["annotations"]
    ends = before["dray.dev/taints-expire-at"].replace("k:NoExecute", "k:NoSchedule")
    assert {name: after.get(f"dray.dev/{name}") for name in ABOUT_TAINTS} == dict.fromkeys(ABOUT_TAINTS) | {
        "taints-expire-at": ends
    }
    assert cluster.dray("untaint", "node", "node-2", "k").exit_code == 0
    assert cluster.dray("untaint", "node", "node-2", "other").exit_code == 0
    after = cluster.get("v1/nodes/node-2")["metadata"]["annotations"]
    assert not [name for name in ABOUT_TAINTS if f"dray.dev/{name}" in after]


@pytest.mark.parametrize("apart", [False, True], ids=["in the device", "in a slice of its own"])
def test_what_a_driver_wants_is_listed_too_and_confirmed_for_its_pool(cluster: TaintCluster, apart: bool) -> None:
    slices = "resource.k8s.io/v1/resourceslices"
    tainted = {"key": "example.com/hot", "effect": "NoExecute"}
    spec = {"driver": "other.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}
    place = {"nodeName": "node-1"}
    devices = [{"name": "d-0"}, {"name": "d-1"}]
    meta = {"name": "driver-first"}
    cluster.create(slices, {"metadata": meta, "spec": {**spec, **place, "devices": devices}})
    cluster.create("resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "other"}, "spec": {}})
    try:
        asks = {"deviceClassName": "other", "selectors": [{"cel": {"expression": SELECTS_OTHER}}]}
        before = cluster.run_pods("other", 2, "node-1", **asks)
        assert cluster.dray("confirm").exit_code == 1
        pool = {**spec["pool"], "resourceSliceCount": 2} if apart else spec["pool"]  # type: ignore[dict-item]  # a mapping
        if apart:
            taints = [{"device": name, "taint": tainted} for name in ("d-0", "d-1")]
            cluster.create(
                slices, {"metadata": {"name": "driver-x"}, "spec": {**spec, **place, "pool": pool, "taints": taints}}
            )
            cluster.patch(f"{slices}/driver-first", {"spec": {"pool": pool}})
        else:
            hot = [{**one, "taints": [tainted]} for one in devices]
            cluster.patch(f"{slices}/driver-first", {"spec": {"devices": hot}})
        eventually(lambda: "slice/driver-first" in cluster.dray("confirm").stdout)
        assert "2 pods are to leave for what the driver of the pool says" in cluster.dray("confirm").stdout
        assert cluster.pods("other") == before
        done = cluster.dray("confirm", "slice/driver-first")
        assert done.stdout == "Confirmed: slice/driver-first.\n", done
        eventually(lambda: not set(before) & set(cluster.pods("other")))
        eventually(lambda: cluster.dray("confirm").exit_code == 1)
    finally:
        for name in ("driver-first", *(["driver-x"] if apart else [])):
            cluster.delete(f"{slices}/{name}")
        cluster.delete("resource.k8s.io/v1/deviceclasses/other")


def test_what_nobody_read_is_not_said_to_be_missing_or_new(cluster: TaintCluster, tmp_path: Path) -> None:
    """Of most kinds a running cluster is not read but for what a change is about."""
    cluster.create("v1/namespaces/default/configmaps", {"metadata": {"name": "there"}, "data": {"a": "b"}})
    deleted = cluster.dray("what-if", "--delete", "configmap/there")
    assert "ConfigMap default/there removed" in deleted.stdout, deleted
    assert "What a change of ConfigMap default/there does was not looked at." in deleted.stdout
    missing = cluster.dray("what-if", "--delete", "secret/nowhere")
    assert (missing.exit_code, missing.stderr) == (2, "dray: --delete: there is no secret/nowhere.\n")
    for value, said in (("b", "What if nothing is different?"), ("c", "What if: ConfigMap default/there changed.")):
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}, "data": {"a": value}}
        file = tmp_path / "manifest.yaml"
        file.write_text(yaml.safe_dump(manifest))
        assert cluster.dray("what-if", "--apply", str(file)).stdout.startswith(said)
    cluster.delete("v1/namespaces/default/configmaps/there")


def test_one_command_stops_all_evictions_and_one_lets_them_go_on(cluster: TaintCluster) -> None:
    pods = cluster.run_pods("train", 1, "node-1")
    stopped = cluster.dray("stop-evictions")
    assert stopped.stdout.startswith("All evictions are stopped.")
    waiting = cluster.dray("taint", "node", "node-1", "k:NoExecute", "--wait", "--timeout", "2s")
    assert waiting.exit_code == 1
    assert "evictions are stopped (dray stop-evictions --resume lets them go on)" in waiting.stderr
    assert cluster.dray("drain", "device", "--node", "node-1", "--timeout", "1s").exit_code == 1
    assert cluster.pods("train") == pods
    assert cluster.dray("stop-evictions", "--resume").stdout == "Evictions go on.\n"
    eventually(lambda: not set(pods) & set(cluster.pods("train")))


def test_programs_get_typed_values_once_and_as_they_change(cluster: TaintCluster) -> None:
    for what in ("nodes", "devices", "claims"):
        document = json.loads(cluster.dray("get", what, "-o", "json").stdout)
        jsonschema_rs.validator_for(schema(document["kind"])).validate(document)
    (line,) = cluster.dray("get", "nodes", "--node", "node-1", "-o", "jsonl").stdout.splitlines()
    node = json.loads(line)
    assert (node["name"], node["ready"], node["devices"], node["free"]) == ("node-1", True, 8, 8)
    assert cluster.dray("get", "nodes", "-o", "name").stdout.splitlines()[0] == "node/node-1"
    assert yaml.safe_load(cluster.dray("get", "nodes", "-o", "yaml").stdout)["items"][0]["pods"] == 0
    environment = {**os.environ, "KUBECONFIG": str(cluster.server.kubeconfig)}
    with DrayProcess("get", "nodes", "-w", "-o", "json", stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        first = [json.loads(process.stdout.readline()) for _ in range(4)]
        assert [event["type"] for event in first] == ["ADDED"] * 4
        cluster.patch("v1/nodes/node-2", {"spec": {"unschedulable": True}})
        event = json.loads(process.stdout.readline())
        assert (event["type"], event["object"]["name"]) == ("MODIFIED", "node-2")
        process.terminate()

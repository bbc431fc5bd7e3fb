"""The public offline API, as users rely on it: load, allocate, changed copies, place."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import builders
import dray
from dray.api.generated.core import Node, Pod
from dray.snapshot import InputError, SnapshotError
from dray.snapshot.group_explanation import explain_group
from snapshot_objects import DRIVER, claim, device, device_class, held, patch, resource_slice, rule

CLUSTER = (
    device_class(),
    resource_slice("node-1", device("gpu-0", numa=0), device("gpu-1", numa=1)),
    resource_slice("node-2", device("gpu-0", numa=0), device("gpu-1", numa=0)),
)


def devices_of(allocation: dict[str, Any]) -> list[str]:
    return [f"{result['pool']}/{result['device']}" for result in allocation["devices"]["results"]]


@pytest.mark.parametrize("source", ["file", "directory", "stdin", "dicts", "list", "json", "typed list"])
def test_a_cluster_is_loaded_from_anywhere(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [*CLUSTER, claim("train", count=2)]
    documents = "---\n".join(json.dumps(obj) + "\n" for obj in objects)
    file = tmp_path / "cluster.yaml"
    sources: list[Any] = [file]
    match source:
        case "directory":
            (tmp_path / "deep").mkdir()
            (tmp_path / "deep" / "more.yml").write_text(documents)
            sources = [str(tmp_path)]
        case "stdin":
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(documents.encode())))
            sources = ["-"]
        case "dicts":
            sources = objects
        case "list":
            sources = [{"apiVersion": "v1", "kind": "List", "items": objects}]
        case "json":
            file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=1))
        case "typed list":
            bare = [{"metadata": obj["metadata"], "spec": obj["spec"]} for obj in CLUSTER[1:]]
            slices = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSliceList", "items": bare}
            sources = [slices, CLUSTER[0], objects[-1]]
        case "file":
            file.write_text(documents)
    snapshot = dray.load(*sources)
    assert snapshot.nodes() == ["node-1", "node-2"]
    assert snapshot.allocate("ml/train").status == "allocated"


def test_an_allocation_says_node_and_devices_as_v1_json() -> None:
    out = dray.load(*CLUSTER, claim("train", count=2, match="numa")).allocate("ml/train")
    assert (out.status, out.node, out.error) == ("allocated", "node-2", None)
    assert devices_of(out.allocations["ml/train"]) == ["node-2/gpu-0", "node-2/gpu-1"]
    assert str(out.explain()) == "ml/train fits on node-2 (1 of 2 nodes)."


def test_on_a_given_node_only() -> None:
    snapshot = dray.load(*CLUSTER, claim("train"))
    assert snapshot.allocate("ml/train", node="node-2").node == "node-2"
    assert snapshot.allocate("ml/train", node="node-9").status == "error"


def test_several_claims_together_or_none() -> None:
    two, three = claim("a", count=1), claim("b", count=2)
    out = dray.load(*CLUSTER, two, three).allocate("ml/a", "ml/b")
    assert (out.status, out.node, out.allocations) == ("unsatisfiable", None, {})
    assert "Each claim fits by itself" in str(out.explain())
    assert "each claim fits by itself" in out.explain().brief()
    out = dray.load(*CLUSTER, two, claim("c")).allocate("ml/a", "ml/c")
    assert [devices_of(out.allocations[name]) for name in ("ml/a", "ml/c")] == [["node-1/gpu-0"], ["node-1/gpu-1"]]


def test_a_claim_that_is_allocated_keeps_its_devices_and_binds_the_others_to_its_node() -> None:
    allocated = held(claim("a"), "node-2", "gpu-1")
    selector = {"key": "metadata.name", "operator": "In", "values": ["node-2"]}
    allocated["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [selector]}]}
    snapshot = dray.load(*CLUSTER, allocated, claim("b"))
    out = snapshot.allocate("ml/a", "ml/b")
    assert out.node == "node-2"
    assert devices_of(out.allocations["ml/a"]) == ["node-2/gpu-1"]
    assert devices_of(out.allocations["ml/b"]) == ["node-2/gpu-0"]
    out = snapshot.allocate("ml/a", "ml/b", node="node-1")
    assert (out.status, out.message) == (
        "unsatisfiable",
        "claims that are allocated already cannot be used on node-1",
    )


def test_claims_that_are_all_allocated_fit_where_their_devices_are() -> None:
    snapshot = dray.load(*CLUSTER, held(claim("a"), "node-2", "gpu-1"))
    assert devices_of(snapshot.allocate("ml/a").allocations["ml/a"]) == ["node-2/gpu-1"]
    assert snapshot.allocate("ml/a", node="node-9").error == "node node-9 not found"


@pytest.mark.req("4381-253")
def test_nothing_is_allocated_by_loading() -> None:
    snapshot = dray.load(*CLUSTER, claim("a"))
    snapshot.allocate("ml/a")
    assert snapshot.pending() == ["ml/a"]
    assert all(not snapshot.holders(device) for device in snapshot.devices())


@pytest.mark.parametrize(
    ("objects", "says"),
    [
        ((device_class("device.attributes['x.y'].z == 1"), claim("a")), "no such key"),
        ((device_class("device.drivr == 'x'"), claim("a")), "compile"),
        ((claim("a", device_class_name="nope"),), "nope"),
        ((claim("a", selector="device.driver == 1"),), "compile"),
    ],
)
def test_what_cannot_be_judged_is_an_error_that_names_it(objects: tuple[Any, ...], says: str) -> None:
    out = dray.load(*CLUSTER, *objects).allocate("ml/a")
    assert (out.status, out.allocations) == ("error", {})
    assert out.error is not None
    assert says in out.error
    assert says in str(out.explain())


def test_changed_copies_leave_the_snapshot_as_it_is() -> None:
    base = dray.load(*CLUSTER, claim("a"))
    without = base.without("resourceslice/node-1-slice")
    tainted = base.with_objects(rule("bad", effect="NoSchedule", pool="node-1"))
    assert [snapshot.allocate("ml/a").node for snapshot in (base, without, tainted, base)] == [
        "node-1",
        "node-2",
        "node-2",
        "node-1",
    ]
    assert without.nodes() == ["node-2"]
    assert tainted.without("devicetaintrules/bad").allocate("ml/a").node == "node-1"


@pytest.mark.req("5055-61")
def test_one_of_two_devices_out_of_service() -> None:
    snapshot = dray.load(
        *CLUSTER,
        rule("service", pool="node-1", device="gpu-0"),
        claim("ordinary"),
        claim("test", tolerations=[{"key": "example.com/bad", "operator": "Exists"}]),
    )
    ordinary = snapshot.allocate("ml/ordinary", node="node-1")
    maintenance = snapshot.allocate("ml/test", node="node-1")
    assert devices_of(ordinary.allocations["ml/ordinary"]) == ["node-1/gpu-1"]
    assert devices_of(maintenance.allocations["ml/test"]) == ["node-1/gpu-0"]


@pytest.mark.req("5027-16")
def test_a_patch_is_for_devices_of_every_version() -> None:
    plain = resource_slice("node-1", {"name": "gpu-0"})
    pool = {"name": "node-2", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "node-2", "pool": pool, "devices": [{"name": "gpu-0", "basic": {}}]}
    older = {**plain, "apiVersion": "resource.k8s.io/v1beta1", "metadata": {"name": "older"}, "spec": spec}
    loaded = dray.load(device_class(), plain, older, patch("rack", {f"{DRIVER}/rack": {"int": 3}}))
    assert {found.id.pool: found.device.attributes["rack"].int_value for found in loaded.devices()} == {
        "node-1": 3,
        "node-2": 3,
    }


@pytest.mark.req("5055-65", "5027-28")
def test_rules_and_patches_change_what_is_allocated_but_no_slice() -> None:
    before = dray.load(*CLUSTER, claim("a", count=2, match="numa"))
    name = ("resourceslices.resource.k8s.io", "", "node-1-slice")
    patched = before.with_objects(patch("same-numa", {"gpu.example.com/numa": {"int": 7}}, pool="node-1"))
    tainted = before.with_objects(rule("bad", effect="NoSchedule", pool="node-2"))
    assert [snapshot.allocate("ml/a").node for snapshot in (before, patched, tainted)] == ["node-2", "node-1", None]
    assert before.get(*name) is patched.get(*name) is tainted.get(*name)


def test_with_allocations_takes_the_devices() -> None:
    snapshot = dray.load(*CLUSTER, *(claim(f"c{number}") for number in range(5)))
    taken = []
    for name in snapshot.pending():
        out = snapshot.allocate(name)
        taken += [devices_of(allocation) for allocation in out.allocations.values()]
        snapshot = snapshot.with_allocations(out)
    assert taken == [["node-1/gpu-0"], ["node-1/gpu-1"], ["node-2/gpu-0"], ["node-2/gpu-1"]]
    assert snapshot.pending() == ["ml/c4"]


@pytest.mark.req("4381-101", "4381-102")
def test_claims_stay_allocated_when_their_slices_go() -> None:
    snapshot = dray.load(*CLUSTER, held(claim("a"), "node-1", "gpu-0"), claim("b")).without(
        "resourceslice/node-1-slice"
    )
    kept = snapshot.claim("ml/a").status.allocation
    assert kept is not None
    assert kept.devices.results[0].device == "gpu-0"
    assert snapshot.allocate("ml/b").node == "node-2"
    back = snapshot.with_objects(CLUSTER[1]).allocate("ml/b", node="node-1")
    assert devices_of(back.allocations["ml/b"]) == ["node-1/gpu-1"]


def test_applying_a_manifest_keeps_the_status() -> None:
    snapshot = dray.load(*CLUSTER, held(claim("a"), "node-1", "gpu-0")).with_applied(claim("a"))
    assert snapshot.claim("ml/a").status.allocation is not None
    assert snapshot.with_objects(claim("a")).claim("ml/a").status.allocation is None


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (lambda snapshot: snapshot.allocate("ml/b"), "no ResourceClaim ml/b; there is ml/a"),
        (lambda snapshot: snapshot.place("x/y"), "no Placement x/y; there is none at all"),
        (lambda snapshot: snapshot.without("node/none"), "no Node none; there is "),
        (lambda snapshot: snapshot.without("nonsense"), "'nonsense' is of no known kind"),
    ],
)
def test_what_is_not_there_is_said(action: Any, says: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        action(dray.load(*CLUSTER, claim("a")))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ({"kind": "ResourceClaim"}, "no apiVersion"),
        ({"apiVersion": "v1"}, "no kind"),
        ({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}, "a name is needed"),
        ({**claim("a"), "spec": 3}, "spec"),
    ],
)
def test_what_is_no_object_is_refused(manifest: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        dray.load(manifest)
    assert says in str(caught.value)


def test_a_missing_file_and_an_empty_directory_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(InputError, match=str(path)):
            dray.load(path)


def test_unknown_kinds_are_passed_over_and_listed() -> None:
    snapshot = dray.load(*CLUSTER, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    assert len(snapshot.ignored) == 1
    assert "Widget" in snapshot.ignored[0].why
    with pytest.raises(InputError, match="Widget"):
        snapshot.with_objects({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})


def test_place() -> None:
    group = "cluster.open-cluster-management.io"
    set_label = {f"{group}/clusterset": "all"}
    objects = [
        {"apiVersion": f"{group}/v1beta2", "kind": "ManagedClusterSet", "metadata": {"name": "all"}, "spec": {}},
        {
            "apiVersion": f"{group}/v1beta2",
            "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "all", "namespace": "apps"},
            "spec": {"clusterSet": "all"},
        },
        *(
            {
                "apiVersion": f"{group}/v1",
                "kind": "ManagedCluster",
                "metadata": {"name": name, "labels": set_label},
                "spec": {"hubAcceptsClient": True, "taints": taints},
            }
            for name, taints in (
                ("east", []),
                ("west", [{"key": "off", "effect": "NoSelect", "timeAdded": "2026-06-01T11:00:00Z"}]),
            )
        ),
        {
            "apiVersion": f"{group}/v1beta1",
            "kind": "Placement",
            "metadata": {"name": "web", "namespace": "apps"},
            "spec": {"tolerations": [{"key": "off", "operator": "Exists", "tolerationSeconds": 7200}]},
        },
    ]
    snapshot = dray.load(*objects)
    placed = snapshot.place("apps/web", now="2026-06-01T12:00:00Z")
    assert placed.decisions == ["east", "west"]
    assert placed.conditions["PlacementSatisfied"]["status"] == "True"
    assert placed.requeue_after == 3600
    later = snapshot.place("apps/web", now="2026-06-01T13:00:01Z")
    assert (later.decisions, later.requeue_after) == (["east"], None)
    assert "ran out" in str(later.explain())


def test_what_is_applied_leaves_labels_that_nobody_applied() -> None:
    """As kubectl apply does: only what the last manifest had, and this one has not, is taken away."""
    last = '{"metadata":{"labels":{"rack":"r1","old":"yes"}}}'
    there = builders.node("node-1", labels={"rack": "r1", "old": "yes", "kubernetes.io/arch": "amd64"})
    there["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": last, "note": "kept"}
    (after,) = dray.load(there).with_applied(builders.node("node-1", labels={"rack": "r2"})).objects(Node)
    assert after.metadata.labels == {"kubernetes.io/arch": "amd64", "rack": "r2"}
    assert after.metadata.annotations["note"] == "kept"
    never = dray.load(builders.node("node-1", labels={"a": "b"})).with_applied(builders.node("node-1"))
    assert [node.metadata.labels for node in never.objects(Node)] == [{"a": "b"}]


def test_what_is_applied_again_is_no_change() -> None:
    """What the server keeps of an object is not in manifests."""
    manifest = held(claim("a"), "node-1", "gpu-0")
    applied = json.dumps({"metadata": {"annotations": {}}})
    there = {
        "uid": "u",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "2026-06-01T12:00:00Z",
        "deletionTimestamp": "2026-06-01T12:00:00Z",
        "finalizers": ["resource.kubernetes.io/delete-protection"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p"}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied},
    }
    snapshot = dray.load({**manifest, "metadata": {**manifest["metadata"], **there}})
    assert not snapshot.differing(snapshot.with_applied(claim("a")))


def test_nodes_that_single_devices_name_are_there_in_files_without_nodes() -> None:
    places = [{**device(f"gpu-{number}"), "nodeName": f"node-{number}"} for number in range(2)]
    spread = builders.resource_slice("s", *places, perDeviceNodeSelection=True)
    snapshot = dray.load(device_class(), spread, claim("a"))
    assert snapshot.nodes() == ["node-0", "node-1"]
    assert snapshot.allocate("ml/a").node == "node-0"
    assert all(state.is_free for state in snapshot.device_states())


def test_devices_in_reach_of_a_node_are_those_that_it_can_use() -> None:
    """Of a node that is not there, those that are local to it."""
    shared = builders.resource_slice("rack", device("fpga"), allNodes=True)
    gone = resource_slice("node-9", device("lost"))
    snapshot = dray.load(builders.node("node-1"), resource_slice("node-1", device("gpu-0")), shared, gone)

    def reached(name: str) -> set[str]:
        return {state.device.id.device for state in snapshot.device_states(name)}

    assert reached("node-1") == {"gpu-0", "fpga"}
    assert reached("node-9") == {"lost"}
    assert reached("nobody") == set()


def test_objects_whose_names_are_still_to_be_made_are_told_apart(tmp_path: Path) -> None:
    one = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\nspec: {containers: [{name: c, image: i}]}\n"
    (tmp_path / "pods.yaml").write_text(f"{one}---\n{one}")
    assert [pod.metadata.name for pod in dray.load(tmp_path).objects(Pod)] == ["p-(pods.yaml:3)", "p-(pods.yaml:8)"]


@pytest.mark.parametrize(
    "kind", ["claim", "claims", "resourceclaim", "resourceclaims.resource.k8s.io", "ResourceClaim"]
)
def test_a_claim_may_be_called_as_the_commands_call_it(kind: str) -> None:
    snapshot = dray.load(claim("x"), claim("y"))
    assert snapshot.without(f"{kind}/ml/x").pending() == ["ml/y"]


@pytest.mark.parametrize(("pods", "told"), [(1, "(1 pod, 0 with"), (2, "(2 pods, 0 with")])
def test_pods_of_a_group_are_counted_in_words(pods: int, told: str) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    group = builders.manifest("scheduling.k8s.io/v1beta1", "PodGroup", "g", spec=spec)
    waiting = [builders.pod(f"p{one}", schedulingGroup={"podGroupName": "g"}) for one in range(pods)]
    assert told in explain_group(dray.load(group, *waiting), "default/g").text()

"""What users see of patched devices: slices as published, patches as written, and both put together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import run_here
from live_server import Kubectl, LiveServer

ROOT = Path(__file__).parents[2]
PATCH = ROOT / "examples" / "patches" / "resource-slice-patch.yaml"
BOTH = "resourceslices,resourceslicepatches"
PUBLISHED = {
    "attributes": {"firmware": {"string": "1.0"}, "model": {"string": "A1"}},
    "capacity": {"memory": {"value": "80Gi"}},
}
SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "patched-devices"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "worker-1",
        "pool": {"name": "worker-1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", **PUBLISHED}],
    },
}


@pytest.mark.req("5027-50", "5027-55")
def test_slices_and_patches_together_are_the_full_picture(kubectl: Kubectl, server: LiveServer, tmp_path: Path) -> None:
    kubectl("apply", "-f", "-", stdin=json.dumps(SLICE))
    kubectl("apply", "-f", str(PATCH))
    try:
        items = json.loads(kubectl("get", BOTH, "-o", "json"))["items"]
        look = ("get", "devices", "--node", "worker-1", "--kubeconfig", str(server.kubeconfig))
        live = json.loads(run_here(*look, "-o", "json").stdout)
        table = run_here(*look).stdout
    finally:
        kubectl("delete", "resourceslice/patched-devices", "resourceslicepatch/worker-1-rack")
    by_name = {item["metadata"]["name"]: item for item in items}
    published = by_name["patched-devices"]["spec"]["devices"][0]
    assert published == {"name": "gpu-0", **PUBLISHED}  # nothing tells of the patch here
    assert by_name["worker-1-rack"]["spec"]["devices"]["attributes"]["gpu.example.com/rack"] == {"int": 3}
    assert ("gpu-0", ["worker-1-rack"]) in [(row["name"], row["patchedBy"]) for row in live["items"]]

    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    offline = run_here("devices", str(dump), "--node", "worker-1").stdout
    assert "worker-1-rack" in offline
    assert "worker-1-rack" in table
    live_titles = table.splitlines()[0].replace("  BLOCKED BY", "")  # there is no such node, which a dump cannot know
    assert offline.splitlines()[0].split() == live_titles.split()
    (merged,) = json.loads(run_here("devices", str(dump), "--node", "worker-1", "-o", "json").stdout)["devices"]
    assert merged["patches"] == ["worker-1-rack"]
    assert sorted(merged["device"]["attributes"]) == ["model", "rack"]
    assert merged["device"]["capacity"]["memory"]["value"] == "64Gi"


@pytest.mark.req("5027-50")
def test_the_documentation_says_where_to_look() -> None:
    page = (ROOT / "docs" / "patches.md").read_text()
    assert f"kubectl get {BOTH} -o json | dray devices -" in page
    assert "dray get devices" in page

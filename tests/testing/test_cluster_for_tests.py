"""`dray.testing`: a cluster for other people's tests, with faults on request and time that can be moved on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dray.testing
from dray.api.kinds import NODES
from dray.api.status import ApiError
from patience import PATIENCE

POD = """
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: one-gpu}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one-gpu}
spec:
  devices:
    requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]
"""


TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: a-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
"""
TRAINER = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: trainer}
spec:
  replicas: 1
  selector: {matchLabels: {app: trainer}}
  template:
    metadata: {labels: {app: trainer}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: pause}]
      resourceClaims: [{name: gpu, resourceClaimTemplateName: a-gpu}]
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[dray.testing.Cluster]:
    with dray.testing.cluster(nodes=2) as running:
        yield running


def _named(name: str, kind: str = "ConfigMap", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


def test_a_manifest_runs_and_a_failing_device_drives_its_pod_out(cluster: dray.testing.Cluster) -> None:
    applied = cluster.apply(POD)
    assert [each["kind"] for each in applied] == ["Pod", "ResourceClaim"]
    pod = cluster.wait("pod/trainer", "Ready")
    claim = cluster.get("resourceclaim/one-gpu")
    [result] = claim["status"]["allocation"]["devices"]["results"]
    cluster.fail_device(pod["spec"]["nodeName"], result["device"])
    cluster.wait("pod/trainer", "deleted")
    cluster.delete("resourceclaims/one-gpu")


def test_objects_are_documents_listed_patched_and_seen_by_kubectl(
    cluster: dray.testing.Cluster, tmp_path: Path
) -> None:
    (tmp_path / "map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-file, labels: {a: b}}\n")
    cluster.apply(tmp_path / "map.yaml", [_named("from-list")], namespace="default")
    assert [each["metadata"]["name"] for each in cluster.list("configmaps", labels="a=b")] == ["from-file"]
    assert cluster.patch("cm/from-list", {"data": {"k": "v"}})["data"] == {"k": "v"}
    assert "from-list" in cluster.kubectl("get", "configmaps", "-o", "name")
    with pytest.raises(subprocess.CalledProcessError):
        cluster.kubectl("get", "configmap", "nowhere")


def test_the_typed_client_is_there_for_plain_tests_too(cluster: dray.testing.Cluster) -> None:
    listed = cluster.run(cluster.client.list(NODES))
    assert [node.metadata.name for node in listed.items] == ["node-1", "node-2"]


def test_requests_fail_as_often_as_asked(cluster: dray.testing.Cluster) -> None:
    cluster.apply(_named("kept"))
    cluster.fail_requests(418, method="GET", path="/configmaps/kept", times=1)
    with pytest.raises(ApiError) as caught:
        cluster.get("configmap/kept")
    assert caught.value.code == 418
    assert cluster.get("configmap/kept")["metadata"]["name"] == "kept"


def test_time_is_moved_on_and_a_lost_node_is_noticed(cluster: dray.testing.Cluster) -> None:
    cluster.lose_node("node-2")
    cluster.advance(90)
    ready = {"type": "Ready", "status": "Unknown"}
    cluster.wait("node/node-2", lambda node: any(ready.items() <= one.items() for one in node["status"]["conditions"]))
    cluster.restore_node("node-2")
    cluster.wait("node/node-2", "Ready")
    with pytest.raises(ValueError, match="only be moved on"):
        cluster.advance(-1)


def test_the_sketch_of_somebody_elses_test(cluster: dray.testing.Cluster, tmp_path: Path) -> None:
    """A workload whose GPU fails goes on where there is another: a directory, a failing device, a pod on a node."""
    (tmp_path / "claims.yaml").write_text(TEMPLATE)
    (tmp_path / "trainer.yaml").write_text(TRAINER)
    (tmp_path / "notes.txt").write_text("not a manifest")
    cluster.apply(tmp_path)
    first = cluster.wait("pod/trainer-0", "Ready")["spec"]["nodeName"]
    other = {"node-1": "node-2", "node-2": "node-1"}[first]
    for number in range(8):
        cluster.fail_device(first, f"gpu-{number}")
    cluster.wait("pod/trainer-0", "Ready", node=other, timeout=PATIENCE)
    cluster.delete("statefulset/trainer")
    cluster.wait("pod/trainer-0", "deleted")


def test_what_cannot_be_is_said(cluster: dray.testing.Cluster, tmp_path: Path) -> None:
    cluster.apply(_named("patient"))
    with pytest.raises(dray.testing.WaitError, match=r"configmap/patient is not as wanted \(Ready\) after 0 s"):
        cluster.wait("configmap/patient", "Ready", timeout=0)
    with pytest.raises(dray.testing.WaitError, match="pod/nobody does not exist"):
        cluster.wait("pod/nobody", "Ready", timeout=0)
    with pytest.raises(ValueError, match="write KIND/NAME"):
        cluster.get("pods")
    with pytest.raises(ValueError, match="no resource 'unicorn'"):
        cluster.get("unicorn/one")
    with pytest.raises(ValueError, match=r"needs kind and metadata\.name"):
        cluster.apply({"kind": "Pod"})
    with pytest.raises(ValueError, match=r"node 'node-1' has no device 'gpu-99'; it has gpu-0, gpu-1"):
        cluster.fail_device("node-1", "gpu-99")
    with pytest.raises(ValueError, match="node 'node-9' has no device 'gpu-0', nor any other"):
        cluster.fail_device("node-9", "gpu-0")
    with pytest.raises(ValueError, match="has no manifests"):
        cluster.apply(tmp_path)
    with pytest.raises(dray.testing.WaitError, match=r"\(on node-9\) after 0 s; it is on no node"):
        cluster.wait("configmap/patient", node="node-9", timeout=0)
    for code, times in ((200, 1), (600, 1), (500, 0)):
        with pytest.raises(ValueError, match="from 400 to 599, once or more"):
            cluster.fail_requests(code, times=times)
    with pytest.raises(subprocess.CalledProcessError) as failed:
        cluster.kubectl("get", "unicorns")
    assert "unicorns" in failed.value.__notes__[0]
    for nodes in (-1, "two"):
        with pytest.raises(ValueError, match="nodes is a number from 0 on"), dray.testing.cluster(nodes=nodes):  # type: ignore[arg-type]
            pass


async def test_coroutines_have_the_same_on_their_own_loop() -> None:
    async with dray.testing.async_cluster(nodes=0) as cluster:
        await cluster.apply(_named("mine"))
        assert (await cluster.wait("configmap/mine", lambda _found: True))["metadata"]["name"] == "mine"
        assert "mine" in await cluster.kubectl("get", "configmaps")
        await cluster.delete("configmap/mine")
        await cluster.wait("configmap/mine", "deleted")


def test_coroutines_and_plain_tests_have_the_same_calls() -> None:
    plain, awaited = (
        {name for name, found in vars(kind).items() if callable(found) and not name.startswith("_")}
        for kind in (dray.testing.Cluster, dray.testing.AsyncCluster)
    )
    assert plain - awaited == {"run"}  # `await` does it in coroutines
    assert awaited <= plain


async def test_watches_break_off_and_go_on_where_they_were() -> None:
    async with dray.testing.async_cluster(nodes=0) as cluster:
        revision = (await cluster.client.list(NODES)).revision
        watch = cluster.client.watch(NODES, revision=revision)
        await cluster.apply(_named("first", "Node"))
        seen = [(await anext(watch)).object.metadata.name]
        cluster.break_watches()
        with pytest.raises(OSError, match=r"."):
            seen += [event.object.metadata.name async for event in watch]
        await cluster.apply(_named("second", "Node"))
        async for event in cluster.client.watch(NODES, revision=revision):
            seen.append(event.object.metadata.name)
            if "second" in seen:
                break
    assert seen[0] == "first"


def test_in_a_process_of_its_own_time_and_answers_are_as_they_are() -> None:
    with dray.testing.cluster(process=True) as cluster:
        assert [node["metadata"]["name"] for node in cluster.list("nodes")] == ["node-1"]
        with pytest.raises(RuntimeError, match="process=True"):
            cluster.advance(1)
        with pytest.raises(RuntimeError, match="process=True"):
            cluster.fail_requests()


FIXTURES = """
import pytest

pytestmark = pytest.mark.dray(nodes=3)

@pytest.mark.dray(nodes=2)
def test_one(dray_cluster):
    assert len(dray_cluster.list("nodes")) == 2

def test_shared(dray_session_cluster, dray_module_cluster):
    assert len(dray_module_cluster.list("nodes")) == 3
    assert len(dray_session_cluster.list("nodes")) == 0

@pytest.fixture(scope="session")
def dray_session_options():
    return {"nodes": 0}
"""


def test_pytest_has_fixtures_for_a_test_a_module_and_a_session(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FIXTURES)
    idle = ("-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:hypothesispytest")  # cost a second to load
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *idle, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr

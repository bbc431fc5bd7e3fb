"""The operator on a cluster of its own: run with `pytest examples/operator`."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NOTEBOOK = """
apiVersion: example.com/v1
kind: Notebook
metadata: {name: lab}
spec: {image: jupyter}
"""


@pytest.mark.dray(nodes=1)
def test_a_notebook_whose_gpu_fails_goes_on_with_another(dray_cluster):
    dray_cluster.apply(HERE / "definition.yaml", NOTEBOOK)
    with operator(dray_cluster):
        first = dray_cluster.wait("pod/lab", "Ready", timeout=120)  # the operator has to start
        failed = gpu_of(dray_cluster, first)
        dray_cluster.fail_device(first["spec"]["nodeName"], failed)
        second = dray_cluster.wait("pod/lab", lambda pod: pod["metadata"]["uid"] != first["metadata"]["uid"])
        assert gpu_of(dray_cluster, dray_cluster.wait("pod/lab", "Ready")) != failed
        assert second["metadata"]["ownerReferences"][0]["kind"] == "Notebook"


@contextmanager
def operator(cluster):
    """The operator as a process, as it would run in a pod."""
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--all-namespaces", HERE / "notebooks.py"]
    process = subprocess.Popen(command, env=os.environ | {"KUBECONFIG": str(cluster.kubeconfig)})
    try:
        yield
    finally:
        process.terminate()
        process.wait(120)


def gpu_of(cluster, pod):
    """The device that a pod has got."""
    [status] = pod["status"]["resourceClaimStatuses"]
    claim = cluster.get(f"resourceclaim/{status['resourceClaimName']}")
    return claim["status"]["allocation"]["devices"]["results"][0]["device"]

"""The driver on a cluster of its own: run with `pytest examples/drivers`."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.dray(nodes=1, profile="cpu-only")
def test_a_pod_gets_a_gpu_of_the_driver_and_loses_it_when_it_is_not_well(dray_cluster):
    with tempfile.TemporaryDirectory(prefix="gpu-") as directory, driver(dray_cluster, Path(directory)):
        dray_cluster.apply(HERE / "fake_gpu.yaml", HERE / "one-gpu.yaml")
        pod = dray_cluster.wait("pod/hello", lambda pod: pod["spec"].get("nodeName"))
        [status] = pod["status"]["resourceClaimStatuses"]
        claim = dray_cluster.get(f"resourceclaim/{status['resourceClaimName']}")
        [result] = claim["status"]["allocation"]["devices"]["results"]
        assert (result["driver"], result["pool"]) == ("gpu.example.com", "node-1")
        (Path(directory) / "health").write_text(json.dumps({"gpu-0": "NoExecute", "gpu-1": "NoExecute"}))
        dray_cluster.wait("pod/hello", "deleted")


@contextmanager
def driver(cluster, directory):
    """The driver as a process, as it would run in a DaemonSet."""
    (directory / "registry").mkdir()
    command = [sys.executable, HERE / "fake_gpu.py", "--node-name=node-1", f"--kubeconfig={cluster.kubeconfig}"]
    command += [f"--{name}-dir={directory / name}" for name in ("plugin", "registry", "cdi")]
    process = subprocess.Popen(command, env=os.environ | {"FAKE_GPU_HEALTH": f"{directory}/health"})
    try:
        yield
    finally:
        process.terminate()
        process.wait(120)

"""Health and metrics: of components that run alone, and of everything in `dray up`."""

from __future__ import annotations

import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from dray_process import DrayProcess, run_dray
from live_server import Kubectl, LiveServer, running_server
from patience import KUBECTL_PATIENCE, PATIENCE, eventually
from scale_up_objects import template, waiting


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    directory = tmp_path_factory.mktemp("endpoints") / "state"
    with running_server(directory, "--nodes", "1", program="up") as server:
        yield server


@contextmanager
def component(server: LiveServer, log: Path, name: str, *options: str) -> Iterator[str]:
    """The address of the endpoints of a component of its own."""
    words = (name, "--kubeconfig", str(server.kubeconfig), "--metrics-port", "0", *options)
    with log.open("w") as sink, DrayProcess(*words, stdout=subprocess.PIPE, stderr=sink) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+(?=/metrics)", process.stdout.readline())
            assert found is not None, log.read_text()
            yield found[0]
        except BaseException as error:
            error.add_note(f"It said: {log.read_text()[-8000:]}")
            raise
        finally:
            process.terminate()
            process.wait(PATIENCE)


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def until_ready(address: str, part: str) -> None:
    """It leads, and a part of it is well."""
    eventually(lambda: f"[+]{part} ok" in get(f"{address}/readyz?verbose")[1], part)
    assert get(f"{address}/readyz") == (200, "ok")


def pod_for(scheduler: str, namespace: str) -> str:
    one = template("one")
    one["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "gpu.example.com"
    pods = [
        waiting("fits", claim_template="one", schedulerName=scheduler),
        waiting("large", cpu=999, schedulerName=scheduler),
    ]
    for obj in (one, *pods):
        obj["metadata"]["namespace"] = namespace
    return yaml.safe_dump_all([one, *pods])


@pytest.mark.req("4381-195", "4381-196", "4381-197", "4381-222", "4381-258", "implied-15")
def test_a_scheduler_of_its_own(server: LiveServer, tmp_path: Path) -> None:
    kubectl, namespace, log = Kubectl(server, tmp_path), server.new_namespace(), tmp_path / "log"
    options = ("--scheduler-name", "second", "--lease", "second", "-v", "5")
    with component(server, log, "scheduler", *options) as address:
        until_ready(address, "informers")
        assert get(f"{address}/healthz") == (200, "ok")
        assert get(f"{address}/livez") == (200, "ok")
        assert get(f"{address}/else")[0] == 404
        kubectl("apply", "-f", "-", stdin=pod_for("second", namespace))
        kubectl("wait", "-n", namespace, "pod/fits", "--for=condition=Ready", KUBECTL_PATIENCE)
        kubectl("wait", "-n", namespace, "pod/large", "--for=condition=PodScheduled=False", KUBECTL_PATIENCE)
        page = get(f"{address}/metrics")[1]
    assert 'scheduler_schedule_attempts_total{profile="second",result="scheduled"} 1.0' in page
    assert 'scheduler_pending_pods{queue="unschedulable"} 1.0' in page
    assert 'scheduler_unschedulable_pods{plugin="DynamicResources",profile="second"} 0.0' in page
    assert 'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="second"} 1.0' in page
    assert 'extension_point="Filter"' in page
    assert "process_resident_memory_bytes" in page
    steps = [line.split()[2].rstrip(":") for line in log.read_text().splitlines() if f"{namespace}/fits" in line]
    assert steps[-7:-1] == ["PreEnqueue", "PreFilter", "Filter", "Reserve", "PreBind", "Bind"]


@pytest.mark.req("4381-192", "implied-15")
def test_controllers_of_their_own(server: LiveServer, tmp_path: Path) -> None:
    options = ("--controllers", "resourceclaim-controller", "--lease", "second-controllers")
    with component(server, tmp_path / "log", "controllers", *options) as address:
        until_ready(address, "resourceclaim-controller")
        page = get(f"{address}/metrics")[1]
    for name in ("depth", "unfinished_work_seconds", "queue_duration_seconds_count", "work_duration_seconds_count"):
        assert f'workqueue_{name}{{name="resource_claim"}}' in page
    assert "resourceclaim_controller_allocated_resource_claims" in page


@pytest.mark.req("4381-190", "4381-192", "4381-195", "4381-197")
def test_everything_is_on_one_page_in_dray_up(server: LiveServer) -> None:
    page = server.request("GET", "/metrics").body.decode()
    for name in (
        "apiserver_request_total",
        "scheduler_pending_pods",
        "resourceclaim_controller_resource_claims",
        'workqueue_depth{name="resource_claim"}',
    ):
        assert name in page
    # Each family appears once; Prometheus refuses a page that has one twice.
    families = re.findall(r"^# TYPE (\S+) ", page, re.MULTILINE)
    assert len(families) == len(set(families))


def test_a_port_that_is_taken_is_said(server: LiveServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_dray("scheduler", "--kubeconfig", server.kubeconfig, "--metrics-port", str(port))
    assert done.returncode == 2
    assert done.stderr.startswith(f"dray: --metrics-port: cannot listen on 127.0.0.1:{port}")


@pytest.mark.req("4381-243", "5055-138", "5027-54")
def test_an_idle_cluster_is_quiet_and_few_watch_rules_and_patches(server: LiveServer) -> None:
    """Nodes renew their leases; apart from that nothing is written, and watchers do not grow with nodes."""

    def revision() -> int:
        return int(server.request("GET", "/api/v1/pods").json["metadata"]["resourceVersion"])

    leases = server.request("GET", "/apis/coordination.k8s.io/v1/leases").json["items"]
    deadline = time.monotonic() + PATIENCE
    while True:
        before = revision()
        time.sleep(1.5)
        if revision() - before <= len(leases):
            break
        assert time.monotonic() < deadline
    page = server.request("GET", "/metrics").body.decode()
    for resource in ("devicetaintrules.resource.k8s.io", "resourceslicepatches.resource.k8s.io"):
        [watchers] = re.findall(rf'^dray_store_watchers\{{resource="{resource}"\}} (\S+)$', page, re.MULTILINE)
        assert 1 <= float(watchers) <= 4

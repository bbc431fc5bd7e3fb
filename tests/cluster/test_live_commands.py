"""Commands that look at a running cluster: explain, scale-up, nodes; as `dray …` and as `kubectl dray …`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import builders
from commands import run_here
from dray.cli.main import app
from dray_process import DRAY
from live_server import Kubectl, LiveServer, running_server
from patience import PATIENCE, eventually
from scale_up_objects import template, waiting


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    directory = tmp_path_factory.mktemp("live") / "state"
    with running_server(directory, "--nodes", "2", program="up") as server:
        yield server


def two_pods_want_six(server: LiveServer, kubectl: Kubectl) -> str:
    """A namespace with three pods, of which two fit."""
    namespace = server.new_namespace()
    six = template("six", 6)
    six["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "gpu.example.com"
    objects = [six, *(waiting(f"pod-{number}", claim_template="six") for number in range(3))]
    for obj in objects:
        obj["metadata"]["namespace"] = namespace
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    eventually(lambda: kubectl("get", "pods", "-n", namespace).count("Running") == 2)
    return namespace


def pending(kubectl: Kubectl, namespace: str) -> str:
    names = kubectl("get", "pods", "-n", namespace, "--field-selector=status.phase=Pending", "-o", "name").split()
    assert len(names) == 1
    return names[0].removeprefix("pod/")


@pytest.mark.req("4381-199", "4381-200", "4381-221")
def test_explain_and_scale_up_of_a_running_cluster(server: LiveServer, tmp_path: Path) -> None:
    kubectl = Kubectl(server, tmp_path)
    namespace = two_pods_want_six(server, kubectl)
    name = pending(kubectl, namespace)
    told = run_here("explain", "pod", f"{namespace}/{name}", "--kubeconfig", server.kubeconfig)
    assert told.returncode == 1, told.stderr
    assert "0/2 nodes are available: 2 cannot allocate all claims." in told.stdout
    assert "16 of 16 devices match; 12 in use, 4 free." in told.stdout
    claim = kubectl(
        "get", "pod", name, "-n", namespace, "-o", "jsonpath={.status.resourceClaimStatuses[0].resourceClaimName}"
    )
    told = run_here("explain", "claim", f"{namespace}/{claim}", "--kubeconfig", server.kubeconfig)
    assert told.returncode == 1, told.stderr
    assert f"{namespace}/{claim} is pending: request" in told.stdout
    # The same words, shortened, are in the pod's message and event.
    eventually(lambda: "16 of 16 devices match; 12 in use, 4 free" in kubectl("describe", "pod", name, "-n", namespace))
    groups = tmp_path / "groups.yaml"
    spec = {"fromNode": "node-1"}
    groups.write_text(
        yaml.safe_dump({"apiVersion": "dray.dev/v1", "kind": "NodeGroup", "metadata": {"name": "more"}, "spec": spec})
    )
    before = kubectl("get", "nodes,resourceslices,resourceclaims", "-A", "-o", "name")
    planned = run_here("scale-up", "-f", groups, "--kubeconfig", server.kubeconfig, "-o", "json")
    assert planned.returncode == 0, planned.stderr
    answer = json.loads(planned.stdout)
    assert answer["placements"] == {f"{namespace}/{name}": "more#1"}
    assert kubectl("get", "nodes,resourceslices,resourceclaims", "-A", "-o", "name") == before
    kubectl("delete", "namespace", namespace, "--wait=false")


def test_simulated_nodes_are_stopped_and_started(server: LiveServer, tmp_path: Path) -> None:
    kubectl = Kubectl(server, tmp_path)

    def renewed() -> str:
        return kubectl("get", "lease", "node-2", "-n", "kube-node-lease", "-o", "jsonpath={.spec.renewTime}")

    def switch(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_here("nodes", *arguments, "--kubeconfig", server.kubeconfig)

    eventually(lambda: "node-2" in kubectl("get", "leases", "-n", "kube-node-lease", "-o", "name"))
    stopped = switch("stop", "node-2")
    assert (stopped.returncode, stopped.stdout) == (0, "node-2 is stopped.\n")
    assert switch("stop", "node-2").stdout == "node-2 was already stopped.\n"
    silent_since = renewed()
    kubectl(
        "apply", "-f", "-", stdin=yaml.safe_dump({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}})
    )
    refused = switch("stop", "node-1", "real")
    assert refused.returncode == 2
    assert "node real is not simulated" in refused.stderr
    missing = switch("start", "nowhere")
    assert missing.returncode == 2
    assert missing.stderr.startswith("dray: no node nowhere; there is node-1")
    assert switch("start", "node-1").stdout == "node-1 was already running.\n", "nothing was changed before"
    assert renewed() == silent_since
    assert switch("start", "node-2").stdout == "node-2 is running.\n"
    eventually(lambda: renewed() != silent_since)
    kubectl("delete", "node", "real")


def test_kubectl_offers_it_as_its_own_command(server: LiveServer, tmp_path: Path) -> None:
    kubectl = Kubectl(server, tmp_path)
    path = f"{Path(DRAY).parent}{os.pathsep}{os.environ['PATH']}"
    assert shutil.which("kubectl-dray", path=path), "run make setup"
    usage = kubectl("dray", "--help", PATH=path)
    assert "Usage: kubectl dray [OPTIONS] COMMAND" in usage
    nodes = kubectl("dray", "get", "nodes", PATH=path)
    assert nodes.startswith("NODE")
    assert "node-1" in nodes
    failed = kubectl.run("dray", "explain", "pod", "default/none", PATH=path)
    assert failed.returncode == 2
    assert "no Pod default/none; there is" in failed.stderr


def test_viewers_see_what_they_may_and_readers_everything(server: LiveServer, tmp_path: Path) -> None:
    kubectl = Kubectl(server, tmp_path)
    namespace = two_pods_want_six(server, kubectl)
    name = f"{namespace}/{pending(kubectl, namespace)}"
    configs = {}
    for who, bind in (("viewer", ("rolebinding", "-n", namespace)), ("reader", ("clusterrolebinding",))):
        kubectl("create", "serviceaccount", who, "-n", namespace)
        role = {"viewer": "view", "reader": "dray-reader"}[who]
        kubectl("create", *bind, f"{namespace}-{who}", f"--clusterrole={role}", f"--serviceaccount={namespace}:{who}")
        config = yaml.safe_load(server.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": kubectl("create", "token", who, "-n", namespace).strip()}
        configs[who] = tmp_path / f"{who}.kubeconfig"
        configs[who].write_text(yaml.safe_dump(config))
    seen = run_here("get", "claims", "-n", namespace, "--kubeconfig", configs["viewer"])
    assert (seen.returncode, seen.stdout.count(namespace)) == (0, 3), seen.stderr
    told = run_here("explain", "pod", name, "--kubeconfig", configs["viewer"])
    assert told.returncode == 2
    assert "nodes is forbidden" in told.stderr
    assert "ClusterRole dray-reader" in told.stderr
    told = run_here("get", "nodes", "--kubeconfig", configs["viewer"])
    assert (told.returncode, "ClusterRole dray-reader" in told.stderr) == (2, True), told.stderr
    told = run_here("explain", "pod", name, "--kubeconfig", configs["reader"])
    assert (told.returncode, told.stderr) == (1, "")
    role = kubectl("get", "clusterrole", "dray-reader", "-o", "json")
    less = json.loads(role)
    less["metadata"] = {"name": f"{namespace}-less"}
    less["rules"] = [rule for rule in less["rules"] if "resource.k8s.io" not in rule["apiGroups"]]
    devices = ["deviceclasses", "resourceslices", "resourceclaims", "resourceclaimtemplates"]
    less["rules"].append({"apiGroups": ["resource.k8s.io"], "resources": devices, "verbs": ["get", "list", "watch"]})
    kubectl("apply", "-f", "-", stdin=json.dumps(less))
    kubectl("delete", "clusterrolebinding", f"{namespace}-reader")
    binding = f"--serviceaccount={namespace}:reader"
    kubectl("create", "clusterrolebinding", f"{namespace}-less", f"--clusterrole={namespace}-less", binding)
    for words in (("explain", "pod", name), ("get", "devices")):
        told = run_here(*words, "--kubeconfig", configs["reader"])
        assert told.returncode == (1 if words[0] == "explain" else 0), told.stderr
        assert "left out, because you may not list them: devicetaintrules.resource.k8s.io, res" in told.stderr
    kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def offering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with a pod and a claim that are offered, a rule and a node that evict, and a rule that does not.

    It is not that of the other tests, which want pods to run on that node.
    """
    with running_server(tmp_path_factory.mktemp("offering") / "state", "--nodes", "2", program="up") as server:
        _fill(server)
        yield server


def _fill(server: LiveServer) -> None:
    pod = builders.pod("seen", schedulingGates=[{"name": "example.com/later"}])
    made = [
        server.request("POST", "/api/v1/namespaces/default/pods", pod),
        server.request(
            "POST",
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
            builders.claim("wanted", builders.request("gpu")),
        ),
        *(
            server.request(
                "POST",
                "/apis/resource.k8s.io/v1/devicetaintrules",
                builders.taint_rule(name, {"pool": "nowhere"}, builders.taint("k", effect)),
            )
            for name, effect in (("evicts", "NoExecute"), ("keeps-away", "NoSchedule"))
        ),
    ]
    assert [answer.code for answer in made] == [201] * 4, made[-1].body
    drained = {"metadata": {"annotations": {"dray.dev/drain": "k:NoSchedule"}}}
    merge = "application/merge-patch+json"
    states: tuple[tuple[str, str, dict[str, Any]], ...]
    states = (("node-1", "NoSchedule", drained), ("node-2", "NoExecute", {}))
    for node, effect, more in states:
        path, taints = f"/api/v1/nodes/{node}", {**more, "spec": {"taints": [{"key": "k", "effect": effect}]}}
        eventually(partial(_is_changed, server, path, taints, merge), "the node to come")


def _is_changed(server: LiveServer, path: str, change: dict[str, Any], media_type: str) -> bool:
    return server.request("PATCH", path, change, media_type).code == 200


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("dray drain node ", ["node-1", "node-2"]),
        ("dray untaint node ", ["node-1", "node-2"]),
        ("dray drain pause ", ["node/node-1"]),
        ("dray cancel node/", ["node/node-1", "node/node-2"]),
        ("dray get devices --node node-2", ["node-2"]),
        ("dray explain pod def", ["default/seen"]),
        ("dray explain claim ", ["default/wanted"]),
        ("dray taint device --device gpu-1", ["gpu-1"]),
        ("dray drain device --driver ", ["gpu.example.com"]),
        ("dray untaint device --pool ", ["node-1", "node-2"]),
        ("dray taint device --class gpu.", ["gpu.example.com"]),
        ("dray up --profile gpu", ["gpu-8", "gpu-nic"]),
        ("dray confirm ", ["node/node-2", "rule/evicts"]),
        ("dray cancel rule/", ["rule/evicts"]),
        ("dray untaint device --rule ", ["evicts", "keeps-away"]),
        ("dray what-if --delete node", ["node/node-1", "node/node-2"]),
        ("dray what-if --delete rule/", ["rule/evicts", "rule/keeps-away"]),
        ("dray what-if --delete po/de", ["po/default/seen"]),
        ("dray nodes stop ", ["node-1", "node-2"]),
        ("dray get claims -n kube-sy", ["kube-system"]),
    ],
)
def test_shells_are_offered_what_there_is(offering: LiveServer, words: str, offered: list[str]) -> None:
    asked = {"_DRAY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    environment = {**asked, "KUBECONFIG": str(offering.kubeconfig)}

    def offers() -> bool:
        done = CliRunner().invoke(app, [], env=environment, prog_name="dray")
        return done.stdout.split()[: len(offered)] == offered

    eventually(offers)  # nothing is offered where a busy server takes its time


def test_bash_asks_for_it(offering: LiveServer) -> None:
    script = """
    eval "$(dray --show-completion bash)"
    COMP_WORDS=(dray explain pod "def"); COMP_CWORD=3
    _dray_completion dray
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    place = f"{Path(DRAY).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": place, "KUBECONFIG": str(offering.kubeconfig)}

    def offers() -> bool:
        command = ["bash", "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment, check=True)
        return done.stdout.split() == ["default/seen"]

    eventually(offers)

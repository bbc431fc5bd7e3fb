"""Stock kubectl writing manifests: apply in both ways, diff, edit, explain."""

from __future__ import annotations

import json

import pytest

import builders
from live_server import Kubectl, LiveServer

MANIFESTS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: claim, labels: {app: a}}
spec:
  devices:
    requests:
    - name: one
      exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: pod}
spec:
  containers:
  - {name: main, image: busybox}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: red, size: "1"}
"""
KINDS = ("resourceclaim/claim", "pod/pod", "configmap/settings")


def rule(name: str, value: str = "v") -> str:
    tainted = builders.taint("example.com/broken", "NoSchedule", value=value)
    return json.dumps(builders.taint_rule(name, {"driver": "gpu.example.com"}, tainted))


@pytest.mark.req("implied-1")
def test_apply_creates_then_leaves_alone_then_changes(kubectl: Kubectl, namespace: str) -> None:
    def apply(text: str) -> dict[str, str]:
        said = kubectl("apply", "-n", namespace, "-f", "-", stdin=text)
        return dict(line.replace(".resource.k8s.io", "").rsplit(" ", 1) for line in said.splitlines())

    assert apply(MANIFESTS) == dict.fromkeys(KINDS, "created")
    assert apply(MANIFESTS) == dict.fromkeys(KINDS, "unchanged")
    changed = apply(MANIFESTS.replace("colour: red", "colour: blue").replace(', size: "1"', ""))
    assert changed == dict.fromkeys(KINDS, "unchanged") | {"configmap/settings": "configured"}
    data = kubectl("get", "cm", "settings", "-n", namespace, "-o", "jsonpath={.data}")
    assert json.loads(data) == {"colour": "blue"}


def test_apply_prunes_and_merges_lists_by_key(kubectl: Kubectl, namespace: str) -> None:
    # The three-way merge needs patchMergeKey from our OpenAPI: containers merge by name, not by position.
    pod = MANIFESTS.split("---")[1]
    kubectl("apply", "-n", namespace, "-f", "-", stdin=pod)
    kubectl("apply", "-n", namespace, "-f", "-", stdin=pod.replace("image: busybox", "image: other"))
    shown = json.loads(kubectl("get", "pod", "pod", "-n", namespace, "-o", "json"))
    (container,) = shown["spec"]["containers"]
    assert container["image"] == "other"
    assert container["terminationMessagePath"] == "/dev/termination-log"


def test_server_side_apply_conflicts_until_forced(kubectl: Kubectl) -> None:
    mine = ("apply", "--server-side", "-f", "-")
    kubectl(*mine, "--field-manager=first", stdin=rule("contested"))
    refused = kubectl.run(*mine, "--field-manager=second", stdin=rule("contested", "w"))
    assert refused.returncode != 0
    assert ".spec.taint.value" in refused.stderr
    kubectl(*mine, "--field-manager=second", "--force-conflicts", stdin=rule("contested", "w"))
    assert kubectl("get", "devicetaintrule", "contested", "-o", "jsonpath={.spec.taint.value}") == "w"


def test_apply_can_change_over_to_the_server_side(kubectl: Kubectl, namespace: str) -> None:
    kubectl("apply", "-n", namespace, "-f", "-", stdin=MANIFESTS)
    done = kubectl.run("apply", "--server-side", "--force-conflicts", "-n", namespace, "-f", "-", stdin=MANIFESTS)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr  # what admission added to the pod is nobody's, so applying leaves it alone
    assert done.stdout.count("serverside-applied") == 3


def test_diff_shows_what_apply_would_do(kubectl: Kubectl, namespace: str) -> None:
    kubectl("apply", "-n", namespace, "-f", "-", stdin=MANIFESTS)
    assert kubectl.run("diff", "-n", namespace, "-f", "-", stdin=MANIFESTS).returncode == 0
    other = kubectl.run("diff", "-n", namespace, "-f", "-", stdin=MANIFESTS.replace("red", "green"))
    assert other.returncode == 1, other.stderr
    assert "-  colour: red" in other.stdout
    assert "+  colour: green" in other.stdout
    assert kubectl("get", "cm", "settings", "-n", namespace, "-o", "jsonpath={.data.colour}") == "red"


def test_unknown_fields_are_refused_by_name(kubectl: Kubectl, namespace: str) -> None:
    wrong = MANIFESTS.split("---")[0].replace("spec:", "spec:\n  colour: red")
    refused = kubectl.run("create", "-n", namespace, "-f", "-", stdin=wrong)
    assert refused.returncode == 1
    assert "colour" in refused.stderr


def test_dry_runs_store_nothing(kubectl: Kubectl, server: LiveServer, namespace: str) -> None:
    said = kubectl("create", "-n", namespace, "--dry-run=server", "-f", "-", stdin=MANIFESTS)
    assert said.count("created (server dry run)") == 3
    assert server.request("GET", f"/api/v1/namespaces/{namespace}/pods/pod").code == 404


@pytest.mark.req("implied-1")
def test_edit_changes_one_field(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-n", namespace, "-f", "-", stdin=MANIFESTS)
    said = kubectl("edit", "cm", "settings", "-n", namespace, KUBE_EDITOR="sed -i s/red/black/")
    assert said == "configmap/settings edited\n"
    assert kubectl("get", "cm", "settings", "-n", namespace, "-o", "jsonpath={.data.colour}") == "black"


@pytest.mark.req("implied-1")
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("resourceclaim.spec.devices.requests", "exactly"),
        ("resourceslice.spec.taints.taint", "effect"),
        ("devicetaintrule.spec.deviceSelector", "driver"),
        ("placement.spec", "tolerations"),
        ("pod.spec.containers", "image"),
    ],
)
def test_explain_tells_fields_and_what_they_are_for(kubectl: Kubectl, path: str, said: str) -> None:
    text = kubectl("explain", path)
    assert said in text
    assert "<no description>" not in text
    assert "DESCRIPTION" in text

"""`dray what-if`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import builders
from dray.cli.main import app

EXAMPLES = Path(__file__).parents[3] / "examples"
CLUSTER = str(EXAMPLES / "cluster")
RETIRE = EXAMPLES / "what-if" / "retire-node-1.yaml"


def dray(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["what-if", "-f", CLUSTER, *arguments], input=stdin)


def test_a_rule_that_evicts_is_exit_code_1() -> None:
    done = dray("--apply", str(RETIRE))
    assert done.exit_code == 1
    assert "Rule retire-node-1 selects 4 devices, 3 of them allocated. It evicts 2 pods in 1 namespace." in done.stdout
    lines = done.stdout.splitlines()
    assert lines[-4].split() == ["ml/trainer-1", "ml/train-1", "node-1/gpu-0,", "node-1/gpu-1", "at", "once", "no"]
    assert lines[-3].endswith("in 5 min  yes: node-2")
    assert lines[-1].startswith("Note: ml/trainer-1 fits nowhere else (0/4 nodes are available: ")


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("NoExecute", "NoExec", 'spec.taint.effect: Unsupported value: "NoExec"'),
        ("driver:", "drivr:", 'unknown field "spec.deviceSelector.drivr"'),
    ],
)
def test_what_an_api_server_would_refuse_is_said(right: str, wrong: str, says: str, tmp_path: Path) -> None:
    changed = tmp_path / "rule.yaml"
    changed.write_text(RETIRE.read_text().replace(right, wrong))
    for given in (str(changed), "-"):
        done = dray("--apply", given, stdin=changed.read_text())
        assert "an API server would refuse DeviceTaintRule retire-node-1: " in done.stderr
        assert says in done.stderr
    assert not dray("--apply", str(RETIRE)).stderr


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"priorityClassName": "none"}, "spec.priorityClassName: there is no PriorityClass none."),
        ({"priorityClassName": "high", "priority": 7}, "spec.priority: its class says 100, not 7. Leave it out."),
        (
            {"priorityClassName": "high", "preemptionPolicy": "Never"},
            "spec.preemptionPolicy: its class says PreemptLowerPriority, not Never. Leave it out.",
        ),
        ({"priorityClassName": "high", "priority": 100}, ""),
        ({}, ""),
    ],
)
@pytest.mark.parametrize("is_going", [False, True])
def test_what_admission_would_refuse_is_said(spec: dict[str, Any], says: str, is_going: bool, tmp_path: Path) -> None:
    namespace = builders.manifest("v1", "Namespace", "ml", "")
    if is_going:
        namespace["metadata"]["deletionTimestamp"] = "2026-06-01T12:00:00Z"
        says = "metadata.namespace: ml is being deleted."
    high = {**builders.manifest("scheduling.k8s.io/v1", "PriorityClass", "high", ""), "value": 100}
    there = tmp_path / "cluster.json"
    there.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [namespace, high]}))
    new = json.dumps(builders.pod("new", namespace="ml", **spec))
    done = CliRunner().invoke(app, ["what-if", "-f", str(there), "--apply", "-"], input=new)
    assert done.exit_code == 0, done.output
    assert done.stderr == (f"dray: an API server would refuse Pod ml/new: {says}\n" if says else "")


@pytest.mark.req("5055-105")
def test_a_rule_without_effect_hurts_nobody_and_says_both_counts() -> None:
    done = dray("--apply", "-", stdin=RETIRE.read_text().replace("NoExecute", "None"))
    assert done.exit_code == 0
    assert "selects 4 devices, 3 of them allocated. Its effect is None" in done.stdout
    assert "would evict 2 pods in 1 namespace" in done.stdout


@pytest.mark.parametrize("kind", ["devicetaintrule", "rule"])
def test_taking_something_away(kind: str) -> None:
    done = dray("--delete", f"{kind}/rack-3-maintenance")
    assert done.exit_code == 0
    assert "ml/train-7  did not fit  fits on node-3" in done.stdout


def test_for_programs() -> None:
    done = dray("--apply", str(RETIRE), "--now", "2026-06-01T12:00:00Z", "-o", "json")
    difference = json.loads(done.stdout)
    assert [pod["pod"] for pod in difference["evictions"]] == ["ml/trainer-1", "ml/embedder"]
    assert difference["now"] == "2026-06-01T12:00:00Z"


@pytest.mark.parametrize(
    ("arguments", "stdin", "says"),
    [
        ((), "", "nothing to compare"),
        (("--apply", "no/such.yaml"), "", "no/such.yaml: cannot be read"),
        (("--apply", "-"), "kind: Pod", "no apiVersion"),
        (("--delete", "pod/ml/none"), "", "--delete: no Pod ml/none; there is "),
        (("--apply", str(RETIRE), "--now", "never"), "", "--now"),
    ],
)
def test_bad_input_is_exit_code_2(arguments: tuple[str, ...], stdin: str, says: str) -> None:
    done = dray(*arguments, stdin=stdin)
    assert done.exit_code == 2
    assert done.stderr.startswith("dray: ")
    assert says in done.stderr


CERTIFICATE = "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: web, namespace: ml}}"


def test_an_object_of_an_unknown_kind_was_not_looked_at() -> None:
    done = dray("--apply", "-", stdin=CERTIFICATE)
    assert "What a change of Certificate ml/web does was not looked at." in done.stdout
    assert "would notice" not in done.stdout
    assert json.loads(dray("--apply", "-", "-o", "json", stdin=CERTIFICATE).stdout)["unjudged"] == [
        "Certificate ml/web"
    ]


def test_nothing_at_all_is_no_change_and_no_cluster(tmp_path: Path) -> None:
    """Whoever was to write it has failed: that must not pass for an answer."""
    empty = tmp_path / "empty.yaml"
    empty.write_text("\n")
    for arguments in (("--apply", "-"), ("--apply", str(empty)), ("-f", str(empty), "--apply", str(RETIRE))):
        done = dray(*arguments, stdin="")
        assert done.exit_code == 2
        assert done.stderr.endswith("is empty\n")

"""Names of objects as people type them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from builders import manifest
from dray.cli import explain
from dray.cli.main import app
from dray.cli.names import KINDS, pair, read
from dray.cli.targets import WORDS

EXAMPLES = Path(__file__).parents[3] / "examples"
CLUSTER = EXAMPLES / "cluster"
GROUPS = EXAMPLES / "scale-up"
NOW = "2026-06-01T12:00:00Z"
Manifest = dict[str, Any]


def spec_of(device_class: str) -> Manifest:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": device_class}}]}}


@pytest.mark.parametrize(
    ("words", "targets"),
    [
        (["rule", "a"], ["rule/a"]),
        (["rule/a", "node", "b", "Slices", "c"], ["rule/a", "node/b", "Slices/c"]),
        (["rule"], ["rule"]),
        (["rule", "rule"], ["rule/rule"]),
        (["a"], ["a"]),
    ],
)
def test_a_kind_and_a_name_may_be_two_words(words: list[str], targets: list[str]) -> None:
    assert list(pair(words, WORDS)) == targets


@pytest.mark.parametrize("command", [one.name for one in explain.app.registered_commands])
def test_whatever_can_be_explained_may_have_its_namespace_and_its_kind_before_its_name(command: str) -> None:
    assert read("ml/train", "", command) == "ml/train"
    assert {read(f"{word}/ml/train", "", command) for word in KINDS[command]} == {"ml/train"}


def test_what_is_taken_away_is_in_the_namespace_of_n() -> None:
    def dray(*words: str) -> Result:
        return CliRunner().invoke(app, ["what-if", "-f", str(CLUSTER), *words])

    assert dray("--delete", "pod/trainer-1", "-n", "ml").stdout == dray("--delete", "pod/ml/trainer-1").stdout != ""
    assert dray("--delete", "claim/train-1", "-n", "ml").exit_code in (0, 1)
    assert dray("--delete", "node/node-1", "-n", "ml").stdout == dray("--delete", "node/node-1").stdout
    assert "give one of them" in dray("--delete", "pod/ml/trainer-1", "-n", "dev").stderr


SPANNING = [
    *("devices", "lint", "allocate", "get claims", "get devices", "get nodes"),
    f"what-if --delete node/node-1 --now {NOW}",
    f"report fleet --now {NOW} -o {{made}}/fleet.html",
    f"report what-if --delete node/node-1 --now {NOW} -o {{made}}/what-if.html",
    f"scale-up -f {GROUPS}",
    f"report scale-up -f {GROUPS} --now {NOW} -o {{made}}/scale-up.html",
]


@pytest.mark.parametrize("command", SPANNING)
@pytest.mark.parametrize("word", ["-A", "--all-namespaces"])
def test_who_is_used_to_kubectl_asks_for_all_namespaces(command: str, word: str, tmp_path: Path) -> None:
    words = [*command.format(made=tmp_path).split(), "-f", str(CLUSTER)]
    plain = CliRunner().invoke(app, words)
    asked = CliRunner().invoke(app, [*words, word])
    assert (asked.exit_code, asked.output) == (plain.exit_code, plain.output)


@pytest.mark.parametrize("command", ["get claims", "lint", "allocate", "placement list", "top --once"])
def test_one_namespace_and_all_of_them_is_a_contradiction(command: str) -> None:
    done = CliRunner().invoke(app, [*command.split(), "-n", "ml", "-A"])
    assert done.exit_code == 2
    assert "-A is all namespaces, and -n says ml: give one of them" in done.stderr


def test_a_namespace_leaves_others_out() -> None:
    claim = manifest("resource.k8s.io/v1", "ResourceClaim", "mine", "dev", spec=spec_of("other"))
    files = ["-f", str(CLUSTER), "-f", "-"]

    def dray(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, *files], input=json.dumps(claim))

    assert "dev/mine" in dray("allocate").stdout
    assert "dev/mine" not in dray("allocate", "-n", "ml").stdout
    assert dray("allocate", "-n", "else").stdout == "No claim is pending in namespace else.\n"
    assert "UnknownClass" in (found := dray("lint", "-o", "json").stdout)
    assert found.count("dev/mine") == dray("lint", "-o", "json", "-n", "dev").stdout.count("dev/mine") > 0
    assert dray("lint", "-n", "ml").exit_code == 0
    assert "nodes are in no namespace: -n ml counts for claims only" in dray("get", "nodes", "-n", "ml").stderr
    assert "--node node-1 counts for devices and nodes only" in dray("get", "claims", "--node", "node-1").stderr


def test_what_is_applied_is_in_the_namespace_of_n_as_with_kubectl() -> None:
    def dray(made: Manifest, *words: str) -> Result:
        return CliRunner().invoke(app, ["what-if", "-f", str(CLUSTER), "--apply", "-", *words], input=json.dumps(made))

    free = manifest("resource.k8s.io/v1", "ResourceClaim", "mine", spec=spec_of("gpu"))
    free["metadata"].pop("namespace", None)
    assert "ml/mine" in dray(free, "-n", "ml").stdout
    assert "default/mine" in dray(free).stdout
    there = {**free, "metadata": {"name": "mine", "namespace": "dev"}}
    assert dray(there, "-n", "dev").exit_code == 0
    refused = dray(there, "-n", "ml")
    assert refused.exit_code == 2
    assert "ResourceClaim mine is in namespace dev, and -n says ml: give one of them" in refused.stderr
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    assert "Node n added" in dray(node, "-n", "ml").stdout


@pytest.mark.parametrize(("command", "offered"), [("explain", "podgroup"), ("untaint", "node"), ("drain", "pause")])
def test_a_kind_that_a_command_does_not_know_is_told_with_those_that_it_does(command: str, offered: str) -> None:
    done = CliRunner().invoke(app, [command, "widget/x"])
    assert done.exit_code == 2
    assert "'widget/x' is none of " in done.stderr
    assert offered in done.stderr


def test_a_claim_that_is_named_twice_is_asked_about_once() -> None:
    once = CliRunner().invoke(app, ["allocate", "-f", str(CLUSTER), "--claim", "ml/notebook"])
    twice = CliRunner().invoke(
        app, ["allocate", "-f", str(CLUSTER), "--claim", "ml/notebook", "--claim", "notebook", "-n", "ml"]
    )
    assert (once.exit_code, once.stdout) == (twice.exit_code, twice.stdout)


def test_a_selector_is_not_said_to_be_fine_on_files_without_devices() -> None:
    rule = str(EXAMPLES / "what-if")
    done = CliRunner().invoke(app, ["cel", "true", "-f", rule])
    assert done.exit_code == 2
    assert f"no device in {rule}" in done.stderr


def test_devices_of_a_driver_are_told_without_pools_of_others() -> None:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    lacking = {"driver": "other.io", "pool": pool, "allNodes": True, "devices": [{"name": "d"}]}
    made = json.dumps(manifest("resource.k8s.io/v1", "ResourceSlice", "s", spec=lacking))

    def dray(*words: str) -> str:
        return CliRunner().invoke(app, ["devices", "-f", str(CLUSTER), "-f", "-", *words], input=made).stdout

    assert "Pool other.io/p is incomplete" in dray()
    assert "Pool other.io/p is incomplete" in dray("--driver", "other.io")
    assert "other.io" not in dray("--driver", "gpu.example.com")
    assert json.loads(dray("--driver", "gpu.example.com", "-o", "json"))["unusablePools"] == []

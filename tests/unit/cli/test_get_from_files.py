"""`dray get -f`: the same tables and documents of a cluster in files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from builders import Manifest
from dray.cli.main import app
from snapshot_objects import claim, device, held, node, pod, resource_slice

SLICES = (resource_slice("node-1", device("gpu-0"), device("gpu-1")),)
HELD = (held(claim("a"), "node-1", "gpu-0", pods=("p",)), pod("p"))


def get(tmp_path: Path, *objects: Manifest, words: tuple[str, ...]) -> tuple[int, str]:
    dump = tmp_path / "dump.yaml"
    dump.write_text(yaml.safe_dump_all(objects))
    done = CliRunner().invoke(app, ["get", *words, "-f", str(dump)])
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("nodes", "state", "ready", "free"),
    [
        ((), "not known", None, 1),
        ((node("node-1"),), "ready", True, 1),
        ((node("node-1", ready="False"),), "not ready", False, 0),
        ((node("node-2"),), "gone", False, 0),
    ],
)
def test_nodes_of_a_dump_in_numbers(
    tmp_path: Path, nodes: tuple[Manifest, ...], state: str, ready: bool | None, free: int
) -> None:
    code, said = get(tmp_path, *nodes, *SLICES, *HELD, words=("nodes", "--node", "node-1", "-o", "json"))
    assert code == 0
    (found,) = json.loads(said)["items"]
    assert (found["state"], found["ready"]) == ([state], ready)
    assert (found["devices"], found["free"], found["held"], found["pods"]) == (2, free, 1, 1)


def test_devices_and_claims_of_a_dump(tmp_path: Path) -> None:
    assert get(tmp_path, *SLICES, *HELD, words=("claims", "-o", "name")) == (0, "resourceclaim/ml/a\n")
    code, said = get(tmp_path, *SLICES, *HELD, words=("devices",))
    assert code == 0
    assert [line.split()[:3] for line in said.splitlines()[1:]] == [
        ["node-1/gpu-0", "node-1", "held"],
        ["node-1/gpu-1", "node-1", "free"],
    ]
    assert get(tmp_path, *SLICES, words=("claims",)) == (1, "No claims.\n")


@pytest.mark.parametrize("words", [("clusters",), ("nodes", "-w"), ("nodes", "--context", "c")])
def test_what_files_do_not_have(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert get(tmp_path, *SLICES, words=words)[0] == 2


INCOMPLETE = (
    "Pool gpu.example.com/node-1 is incomplete: 1 of 2 slices of generation 1 are there; its devices do not count"
)
UNPUBLISHED = "Held by claims, and in no slice any more: node-1/gpu-0 (gpu.example.com)"


@pytest.mark.parametrize("devices", [(), (device("gpu-1"),)])
@pytest.mark.req("SVS-50")
def test_what_is_missing_is_said_wherever_devices_are_shown(tmp_path: Path, devices: tuple[Manifest, ...]) -> None:
    """A slice that is gone takes its rows along: without a word, there is nothing left to see."""
    left = resource_slice("node-1", *devices)
    left["spec"]["pool"]["resourceSliceCount"] = 2
    cluster = (node("node-1"), node("node-2"), left, *HELD)
    for words in (("nodes",), ("devices",)):
        _, said = get(tmp_path, *cluster, words=words)
        assert (f"{INCOMPLETE}." in said, f"{UNPUBLISHED}." in said) == (True, True), words
    said = CliRunner().invoke(app, ["devices", str(tmp_path / "dump.yaml")]).output
    assert said.splitlines()[-2:] == [INCOMPLETE, UNPUBLISHED]
    _, told = get(tmp_path, *cluster, words=("nodes", "-o", "json"))
    by_node = {one["name"]: list(one["unusablePools"]) for one in json.loads(told)["items"]}
    assert by_node == {"node-1": ["gpu.example.com/node-1"], "node-2": []}
    _, said = get(tmp_path, *cluster, words=("devices", "--node", "node-2"))
    assert said == "No devices on node node-2.\n"


def test_nothing_is_said_of_what_is_whole(tmp_path: Path) -> None:
    _, said = get(tmp_path, node("node-1"), *SLICES, *HELD, words=("nodes",))
    assert len(said.splitlines()) == 2

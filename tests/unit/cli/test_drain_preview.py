"""What `dray drain --dry-run` says of its pace, from files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import builders
from dray.cli.main import app
from snapshot_objects import claim, device, device_class, held, node, pod, resource_slice

PODS = 14


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """A node with a pod on each of its many devices."""
    names = [f"gpu-{number}" for number in range(PODS)]
    users = [held(claim(f"c-{name}"), "node-1", name, pods=(f"p-{name}",)) for name in names]
    pods = [pod(f"p-{name}", phase="Running") for name in names]
    objects = [node("node-1"), device_class(), resource_slice("node-1", *map(device, names)), *users, *pods]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(file)


@pytest.mark.parametrize("what", [("device", "--node", "node-1"), ("node", "node-1")], ids=["device", "node"])
@pytest.mark.parametrize("rate", [(), ("--evictions-per-second", "2")], ids=["as it is", "rated"])
def test_a_drain_names_one_pace_and_keeps_it_from_the_first_pod_on(
    cluster: str, what: tuple[str, ...], rate: tuple[str, ...]
) -> None:
    """Taints let ten go at once; who drains does not, so a preview must not say both."""
    words = ["drain", *what, "--dry-run", "-f", cluster, *rate]
    done = CliRunner().invoke(app, [*words, "-o", "json"])
    preview = json.loads(done.stdout)["preview"]
    paced = [note for note in preview.get("notes", ()) if "a second" in note]
    limit = 2 if rate else 10 if what[0] == "device" else None
    assert paced == ([f"{limit} pods a second at most, from the first one on"] if limit else [])
    at_once = sum(one["expected"] == preview["now"] for one in preview["pods"])
    assert at_once == (limit or PODS)


@pytest.mark.parametrize("words", [("drain",), ("taint",)], ids=["drain", "taint"])
def test_devices_on_which_an_expression_fails_are_told_though_it_matches_others(words: tuple[str, ...]) -> None:
    """Whoever reads only what it selects does not notice those that are left in service."""
    known = [builders.device(f"gpu-{number}", {"a": 1}) for number in range(2)]
    objects = [node("node-1"), device_class(), resource_slice("node-1", *known, device("gpu-2"), device("gpu-3"))]
    made = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    what = ("device", "--cel", 'device.attributes["gpu.example.com"].a == 1', "k=v:NoExecute", "--dry-run", "-f", "-")
    done = CliRunner().invoke(app, [*words, *what], input=made)
    assert "Rule k-" in done.stdout
    assert "selects 2 devices" in done.stdout
    flat = " ".join(done.stdout.split())
    assert "Note: 2 devices are passed over, meant or not, because the selection fails there: selector #0: " in flat
    (note,) = json.loads(CliRunner().invoke(app, [*words, *what, "-o", "json"], input=made).stdout)["preview"]["notes"][
        :1
    ]
    assert note.startswith("2 devices are passed over")


@pytest.mark.parametrize("effect", ["NoExecute", "NoSchedule"])
@pytest.mark.parametrize("words", [("drain",), ("taint",)], ids=["drain", "taint"])
def test_who_fits_nowhere_else_is_told_with_why_also_if_the_reasons_differ(words: tuple[str, ...], effect: str) -> None:
    """The most first, below the table that says no; beyond some reasons pods are named alone."""
    if words == ("drain",) and effect != "NoExecute":
        return
    large = builders.container(cpu="50")
    wishes = [
        {"nodeSelector": {"zone": "a"}},
        {"nodeSelector": {"zone": "a"}},
        {"containers": [large]},
        {"schedulerName": "default-scheduler", "resourceClaims": [builders.pod_claim("a", claim="none")]},
        {"schedulerName": "default-scheduler", "resourceClaims": [builders.pod_claim("a", claim="nothing")]},
        {"schedulerName": "default-scheduler", "resourceClaims": [builders.pod_claim("a", claim="nil")]},
    ]
    pods = [pod(f"p-{number}", phase="Running") for number in range(len(wishes))]
    for one, wish in zip(pods, wishes, strict=True):
        one["spec"] |= wish
    other = claim("there")
    objects = [node("node-1", cpu=100), node("node-2", cpu=4), device_class(), other, *pods]
    made = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    what = ("node", "node-1", f"k:{effect}", "--dry-run", "-f", "-")
    told = " ".join(CliRunner().invoke(app, [*words, *what], input=made).stdout.split())
    assert "Note: ml/p-0, ml/p-1 fit nowhere else (0/2 nodes are available: " in told
    assert re.search(r"Note: ml/p-2 fits nowhere else \([^)]*Insufficient cpu", told)
    assert 'Note: ml/p-3 fits nowhere else (resourceclaim "none" not found' in told
    assert "Note: ml/p-5 fits nowhere else, for other reasons." in told
    assert "whyNot" in CliRunner().invoke(app, [*words, *what, "-o", "json"], input=made).stdout

"""Tables that would be long are cut: how many rows are left out, and where they are, stands below them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import builders
from dray.cli.main import app
from snapshot_objects import Manifest, claim, device, device_class, held, node, pod, resource_slice

MANY = 30
WHERE = "; -o json has them all"


def crowd(namespaces: int = 1) -> list[Manifest]:
    """A node with many pods that use a device each, and one without any."""
    names = [f"gpu-{number:02}" for number in range(MANY)]
    users, pods = [], []
    for number, name in enumerate(names):
        namespace = f"team-{number % namespaces:02}"
        users.append(held(claim(f"c-{name}"), "node-1", name, pods=(f"p-{name}",)))
        pods.append(pod(f"p-{name}", phase="Running"))
        users[-1]["metadata"]["namespace"] = pods[-1]["metadata"]["namespace"] = namespace
    nodes = [node("node-1"), node("node-2")]
    return [*nodes, device_class(), resource_slice("node-1", *map(device, names)), *users, *pods]


def waiting() -> list[Manifest]:
    """Pods that fit nowhere, and a group of nodes that does not help them."""
    pods = [
        builders.pod(f"p{number:02}", namespace="ml", cpu=f"{500 + number}", status={"phase": "Pending"})
        for number in range(MANY)
    ]
    group = {"apiVersion": "dray.dev/v1", "kind": "NodeGroup", "metadata": {"name": "more"}}
    return [node("node-1"), *pods, {**group, "spec": {"fromNode": "node-1"}}]


def varied() -> list[Manifest]:
    """Many nodes, each of which keeps a pod away for a reason of its own."""
    tainted = [
        node(f"n{number:02}", spec={"taints": [{"key": f"k{number:02}", "effect": "NoSchedule"}]})
        for number in range(MANY)
    ]
    return [*tainted, builders.pod("waits", namespace="ml", status={"phase": "Pending"})]


def gang() -> list[Manifest]:
    group = builders.manifest(
        "scheduling.k8s.io/v1beta1", "PodGroup", "g", "ml", spec={"schedulingPolicy": {"gang": {"minCount": MANY}}}
    )
    pods = [
        builders.pod(
            f"p{number:02}", namespace="ml", status={"phase": "Pending"}, schedulingGroup={"podGroupName": "g"}
        )
        for number in range(MANY)
    ]
    return [node("node-1"), group, *pods]


@pytest.mark.parametrize(
    ("made", "words", "said"),
    [
        (crowd, ("drain", "node", "node-1", "--dry-run"), [f"… and 10 more pods{WHERE}"]),
        (crowd, ("taint", "device", "k:NoExecute", "--node", "node-1", "--dry-run"), [f"… and 10 more pods{WHERE}"]),
        (
            lambda: crowd(25),
            ("drain", "node", "node-1", "--dry-run"),
            [f"… and 10 more pods{WHERE}", f"… and 5 more namespaces{WHERE}"],
        ),
        (crowd, ("what-if", "--delete", "node/node-1"), [f"… and 10 more rows{WHERE}"]),
        (waiting, ("scale-up",), [f"… and 10 more pods{WHERE}"]),
        (varied, ("explain", "pod", "ml/waits"), ["… and 18 more reasons"]),
        (gang, ("explain", "podgroup", "ml/g"), [f"… and 10 more pods{WHERE}"]),
    ],
    ids=["drain", "taint", "namespaces", "what-if", "scale-up", "pod", "group"],
)
def test_what_is_left_out_is_counted_and_said_to_be_elsewhere(
    made: Callable[[], list[Manifest]], words: tuple[str, ...], said: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(made()))
    done = CliRunner().invoke(app, [*words, "-f", str(file)])
    assert all(line in done.stdout for line in said), done.output
    whole = CliRunner().invoke(app, [*words, "-f", str(file), "-o", "json"])
    text = json.dumps(json.loads(whole.stdout))
    names = {one["metadata"]["name"] for one in made() if re.match(r"p-gpu|p\d\d|n\d\d", one["metadata"]["name"])}
    assert len(names) == MANY
    assert not [name for name in names if name not in text]

"""`dray explain claim` and `dray explain placement`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import builders
from dray.cli.main import app
from snapshot_objects import Manifest, claim, device, device_class, held, node, resource_slice, rule

EXAMPLES = Path(__file__).parents[3] / "examples"
CLUSTER = str(EXAMPLES / "cluster")


def dray(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["explain", *arguments], input=stdin)


@pytest.mark.req("4381-221")
def test_why_a_claim_is_pending() -> None:
    done = dray("claim", "ml/train-7", "-f", CLUSTER, "--now", "2026-06-01T12:14:00Z")
    assert done.exit_code == 1
    assert "4 tainted NoSchedule by rule rack-3-maintenance (since 14 min)" in done.stdout
    assert "Closest: node-2, short by 1 device." in done.stdout
    assert done.stdout.endswith("Details, with all names: --node NODE, or -o json.\n")


@pytest.mark.req("4381-221")
@pytest.mark.parametrize("what", ["claim", "pod"])
def test_everything_that_would_have_to_be_released_is_named_somewhere(what: str, tmp_path: Path) -> None:
    """Who acts on an advice needs all the names; where they are cut, it says how to get them."""
    names = [f"gpu-{number}" for number in range(7)]
    full = resource_slice("node-1", *map(device, names))
    users = [held(claim(f"user-{name}"), "node-1", name) for name in names]
    wanted = claim("x", count=7)
    user = {"containers": [{"name": "c", "image": "i"}], "resourceClaims": [{"name": "c", "resourceClaimName": "x"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "ml"}, "spec": user}
    other = resource_slice("node-2", device("gpu-0"))
    cluster = tmp_path / "cluster.json"
    objects = [device_class(), node("node-1"), node("node-2"), full, other, *users, wanted, pod]
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    short = dray(what, "ml/x", "-f", str(cluster))
    assert "gpu-3 (ml/user-gpu-3) and 3 more are released." in short.stdout
    assert short.stdout.endswith("Details, with all names: --node NODE, or -o json.\n")
    whole = " ".join(dray(what, "ml/x", "-f", str(cluster), "--node", "node-1").stdout.split())
    assert f"It would fit when {', '.join(f'{name} (ml/user-{name})' for name in names)} are released." in whole
    tree = json.loads(dray(what, "ml/x", "-f", str(cluster), "-o", "json").stdout)
    (advice,) = (tree if what == "claim" else tree["claims"])["advice"]
    (remedy,) = advice["remedies"]
    assert (advice["claim"], advice["request"], advice["node"]) == ("ml/x", "gpu", "node-1")
    assert (remedy["remedy"], remedy["needed"]) == ("releaseDevices", 7)
    assert [(one["device"], one["claims"]) for one in remedy["devices"]] == [
        (name, [f"ml/user-{name}"]) for name in names
    ]


def test_one_node() -> None:
    done = dray("claim", "ml/train-7", "-f", CLUSTER, "--node", "node-4")
    assert done.exit_code == 1
    assert "node-4/gpu-0  fails selector 2: memory >= 80Gi (memory 40Gi)" in done.stdout
    assert "Details" not in done.stdout


def test_the_whole_tree_as_json() -> None:
    done = dray("claim", "ml/train-7", "-f", CLUSTER, "-o", "json")
    tree = json.loads(done.stdout)
    nodes = tree["claims"][0]["requests"][0]["nodes"]
    assert [len(node["devices"]) for node in nodes] == [4, 4, 4, 4]
    assert nodes[3]["devices"][0]["check"]["values"] == {"gpu.example.com/memory": "40Gi"}


@pytest.mark.req("4381-221")
def test_a_claim_that_fits_or_is_allocated() -> None:
    fits = dray("claim", "ml/notebook", "-f", CLUSTER)
    assert (fits.stdout, fits.exit_code) == ("ml/notebook fits on node-1, node-2 (2 of 4 nodes).\n", 0)
    allocated = dray("claim", "ml/train-1", "-f", CLUSTER)
    assert allocated.stdout == "ml/train-1 is allocated: node-1/gpu-0, node-1/gpu-1.\nReserved for ml/trainer-1.\n"
    assert allocated.exit_code == 0
    plain = json.loads(dray("claim", "ml/train-1", "-f", CLUSTER, "-o", "json").stdout)
    assert plain["reservedFor"][0]["name"] == "trainer-1"


@pytest.mark.parametrize(
    ("version", "kind", "says"),
    [
        ("dray.dev/v1", "NodeGroup", "is no object of a cluster; dray scale-up and dray lint read it"),
        ("dray.dev/v1", "Plan", "is no object of a cluster; dray apply reads it"),
        ("example.com/v1", "NodeGroup", "unknown kind 'NodeGroup'"),
    ],
)
def test_what_is_no_object_of_a_cluster_is_said_to_be_for_others(
    version: str, kind: str, says: str, tmp_path: Path
) -> None:
    """Nobody is asked whether they meant another kind, by the very program whose document it is."""
    (tmp_path / "more.json").write_text(json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}))
    done = dray("claim", "ml/train-1", "-f", CLUSTER, "-f", str(tmp_path / "more.json"))
    assert says in done.stderr
    assert version != "dray.dev/v1" or "did you mean" not in done.stderr


def test_a_claim_that_is_being_deleted_says_so_and_what_it_waits_for(tmp_path: Path) -> None:
    going = held(claim("c"), "node-1", "gpu-0", pods=("user",))
    going["metadata"] |= {"deletionTimestamp": "2026-06-01T12:00:00Z", "finalizers": ["resource.kubernetes.io/x"]}
    file = tmp_path / "claim.json"
    file.write_text(json.dumps(going))
    told = dray("claim", "ml/c", "-f", str(file)).stdout.splitlines()
    assert told[-2:] == ["Reserved for ml/user.", "It is being deleted, and goes once nobody uses it."]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("claim", "ml/none", "-f", CLUSTER), "no ResourceClaim ml/none"),
        (("claim", "ml/train-7", "--kubeconfig", "/nowhere"), "/nowhere"),
        (("pod", "ml/none", "-f", CLUSTER), "no Pod ml/none; there is ml/"),
        (("pod", "ml/none", "-f", CLUSTER, "--kubeconfig", "x"), "give one of them"),
        (("claim", "ml/train-7", "-f", CLUSTER, "--node", "x"), "no node x"),
        (("claim", "ml/train-7", "-f", CLUSTER, "--now", "noon"), "--now"),
        (("placement", "a/b", "-f", CLUSTER), "no Placement a/b; there is none at all"),
    ],
)
def test_bad_input_is_exit_code_2(arguments: tuple[str, ...], says: str) -> None:
    done = dray(*arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("dray: ")
    assert says in done.stderr


def test_what_cannot_be_judged_is_exit_code_2() -> None:
    objects = [device_class("device.attributes['x.y'].z == 1"), resource_slice("n", device("d")), claim("x")]
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    done = dray("claim", "ml/x", "-f", "-", stdin=items)
    assert done.exit_code == 2
    assert "no such key" in done.stdout


def test_a_placement() -> None:
    done = dray("placement", "placement1", "-f", str(EXAMPLES / "placement" / "maintenance.yaml"))
    assert done.exit_code == 1
    assert done.stdout.splitlines()[0].startswith("default/placement1: selected 0 clusters")
    plain = json.loads(
        dray("placement", "placement1", "-f", str(EXAMPLES / "placement" / "maintenance.yaml"), "-o", "json").stdout
    )
    assert plain["decisions"] == []
    assert plain["explanation"]["clusters"][0]["cluster"] == "cluster1"


@pytest.mark.parametrize(
    "command", [("explain", "claim"), ("explain", "placement"), ("allocate",), ("devices",), ("what-if",)]
)
def test_help_says_the_exit_codes(command: tuple[str, ...]) -> None:
    assert "Exit code 0" in CliRunner().invoke(app, [*command, "--help"]).stdout


def test_an_allocated_claim_says_what_is_with_its_devices_and_which_alternative_it_has() -> None:
    tolerations = [builders.toleration("hot", 20)]
    has = held(claim("c", tolerations=tolerations), "node-1", "gpu-0", "gpu-1", "gpu-2")
    for result in has["status"]["allocation"]["devices"]["results"]:
        result["request"] = "gpu/small"
        result["tolerations"] = tolerations
    taint = {"key": "hot", "effect": "NoExecute"}
    devices = [device("gpu-0", taints=[taint]), device("gpu-1", taints=[{"key": "old", "effect": "NoSchedule"}])]
    there = [device_class(), resource_slice("node-1", *devices), rule("burn", "NoSchedule", device="gpu-1"), has]

    def told(*objects: Manifest) -> list[str]:
        items = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        return CliRunner().invoke(app, ["explain", "claim", "ml/c", "-f", "-"], input=items).stdout.splitlines()

    lines = told(*there)
    assert lines[0] == "ml/c is allocated: node-1/gpu-0, node-1/gpu-1, node-1/gpu-2."
    assert lines[1] == "Of the alternatives of request gpu it has small."
    assert any(line.startswith("node-1/gpu-0 is tainted hot:NoExecute by its driver, which the cl") for line in lines)
    assert "node-1/gpu-1 is tainted old:NoSchedule by its driver, which the claim does not tolerate." in lines
    assert any(line.startswith("node-1/gpu-1 is tainted ") and "by rule burn" in line for line in lines)
    assert lines[-1] == "node-1/gpu-2 is in no slice any more: its driver has taken it away."
    assert not any("slice" in line for line in told(has)), "files may leave all slices out"


@pytest.mark.parametrize(
    ("tolerations", "says"),
    [
        ([builders.toleration("hot", 20)], "tolerates for 20 s: pods that use it are evicted that long after"),
        ([builders.toleration("hot", 20), {"key": "hot", "operator": "Exists"}], ""),
        ([{"key": "hot", "operator": "Exists"}], ""),
    ],
)
@pytest.mark.parametrize("command", [("explain", "claim", "ml/c"), ("allocate",), ("explain", "pod", "ml/p")])
def test_what_fits_only_for_a_time_says_that_its_pods_are_evicted(
    command: tuple[str, ...], tolerations: list[Manifest], says: str
) -> None:
    taint = {"key": "hot", "effect": "NoExecute"}
    objects = [
        device_class(),
        node("node-1"),
        resource_slice("node-1", device("gpu-0", taints=[taint])),
        claim("c", tolerations=tolerations),
        builders.pod("p", namespace="ml", resourceClaims=[{"name": "c", "resourceClaimName": "c"}]),
    ]
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    for options in ((), ("-o", "json")):
        done = CliRunner().invoke(app, [*command, "-f", "-", *options], input=items)
        assert done.exit_code == 0, done.stdout
        assert ("evicted" in done.stdout) == bool(says)
        assert says in " ".join(done.stdout.split())

"""`dray devices`: the merged view."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from dray.cli.main import app
from snapshot_objects import claim, device, device_class, held, resource_slice, rule

CLUSTER = str(Path(__file__).parents[3] / "examples" / "cluster")


def dray(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["devices", *arguments], input=stdin)


@pytest.mark.req("5055-131", "5027-49", "implied-18")
def test_attributes_patches_taints_and_holders_in_one_table() -> None:
    lines = dray("-f", CLUSTER).stdout.splitlines()
    assert lines[0].split() == ["DEVICE", "NODE", "STATE", "HELD", "BY", "TAINTS", "PATCHED", "BY", "ATTRIBUTES"]
    assert len(lines) == 17
    assert "rack=3" in lines[9]
    assert "rack-of-node-3" in lines[9]
    assert "example.com/maintenance=rack-3:NoSchedule (rule rack-3-maintenance)" in lines[9]
    assert lines[1].split()[2:4] == ["held", "ml/train-1"]
    assert " tainted " in lines[9]


def test_one_node_or_driver() -> None:
    assert len(dray(CLUSTER, "--node", "node-2").stdout.splitlines()) == 5
    assert len(dray(CLUSTER, "--driver", "gpu.example.com").stdout.splitlines()) == 17
    none = dray(CLUSTER, "--driver", "nic.example.com")
    assert (none.stdout, none.exit_code) == ("No devices.\n", 1)


def test_a_node_that_there_is_not_is_no_node_without_devices() -> None:
    done = dray(CLUSTER, "--node", "node-9")
    assert (done.stdout, done.exit_code) == ("", 2)
    assert "no node node-9 in the input. There is node-1, node-2" in done.stderr


def test_wide_says_everything() -> None:
    done = dray(CLUSTER, "--node", "node-3", "-o", "wide")
    assert "since 2026-06-01T12:00:00Z" in done.stdout
    assert "node-3-gpus" in done.stdout


@pytest.mark.req("5055-131", "5027-49")
@pytest.mark.parametrize("notation", ["json", "yaml"])
def test_for_programs(notation: str) -> None:
    done = dray(CLUSTER, "--node", "node-3", "-o", notation)
    view = json.loads(done.stdout) if notation == "json" else yaml.safe_load(done.stdout)
    first = view["devices"][0]
    assert (first["nodeName"], first["patches"], first["heldBy"]) == ("node-3", ["rack-of-node-3"], [])
    assert first["taints"][0]["rule"] == "rack-3-maintenance"
    assert first["device"]["attributes"]["rack"] == {"int": 3}


def test_pools_and_selectors_with_problems() -> None:
    bad_rule = rule("r", selectors=[{"cel": {"expression": 'device.attributes["x.y"].z == 1'}}])
    objects = [
        device_class(),
        resource_slice("n", device("a"), count=2),
        resource_slice("m", device("b", taints=[{"key": "hot", "effect": "NoSchedule"}])),
        held(claim("c"), "m", "b"),
        bad_rule,
    ]
    done = dray("-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    assert "hot:NoSchedule (driver)" in done.stdout
    assert "gpu.example.com/n is i" in done.stdout
    assert "; its devices do not count\n" in done.stdout
    assert "DeviceTaintRule r passes over 2 devices: " in done.stdout


def test_devices_of_all_nodes_and_of_selected_nodes() -> None:
    everywhere, selected = resource_slice("net", device("a")), resource_slice("some", device("b"))
    for slice_ in (everywhere, selected):
        del slice_["spec"]["nodeName"]
    everywhere["spec"]["allNodes"] = True
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}]
    selected["spec"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"zone": "y"}}}
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": [everywhere, selected, node]})
    lines = dray("-", stdin=stdin).stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["net/a", "(all)"], ["some/b", "(by"]]
    assert [line.split()[0] for line in dray("-", "--node", "n", stdin=stdin).stdout.splitlines()[1:]] == ["net/a"]
    plain = json.loads(dray("-", "-o", "json", stdin=stdin).stdout)["devices"]
    assert plain[0]["allNodes"] is True
    assert plain[1]["nodeSelector"] == {"nodeSelectorTerms": terms}

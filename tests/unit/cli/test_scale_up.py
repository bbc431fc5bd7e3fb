"""`dray scale-up` with files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dray.cli.main import app
from scale_up_objects import group, template, waiting
from snapshot_objects import Manifest, device_class

EXAMPLES = Path(__file__).parents[3] / "examples"


def dray(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["scale-up", *arguments], input=stdin)


def listed(*objects: Manifest) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


@pytest.mark.req("4381-199", "4381-200")
def test_the_example() -> None:
    done = dray("-f", str(EXAMPLES / "scale-up"), "-f", str(EXAMPLES / "cluster"))
    assert done.exit_code == 0
    assert done.stdout == (
        "6 pods are pending: 2 fit on the nodes that are there, 4 fit with 2 more nodes.\n\n"
        "  group             add  of  price  pods\n"
        "  more-like-node-1  2    4   6      4\n"
    )


def test_for_programs() -> None:
    done = dray("-f", str(EXAMPLES / "scale-up"), "-f", str(EXAMPLES / "cluster"), "-o", "json")
    answer = json.loads(done.stdout)
    assert {one["name"]: one["nodes"] for one in answer["groups"]} == {"more-like-node-1": 2, "big": 0}
    assert (answer["pending"], answer["nodes"], answer["cost"]) == (6, 2, 6.0)
    assert sum(name.startswith("more-like-node-1#") for name in answer["placements"].values()) == 4


def test_pods_that_no_group_helps_are_exit_code_1() -> None:
    objects = [device_class(), template("nine", 9), waiting("big", claim_template="nine"), group("small", devices=2)]
    done = dray("-f", "-", stdin=listed(*objects))
    assert done.exit_code == 1
    assert "1 pod is pending: 1 fits on no node of any group." in done.stdout
    assert 'ml/big  small: request "gpu": 2 of 2 devices match' in done.stdout
    limited = [device_class(), template("one"), *(waiting(f"p{n}", claim_template="one") for n in range(4))]
    done = dray("-f", "-", "--max-nodes", "1", stdin=listed(*limited, group("small", devices=2)))
    assert done.exit_code == 1
    assert "2 fit with 1 more node, 2 fit on no node" in done.stdout


def test_nothing_to_do() -> None:
    done = dray("-f", "-", stdin=listed(device_class(), group("small", devices=2)))
    assert (done.exit_code, done.stdout) == (0, "No pod is pending.\n")


@pytest.mark.parametrize(
    ("stdin", "says"),
    [
        (listed(device_class()), "no node groups. Give documents of kind NodeGroup"),
        (listed(device_class(), group("a", fromNode="gone")), "there is no node gone in the cluster."),
        (listed(device_class(), group("a", profile="x", fromNode="y")), "give one of fromNode, profile and template"),
        ("{", "<stdin>"),
        (listed({"apiVersion": "v1"}, group("a", devices=1)), "an object has no kind"),
    ],
)
def test_bad_input_is_exit_code_2(stdin: str, says: str) -> None:
    done = dray("-f", "-", stdin=stdin)
    assert done.exit_code == 2
    assert done.stderr.startswith("dray: ")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_a_file_that_is_not_there() -> None:
    done = dray("-f", "/nonexistent.yaml")
    assert done.exit_code == 2
    assert "/nonexistent.yaml: cannot be read" in done.stderr


def test_node_groups_are_validated_like_other_manifests() -> None:
    def validate(*groups: Manifest) -> Result:
        return CliRunner().invoke(app, ["validate", "-"], input=listed(*groups))

    fine = validate(group("a", devices=1), group("b", fromNode="some-node"), group("c", profile="gpu-8"))
    assert (fine.exit_code, fine.stdout) == (0, "no problems in 3 objects.\n")
    wrong = validate(group("a", profile="none"))
    assert wrong.exit_code == 1
    assert "there is no profile 'none'" in wrong.stdout

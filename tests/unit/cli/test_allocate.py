"""`dray allocate`: exit codes, what it prints, and what it says of bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from dray.cli.main import app
from patience import PATIENCE
from snapshot_objects import claim, device_class, resource_slice
from snapshot_objects import device as make_device

CLUSTER = str(Path(__file__).parents[3] / "examples" / "cluster")


def dray(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["allocate", *arguments], input=stdin)


def test_all_pending_claims_one_by_one() -> None:
    done = dray(CLUSTER)
    lines = done.stdout.splitlines()
    assert lines[1] == "ml/notebook  node-1  gpu-3"
    assert lines[2].startswith('ml/train-7   –       does not fit: request "gpu": 12 of 16 devices match; 6 in use')
    assert lines[3] == "1 of 2 claims fit."
    assert done.exit_code == 1


def test_one_claim() -> None:
    done = dray("-f", CLUSTER, "--claim", "ml/notebook")
    assert (done.stdout, done.exit_code) == ("ml/notebook fits on node-1: gpu-3\n", 0)


def test_on_a_node() -> None:
    assert dray(CLUSTER, "--claim", "ml/notebook", "--node", "node-2").stdout == "ml/notebook fits on node-2: gpu-1\n"
    done = dray(CLUSTER, "--claim", "ml/notebook", "--node", "node-4")
    assert done.stdout == 'ml/notebook does not fit: request "gpu": 0 of 4 devices match\n'
    assert done.exit_code == 1


def test_several_claims_together_or_none() -> None:
    done = dray(CLUSTER, "--claim", "ml/notebook", "--claim", "ml/train-7")
    assert done.exit_code == 1
    assert done.stdout.startswith("ml/notebook, ml/train-7 do not fit: ml/train-7: ")


@pytest.mark.parametrize("notation", ["json", "yaml"])
def test_for_programs(notation: str) -> None:
    done = dray(CLUSTER, "-o", notation)
    results = (json.loads(done.stdout) if notation == "json" else yaml.safe_load(done.stdout))["results"]
    assert [(result["claims"], result["status"]) for result in results] == [
        (["ml/notebook"], "allocated"),
        (["ml/train-7"], "unsatisfiable"),
    ]
    assert results[0]["allocations"]["ml/notebook"]["devices"]["results"][0]["device"] == "gpu-3"


def test_nothing_pending() -> None:
    done = dray("-", stdin=json.dumps(device_class()))
    assert (done.stdout, done.exit_code) == ("No claim is pending.\n", 0)


def test_many_claims_for_few_devices(tmp_path: Path) -> None:
    objects = [device_class(), resource_slice("n", *(make_device(f"d{number}") for number in range(60)))]
    file = tmp_path / "all.json"
    file.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects, *(claim(f"c{n}") for n in range(65))]})
    )
    done = dray(str(file))
    assert done.stdout.splitlines()[-1] == "60 of 65 claims fit."


BAD_CLASS = json.dumps(device_class("device.attributes['x.y'].z == 1"))


@pytest.mark.parametrize(
    ("arguments", "stdin", "says"),
    [
        ((), "", "nothing to read"),
        (("no/such/file",), "", "no/such/file: cannot be read"),
        (("-",), "a: [", "<stdin>"),
        (("-",), "just text", "not an object"),
        (
            (CLUSTER, "--claim", "ml/none"),
            "",
            "no ResourceClaim ml/none; there is ml/embed, ml/notebook",
        ),
        ((CLUSTER, "--node", "node-9"), "", "no node node-9 in the input. There is node-1, node-2"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: tuple[str, ...], stdin: str, says: str) -> None:
    done = dray(*arguments, stdin=stdin)
    assert done.exit_code == 2
    assert done.stderr.startswith("dray: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_class_with_a_bad_selector_is_named_with_exit_code_2() -> None:
    done = dray(CLUSTER, "-f", "-", "--claim", "ml/notebook", stdin=BAD_CLASS)
    assert done.exit_code == 2
    assert done.stdout.startswith("ml/notebook cannot be judged: class gpu")


def test_unknown_kinds_are_noted_once() -> None:
    widget = json.dumps({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    done = dray(CLUSTER, "-", "--claim", "ml/notebook", stdin=f"{widget}\n---\n{widget}\n")
    assert done.exit_code == 0
    assert "Widget" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "(and 1 more)" in done.stderr


def test_as_a_process_in_a_pipe() -> None:
    command = [sys.executable, "-c", "from dray.cli.main import main; main()", "allocate", CLUSTER]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "\x1b" not in done.stdout

"""Every document that commands print for programs has the shape that is promised, and every kind is on the page."""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from typer.testing import CliRunner

from dray.cli import items
from dray.cli.commands import CommandsByName
from dray.cli.main import app
from dray.cli.shapes import SHAPES, schema

ROOT = Path(__file__).parents[3]
CLUSTER = str(ROOT / "examples" / "cluster")
RECORDING = str(ROOT / "examples" / "replay" / "morning.recording")
GROUPS = str(ROOT / "examples" / "scale-up")
RULE = str(ROOT / "examples" / "what-if" / "retire-node-1.yaml")
TRUE = "device.driver == 'gpu.example.com'"


@pytest.fixture(scope="module")
def first_hour(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of the recording: six would have the same shape."""
    first, *changes = gzip.decompress(Path(RECORDING).read_bytes()).splitlines()
    kept = [change for change in changes if json.loads(change)["t"] <= 3600]
    path = tmp_path_factory.mktemp("recording") / "hour.recording"
    path.write_bytes(gzip.compress(b"\n".join([first, *kept, b'{"t":3600.0,"end":true}', b""])))
    return str(path)


def check(document: Any) -> None:
    """That a document is what it says it is."""
    jsonschema_rs.validator_for(schema(document["kind"])).validate(document)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("Allocation", ("allocate", "-f", CLUSTER)),
        ("ClaimExplanation", ("explain", "claim", "ml/train-7", "-f", CLUSTER)),
        ("ClaimStatus", ("explain", "claim", "ml/train-1", "-f", CLUSTER)),
        ("PodExplanation", ("explain", "pod", "ml/trainer-1", "-f", CLUSTER)),
        ("DeviceReport", ("devices", "-f", CLUSTER)),
        ("Difference", ("what-if", "-f", CLUSTER, "--apply", RULE)),
        ("DriverRuleList", ("driver-test", "--list")),
        ("Replay", ("replay", RECORDING, "--with", "pdb")),
        ("ScaleUp", ("scale-up", "-f", CLUSTER, "-f", GROUPS)),
        ("SelectorTrial", ("cel", TRUE, "-f", CLUSTER)),
        ("Taint", ("taint", "device", "--node", "node-1", "k:NoExecute", "--dry-run", "-f", CLUSTER)),
        ("Taint", ("drain", "node", "node-1", "--dry-run", "-f", CLUSTER)),
        ("ValidationReport", ("validate", str(ROOT / "examples" / "mistakes"))),
    ],
)
def test_what_is_printed_has_the_shape_that_is_promised(kind: str, words: tuple[str, ...], first_hour: str) -> None:
    done = CliRunner().invoke(app, [*(first_hour if word == RECORDING else word for word in words), "-o", "json"])
    assert done.exit_code in (0, 1), done.stderr
    document = json.loads(done.stdout)
    assert document["kind"] == kind
    check(document)
    with pytest.raises(jsonschema_rs.ValidationError):
        check({"kind": kind, "apiVersion": "dray.dev/v2"})


def test_items_have_typed_values() -> None:
    numbers = {"devices": 8, "free": 1, "held": 7, "blocked": 0, "tainted": 0, "pods": 3, "leaving": 1, "stopping": 0}
    node = items.NodeItem(
        name="a",
        state=("ready",),
        taints=(),
        standstill=None,
        ready=True,
        unschedulable=False,
        waiting_for_budgets={"ml/api": 1},
        blocked_by={},
        unusable_pools={},
        last_leaves_not_before=None,
        **numbers,
    )
    claim = items.ClaimItem(namespace="ml", name="c", state="pending", devices=None, used_by=())
    for kind, one in (("NodeList", node), ("ClaimList", claim)):
        document = json.loads(json.dumps({"apiVersion": "dray.dev/v1", "kind": kind, "items": [to_plain(one)]}))
        check(document)
        document["items"][0]["name"] = 7
        with pytest.raises(jsonschema_rs.ValidationError):
            check(document)
    assert (node.key, claim.key) == ("node/a", "resourceclaim/ml/c")


def to_plain(item: items.Item) -> Any:
    import msgspec

    return msgspec.to_builtins(item)


def test_every_kind_that_is_printed_has_a_shape_and_a_row_on_the_page() -> None:
    page = (ROOT / "docs" / "json.md").read_text()
    assert not [kind for kind, printed in SHAPES.items() if f"| `{kind}` | `dray {printed.commands[0]}`" not in page]
    calls = [
        node
        for file in (ROOT / "src" / "dray" / "cli").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name)
        if getattr(node.func, "attr", getattr(node.func, "id", "")) in ("print_json", "print_value", "print_report")
    ]
    printed = {one.value for call in calls for one in call.args[1:] if isinstance(one, ast.Constant)}
    assert printed | {"DeviceList", "ClaimList", "NodeList", "ClusterList"} == set(SHAPES)


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that can be given, by its words."""
    waiting = [(name, one) for name, one in CommandsByName(lambda _: None).items()]
    for words, command in waiting:
        below = getattr(command, "commands", {})
        waiting.extend((f"{words} {name}", one) for name, one in below.items())
        if not below:
            yield words, command


def test_every_command_has_a_document_or_the_page_says_why_not() -> None:
    """Some printed for people only, and the page said that all others do."""
    page = (ROOT / "docs" / "json.md").read_text()
    table = page.partition("## What has no document")[2]
    named = {name for row in re.findall(r"(?m)^\| (`dray .*?) \|", table) for name in re.findall(r"`dray (.*?)`", row)}
    printing = {name for printed in SHAPES.values() for name in printed.commands} | {"get"}
    taking = {
        name
        for name, command in commands()
        for one in command.params
        if "--output" in one.opts and "json" in getattr(one.type_descriptor.annotation, "_value2member_map_", ())
    }
    there = dict(commands()).keys()
    assert taking == there - named
    assert taking == {name for name in printing if name in there}
    assert named < there


def test_the_schema_of_a_kind_is_printed() -> None:
    listed = CliRunner().invoke(app, ["schema"])
    assert "Taint " in listed.stdout
    assert json.loads(CliRunner().invoke(app, ["schema", "NodeList"]).stdout) == schema("NodeList")
    assert CliRunner().invoke(app, ["schema", "Nothing"]).exit_code == 2

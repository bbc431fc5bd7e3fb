"""What people see first: help in groups and in their words, names as they type them, tables on narrow terminals."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from dray.cli import completion, names, tables
from dray.cli.help import SECTIONS
from dray.cli.main import app
from dray.cli.up import PROFILES
from dray.server.discovery.openapi.descriptions import _docstring
from dray.simulation.profile_files import shipped_profiles
from dray.store.lock import DirectoryLock

CLUSTER = str(Path(__file__).parents[3] / "examples" / "cluster")


def every_command(command: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = getattr(command, "commands", {})
    return [path, *(found for name, one in below.items() for found in every_command(one, (*path, name)))]


COMMANDS = every_command(typer.main.get_command(app))


def test_every_command_is_in_one_group() -> None:
    grouped = [name for names_ in SECTIONS.values() for name in names_]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == {path[0] for path in COMMANDS if path}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_is_in_whole_sentences_and_without_types_of_python(path: tuple[str, ...]) -> None:
    said = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"}).stdout
    assert not re.findall(r"<(?:str|int|float|path|bool|list)[^>]*>|list\[|\[\[", said)
    assert "..." not in said.partition("\nCommands:\n")[2], "a sentence is cut off"
    if path:
        about = re.split(r"\n\s*\n", said, maxsplit=2)[1]  # after the usage
        assert about.rstrip().endswith("."), "lists and manual pages say the first sentence"


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_arguments_are_named_by_what_may_be_given(path: tuple[str, ...]) -> None:
    usage = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "100"}).stdout.partition("\n\n")[0]
    assert not re.findall(r"\{[a-z_]+\}|\[[a-z_]+\]", usage), usage
    assert "...]..." not in usage
    assert "...}..." not in usage


def test_what_can_be_looked_at_is_listed() -> None:
    assert "devices|claims|nodes|clusters" in CliRunner().invoke(app, ["get", "--help"]).stdout


@pytest.mark.parametrize(
    "words", [("get", "pods"), ("validate", "-o", "pdf", "."), ("explain", "claim", "c", "-o", "x")]
)
def test_a_value_that_is_none_of_the_choices_is_told_with_them(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, list(words))
    assert (done.exit_code, "is not one of '" in done.stderr, "Value error" in done.stderr) == (2, True, False)


def test_profiles_are_listed_and_offered() -> None:
    assert set(PROFILES) == set(shipped_profiles())
    assert completion.profiles("gpu") == ["gpu-8", "gpu-nic"]
    up = CliRunner().invoke(app, ["up", "--help"]).stdout
    assert all(name in up for name in PROFILES)


def test_nothing_is_offered_if_there_is_no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    here = typer.Context(typer.main.get_command(app))
    offers = (completion.nodes, completion.pods, completion.claims, completion.devices, completion.evicting)
    assert [offer(here, "") for offer in (*offers, completion.objects, completion.contexts)] == [[]] * 7


def every_parameter(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    for name, one in below.items():
        yield from every_parameter(one, (*path, name))
    if not below:
        yield from ((" ".join(path), one) for one in command.params)


NAMES_SOMETHING = re.compile(
    r"(?:.*/)?(?:NODE|RULE|SLICE|CLUSTER|POOL|CLASS|NAMESPACE|CONTEXT|KIND|DRIVER)(?:/.*)?|.*/\]NAME"
)
"""What stands for a name that is in the cluster, in the kubeconfig or in dray itself."""
MADE_UP = {("cel", "--driver"), ("scheduler", "--lease"), ("controllers", "--lease")}
"""Names that need not be anywhere."""


def test_every_name_of_something_that_is_there_is_offered() -> None:
    """A name that a command takes and TAB does not offer has to be looked up in another terminal."""
    lacking = [
        (command, one.opts[0], one.metavar)
        for command, one in every_parameter(typer.main.get_command(app))
        if NAMES_SOMETHING.fullmatch(str(one.metavar).partition("|")[0])
        and (command, one.opts[0]) not in MADE_UP
        and one._custom_shell_complete is None
    ]
    assert not lacking


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (f"dray explain claim -f {CLUSTER} ml/train", ["ml/train-1", "ml/train-7"]),
        (f"dray explain claim -n ml -f {CLUSTER} train", ["train-1", "train-7"]),
        (f"dray devices {CLUSTER} --node node-", ["node-1", "node-2", "node-3", "node-4"]),
        (f"dray what-if -f {CLUSTER} --delete rule/", ["rule/rack-3-maintenance"]),
        (f"dray what-if -f {CLUSTER} --delete devicet", ["devicetaintrule/rack-3-maintenance"]),
        (f"dray what-if -f {CLUSTER} --delete claim/ml/train", ["claim/ml/train-1", "claim/ml/train-7"]),
        (f"dray what-if -f {CLUSTER} -n ml --delete claim/train", ["claim/train-1", "claim/train-7"]),
        ("dray schema PodG", ["PodGroupExplanation"]),
        ("dray get c", ["claims", "clusters"]),
    ],
)
def test_what_is_offered_is_of_the_files_that_are_typed_already(words: str, offered: list[str]) -> None:
    asked = {"_DRAY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = CliRunner().invoke(app, [], env=asked, prog_name="dray")
    assert sorted(done.stdout.split()) == offered


def test_clusters_of_this_machine_are_offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("mine", "other"):
        (tmp_path / f".local/share/dray/{name}").mkdir(parents=True)
        (tmp_path / f".local/share/dray/{name}/kubeconfig").touch()
    lock = DirectoryLock(tmp_path / ".local/share/dray/mine")
    assert (completion.running(""), completion.running("o"), completion.stopped("")) == (["mine"], [], ["other"])
    lock.release()
    assert completion.stopped("m") == ["mine"]


@pytest.mark.parametrize(
    "words",
    [
        ("claim", "ml/train-1"),
        ("claim", "train-1", "-n", "ml"),
        ("claim", "resourceclaim/train-1", "-n", "ml"),
        ("claim", "resourceclaim.resource.k8s.io/train-1", "-n", "ml"),
        ("claims", "ml/train-1"),
        ("resourceclaim/train-1", "-n", "ml"),
        ("resourceclaim/ml/train-1",),
    ],
)
def test_a_claim_is_understood_however_it_is_named(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["explain", *words, "-f", CLUSTER])
    assert done.stdout.startswith("ml/train-1 is allocated"), done.stderr


@pytest.mark.parametrize("node", ["node/node-1", "nodes/node-1", "no/node-1"])
@pytest.mark.parametrize(
    "words",
    [
        ("taint", "node", "NODE", "k:NoExecute", "--dry-run"),
        ("taint", "NODE", "k:NoExecute", "--dry-run"),
        ("drain", "node", "NODE", "--dry-run"),
        ("drain", "NODE", "--dry-run"),
        ("drain", "device", "--node", "NODE", "--dry-run"),
        ("taint", "device", "k:NoSchedule", "--node", "NODE", "--dry-run"),
        ("get", "devices", "--node", "NODE"),
        ("get", "nodes", "--node", "NODE"),
        ("devices", "--node", "NODE"),
        ("allocate", "--node", "NODE", "--claim", "ml/notebook"),
        ("explain", "claim", "ml/train-7", "--node", "NODE"),
    ],
)
def test_what_dash_o_name_prints_of_a_node_is_understood_wherever_one_is_named(
    words: tuple[str, ...], node: str
) -> None:
    whole = words if "NODE" not in words[:2] else (words[0], "node", *words[words.index("NODE") :])
    plain = CliRunner().invoke(app, [*(word.replace("NODE", "node-1") for word in whole), "-f", CLUSTER])
    named = CliRunner().invoke(app, [*(word.replace("NODE", node) for word in words), "-f", CLUSTER])
    assert "node-1" in plain.stdout, plain.stderr
    assert (named.stdout, named.exit_code) == (plain.stdout, plain.exit_code), named.stderr


@pytest.mark.parametrize(
    ("text", "name"),
    [("rule/fw", "fw"), ("devicetaintrule/fw", "fw"), ("fw", "fw"), ("example.com/fw", "example.com/fw")],
)
def test_a_rule_is_understood_as_confirm_lists_it(text: str, name: str) -> None:
    assert names.rule_name(text) == name


@pytest.mark.parametrize("word", ["node", "no", "device", "claim", "resourceclaim", "resourceclaims"])
def test_what_can_be_looked_at_has_the_names_that_kubectl_has_for_it(word: str) -> None:
    done = CliRunner().invoke(app, ["get", word, "-f", CLUSTER])
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(("text", "namespace"), [("a/b/c", ""), ("/b", ""), ("", ""), ("ml/x", "other")])
def test_what_names_nothing_or_two_namespaces_is_refused(text: str, namespace: str) -> None:
    with pytest.raises(SystemExit) as end:
        names.read(text, namespace, "pod")
    assert end.value.code == 2


def test_names_are_cut_in_the_middle_unless_that_hides_what_differs() -> None:
    header = ("NODE", "STATE")
    long = [("worker-eu-west-1a-rack-0007-host-01", "ready"), ("worker-eu-west-1a-rack-0007-host-02", "ready")]
    cut = tables.cut_names(header, long, 40)
    assert [row[0] for row in cut] == ["worker-eu-we…-0007-host-01", "worker-eu-we…-0007-host-02"]
    alike = [(f"same-beginning-{middle}-and-the-very-same-end", "ready") for middle in "ab"]
    assert tables.cut_names(header, alike, 40) == alike
    assert tables.cut_names(header, long, 200) is long


@pytest.mark.parametrize("width", range(50, 110, 5))
def test_a_name_that_is_cut_does_not_wrap_as_well(width: int) -> None:
    header = ("CLAIM", "STATE", "DEVICES", "USED BY")
    rows = [
        (f"ml/api-8chnvflz8s-{name}-g-{name[::-1]}", "reserved", f"node-1/gpu-{number}", f"api-8chnvflz8s-{name}")
        for number, name in enumerate(("99n7m", "bwmbr", "cf95p"))
    ]
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(tables.rich_table(header, rows, width))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    for name, *_ in tables.cut_names(header, rows, width):
        assert any(line.split(" ")[0] == name for line in lines) or any(row[0] in lines for row in rows), lines


def test_states_have_colours_on_terminals_only() -> None:
    assert tables.style_of("STATE", "not ready, unschedulable") == "red"
    assert tables.style_of("STATE", "held, tainted") == "yellow"
    assert tables.style_of("STATE", "ready") == "green"
    assert tables.style_of("NODE", "ready") == ""
    shown = CliRunner().invoke(app, ["devices", "-f", CLUSTER]).stdout
    assert "\x1b" not in shown


def test_kubectl_explain_speaks_the_names_of_the_api() -> None:
    text = _docstring("io.k8s.api.resource.v1.DeviceTaint")
    assert "evictionsPerSecond" in text
    assert not re.search(r"[a-z]_[a-z]|[A-Z]_[A-Z]", text)

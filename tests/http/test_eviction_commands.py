"""Eviction settings on the command line, and what the documentation promises about it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commands import run_here
from live_server import Kubectl, LiveServer

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "eviction.md").read_text()


@pytest.mark.parametrize("command", ["controllers", "up"])
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--eviction-policy", "nobody"], "there is no eviction policy 'nobody'; there are checkpoint, delete, pdb"),
        (["--eviction-policy", "pdb=speed:9"], "eviction policy pdb has no option 'speed'"),
        (["--eviction-policy", "checkpoint=deadline:soon"], "'soon' is no duration"),
        (["--max-evictions", "all"], "'all' is no limit of evictions"),
        (["--node-monitor-grace-period", "0s"], "grace period must be more than 0"),
        (["--controllers-config", "no-such-file"], "--controllers-config: no-such-file cannot be read"),
        (["--feature-gates", "NoSuchGate=false"], "there is no gate 'NoSuchGate'"),
    ],
)
def test_mistakes_end_with_one_line(command: str, arguments: list[str], problem: str, tmp_path: Path) -> None:
    where = ["--dir", str(tmp_path), "--port", "0"] if command == "up" else []
    done = run_here(command, *where, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("dray: ")
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.req("3902-36")
@pytest.mark.parametrize("command", ["controllers", "up"])
def test_the_old_flag_does_not_exist(command: str) -> None:
    done = run_here(command, "--enable-taint-manager=false")
    assert done.returncode == 2
    assert "No such option: --enable-taint-manager" in done.stderr


@pytest.mark.req("3902-25")
def test_the_switch_is_told_in_the_release_notes_and_nothing_else_needs_to_change() -> None:
    notes = (ROOT / "CHANGELOG.md").read_text()
    assert "--controllers=-taint-eviction-controller" in notes
    assert "taint-eviction-controller" in DOCS


@pytest.mark.req("5055-121")
def test_the_documented_command_finds_the_rules_that_an_older_release_refuses(
    server: LiveServer, kubectl: Kubectl
) -> None:
    path = "/apis/resource.k8s.io/v1/devicetaintrules"
    for name, effect in (("preview-a", "None"), ("preview-b", "None"), ("blocking", "NoSchedule")):
        taint = {"key": "example.com/a", "effect": effect}
        rule = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": name}}
        body = {**rule, "spec": {"deviceSelector": {"driver": "none.example.com"}, "taint": taint}}
        assert server.request("POST", path, body).code == 201
    found = re.search(r"^kubectl (get devicetaintrules -o jsonpath='(.*)')$", DOCS, re.MULTILINE)
    assert found is not None
    listed = kubectl("get", "devicetaintrules", "-o", f"jsonpath={found[2]}").split()
    assert {"preview-a", "preview-b"} <= set(listed)
    assert "blocking" not in listed
    for name in ("preview-a", "preview-b", "blocking"):
        assert server.request("DELETE", f"{path}/{name}").code == 200

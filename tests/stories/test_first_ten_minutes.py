"""What a newcomer does: every command of the README, of two guides and of the examples, as printed and in order."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from dray.cli.main import app
from dray_process import forked_dray
from patience import PATIENCE

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(5 * PATIENCE)

LONG = ("driver-test", "record")
"""Tests of their own run these."""


class Newcomer:
    """Somebody with a home of their own, in a clone of the repository."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "examples").symlink_to(ROOT / "examples")
        path = os.pathsep.join((forked_dray(), str(Path(sys.executable).parent), os.environ["PATH"]))
        self.environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        self.environment |= {"HOME": str(home), "PATH": path}

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """One command, or the many of a page, to its end."""
        return subprocess.run(
            words,
            cwd=self.home,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=4 * PATIENCE,
            check=False,
        )

    def dray(self, *words: str) -> Result:
        """One command of dray, in this process."""
        nowhere: dict[str, str | None] = {"KUBECONFIG": None}
        with contextlib.chdir(self.home):
            return CliRunner().invoke(app, list(words), env=nowhere | self.environment)

    def up(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`dray up` in the background, on a free port."""
        return self.run("dray", "up", "--detach", "--port", "0", *words)

    def follow(self, page: str) -> subprocess.CompletedProcess[str]:
        """Everything that a page says to type, in one shell that stops at the first command that fails."""
        blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)
        assert blocks
        return self.run("bash", "-e", "-o", "pipefail", "-m", "-c", "".join(blocks))


@pytest.fixture
def newcomer() -> Iterator[Newcomer]:
    with tempfile.TemporaryDirectory(prefix="dray", ignore_cleanup_errors=True) as home:  # sockets want short paths
        someone = Newcomer(Path(home))
        try:
            yield someone
        finally:
            someone.dray("down")
            for state in someone.home.glob("*/admin-token"):
                someone.dray("down", "--dir", str(state.parent))


def commands_of_readme() -> list[str]:
    return re.findall(r"^\$ (dray .*?)(?:  +#.*)?$", (ROOT / "README.md").read_text(), re.MULTILINE)


def test_the_commands_of_the_readme_work_as_printed(newcomer: Newcomer) -> None:
    first, *others = commands_of_readme()
    assert first == "dray up --nodes 4 --profile gpu-8"
    up = newcomer.up(*shlex.split(first)[2:])
    assert up.returncode == 0, up.stderr
    readme = (ROOT / "README.md").read_text().splitlines()
    for line in up.stdout.splitlines()[2:4]:
        assert line in readme, "the README shows what it prints"
    assert len(others) > 8
    for command in others:
        words = shlex.split(command)
        if words[1] not in LONG:
            done = newcomer.dray(*words[1:])
            assert done.exit_code in (0, 1), f"{command}: {done.stderr}"
            assert done.stdout, command
    shown = newcomer.dray("validate", "examples/mistakes").stdout.rstrip()
    assert shown in (ROOT / "README.md").read_text()


def test_a_cluster_in_the_background(newcomer: Newcomer) -> None:
    assert "start one with: dray up --detach" in newcomer.dray("get", "nodes").stderr
    (newcomer.home / ".kube").mkdir()
    mine = newcomer.home / ".kube" / "config"
    mine.write_text("users: [{name: me, user: {token: x}}]\n")
    assert newcomer.dray("ls").exit_code == 1
    up = newcomer.up("--nodes", "1", "--merge-kubeconfig")
    assert up.returncode == 0, up.stderr
    assert not (newcomer.home / ".local/share/dray/.elsewhere").exists(), "it is where clusters are looked for"
    assert "kubectl --context dray-default get resourceslices" in up.stdout
    assert up.stdout.endswith("Stop it with: dray down\n")
    again = newcomer.up()
    assert (again.returncode, again.stdout) == (2, "")
    assert "is using it" in again.stderr
    (listed,) = json.loads(newcomer.dray("ls", "-o", "json").stdout)["items"]
    assert (listed["name"], listed["running"]) == ("default", True)
    got = newcomer.run("kubectl", "--context", "dray-default", "get", "nodes", "-o", "name")
    assert got.stdout == "node/node-1\n", got.stderr
    merged = yaml.safe_load(mine.read_text())
    assert [user["name"] for user in merged["users"]] == ["me", "dray-default"]
    assert mine.stat().st_mode & 0o077 == 0
    mine.unlink()
    assert newcomer.dray("get", "nodes").stdout.splitlines()[1].startswith("node-1")
    assert newcomer.dray("down").stdout.startswith("Cluster default has stopped.")
    assert newcomer.dray("ls").stdout.splitlines()[1].split()[:2] == ["default", "stopped"]
    stopped = newcomer.dray("down", "-o", "json")
    assert (stopped.exit_code, json.loads(stopped.stdout)["wasRunning"]) == (1, False)


@pytest.mark.parametrize("page", ["placement.md", "node.md"])
def test_a_guide_can_be_followed_to_its_end(newcomer: Newcomer, page: str) -> None:
    done = newcomer.follow(page)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_the_examples_can_be_applied_in_order(newcomer: Newcomer) -> None:
    text = (ROOT / "examples" / "README.md").read_text()
    up = re.search(r"`(dray up [^`]*)`", text)
    assert up is not None
    started = newcomer.up(*shlex.split(up[1])[2:])
    assert started.returncode == 0, started.stderr
    kubeconfig = str(newcomer.home / ".local/share/dray/default/kubeconfig")
    commands = re.findall(r"`(kubectl apply [^`]*)`", text)
    assert len(commands) > 6
    for command in commands:
        done = newcomer.run(*shlex.split(command), KUBECONFIG=kubeconfig)
        assert done.returncode == 0, f"{command}: {done.stderr}"


def test_every_example_has_a_place_in_the_list() -> None:
    text = (ROOT / "examples" / "README.md").read_text()
    listed = [f"]({path.name}/)" in text for path in (ROOT / "examples").iterdir() if path.is_dir()]
    assert len(listed) > 8
    assert all(listed)

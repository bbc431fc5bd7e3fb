"""What people see, kept as transcripts: each command of a file in `transcripts`, run in order, prints what is there.

    $ dray get nodes            a command, for bash, at the root of the repository
    NODE    STATE …             what it prints, both streams, with `…` for what is another every time
    (exit code 1)               unless that is 0

`DRAY_TRANSCRIPTS=1 pytest tests/stories/test_transcripts.py` writes them anew: read the difference.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dray_process import forked_dray
from patience import PATIENCE
from taint_cluster import TaintCluster, taint_cluster

ROOT = Path(__file__).parents[2]
PLACE = Path(__file__).parent / "transcripts"
CHANGING = (
    (re.compile(r"\b\d+(\.\d+)? s\b"), "… s"),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "https://127.0.0.1:…"),
    (re.compile(r"since \d+ (s|min|h|d)\b"), "since …"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "…"),
    (re.compile(r"(?m)^\d+ of \d+ pods evicted.*\n"), ""),  # how far it was when somebody looked
)


def commands(text: str) -> Iterator[str]:
    """The commands of a transcript."""
    return (line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ "))


def run(command: str, environment: Mapping[str, str]) -> str:
    """A command with what it printed, without what is another every time."""
    done = subprocess.run(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        timeout=PATIENCE,
        env={**os.environ, **environment, "PATH": f"{forked_dray()}:{os.environ['PATH']}"},
        check=False,
    )
    said = done.stdout.replace(environment["TMP"], "$TMP")
    for pattern, instead in CHANGING:
        said = pattern.sub(instead, said)
    code = f"(exit code {done.returncode})\n" if done.returncode else ""
    return f"$ {command}\n{said}{code}"


def check(name: str, environment: Mapping[str, str]) -> None:
    """Runs the commands of a transcript and compares; writes it anew if that is wanted."""
    file = PLACE / f"{name}.txt"
    kept = file.read_text()
    found = "\n".join(run(command, environment) for command in commands(kept))
    if os.environ.get("DRAY_TRANSCRIPTS"):
        file.write_text(found)
    else:
        assert found == kept


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[TaintCluster]:
    with taint_cluster(tmp_path) as running:
        yield running


@pytest.mark.parametrize("name", ["answers-from-a-dump", "mistakes", "checks-in-ci", "what-surrounds-pods"])
def test_without_a_cluster(name: str, tmp_path: Path) -> None:
    check(name, {"HOME": str(tmp_path), "TMP": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")})


@pytest.mark.parametrize("name", ["take-out-of-service", "the-guard"])
def test_with_a_cluster(name: str, cluster: TaintCluster, tmp_path: Path) -> None:
    check(name, {"KUBECONFIG": str(cluster.server.kubeconfig), "TMP": str(tmp_path)})


def test_every_transcript_is_run() -> None:
    text = Path(__file__).read_text()
    assert all(f'"{file.stem}"' in text for file in PLACE.iterdir())

"""`dray` commands in the test's own process, which takes milliseconds where a process of its own takes a second.

For what ends by itself: answers and mistakes. What starts something runs as a process (`server_process`).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from typer.testing import CliRunner

from dray.cli.main import app


def run_here(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """A command, run to its end."""
    words = list(map(str, arguments))
    done = CliRunner().invoke(app, words, input=stdin, catch_exceptions=False)
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

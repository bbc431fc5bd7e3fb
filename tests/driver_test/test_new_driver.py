"""A driver as `dray driver new` writes it passes its own tests: it is published, prepared and undone by the rules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from dray.cli.main import app


def test_a_new_driver_keeps_all_rules(tmp_path: Path) -> None:
    project = tmp_path / "fans"
    assert CliRunner().invoke(app, ["driver", "new", "fans.example.com", "--dir", str(project)]).exit_code == 0
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    idle = ("-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:hypothesispytest")  # cost a second to load
    command = [sys.executable, "-m", "pytest", "-q", *idle, "-W", "error"]
    done = subprocess.run(
        command, cwd=project, capture_output=True, text=True, check=False, env=os.environ | {"PATH": path}
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "failed" not in done.stdout
    assert int(done.stdout.split(" passed")[0].split()[-1]) > 30, "a test for each rule, and the driver's own"

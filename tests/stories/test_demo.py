"""The guided tour, as `make demo` runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(10 * PATIENCE)
def test_the_demo_runs_through() -> None:
    """It takes half a minute on a machine that does nothing else."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    commands = re.findall(r"^\$ (dray|kubectl) (\S+)", done.stdout, re.MULTILINE)
    assert {"up", "explain", "scale-up", "nodes", "get"} <= {name for program, name in commands if program == "dray"}
    assert {"apply", "wait", "patch", "taint"} <= {name for program, name in commands if program == "kubectl"}
    assert "7 pods would be evicted" in done.stdout
    assert "1 pod is pending: 1 fits with 1 more node." in done.stdout
    assert re.search(r"That was dray, in \d+ s\.", done.stdout)


def test_the_makefile_runs_it() -> None:
    recipe = subprocess.run(["make", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "examples/demo.py" in recipe

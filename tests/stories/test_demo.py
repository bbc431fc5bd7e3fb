"""The guided tour, as `make demo` runs it."""

from __future__ import annotations

import re
import runpy
import subprocess
from pathlib import Path

import pytest

from dray_process import forked_dray
from patience import PATIENCE

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(10 * PATIENCE)
def test_the_demo_runs_through(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """It takes half a minute on a machine that does nothing else."""
    main = runpy.run_path(str(ROOT / "examples" / "demo.py"))["main"]
    monkeypatch.setitem(main.__globals__, "BIN", forked_dray())
    code = main()
    said = capfd.readouterr()
    assert (code, said.err) == (0, ""), said.out + said.err
    commands = re.findall(r"^\$ (dray|kubectl) (\S+)", said.out, re.MULTILINE)
    assert {"up", "explain", "scale-up", "nodes", "get"} <= {name for program, name in commands if program == "dray"}
    assert {"apply", "wait", "patch", "taint"} <= {name for program, name in commands if program == "kubectl"}
    assert "7 pods would be evicted" in said.out
    assert "1 pod is pending: 1 fits with 1 more node." in said.out
    assert re.search(r"That was dray, in \d+ s\.", said.out)


def test_the_makefile_runs_it() -> None:
    recipe = subprocess.run(["make", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "examples/demo.py" in recipe

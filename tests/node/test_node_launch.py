"""What starts a container waits for the launcher, and for nobody who may stop it on its way (issue 14)."""

from __future__ import annotations

from pathlib import Path

import pytest

from dray.node.runtime import launch
from dray.node.runtime.launch import Around, Launch, LaunchFailed, Standard, Traces
from dray.node.runtime.rights import Rights
from process_world import MACHINE, alive

STOPS = """
import marshal, os, signal, sys
plan = marshal.load(open(int(sys.argv[1]), "rb"))
open({numbers!r}, "a").write(str(os.getpid()) + " ")
{told}
os.kill(os.getpid(), signal.SIGSTOP)
"""
TELLS = 'os.write(plan["report"], b"pid %d\\n" % os.getpid())'


@pytest.mark.parametrize("told", ["", TELLS], ids=["before", "after"])
def test_a_launcher_that_is_stopped_is_ended_and_holds_nobody_up(
    told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of the container has its user, and sees who is started beside it."""
    program, numbers = tmp_path / "launcher.py", tmp_path / "numbers"
    program.write_text(STOPS.format(numbers=str(numbers), told=told))
    monkeypatch.setattr(launch, "LAUNCHER", program)
    wanted = Launch(command=("true",), environment={}, rights=Rights(user=0, group=0))
    with pytest.raises(LaunchFailed, match="stopped it"):
        launch.start(wanted, MACHINE, Standard(), Around("x", Traces(-1, -1, -1), "boot"))
    assert not alive(int(numbers.read_text()))

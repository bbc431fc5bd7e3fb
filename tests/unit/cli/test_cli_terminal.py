"""What others wrote does nothing to a terminal; programs get every byte of it."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dray.cli import inputs, output, terminal
from dray.cli.eviction_display import Display
from dray.controllers.eviction.progress import Standing
from dray_process import DRAY

CLUSTER = Path(__file__).parents[3] / "examples" / "cluster"

HOSTILE = "a\x1b]0;owned\x07b\x9b31mc\u202ed\re"
MANIFEST = f"""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: "{HOSTILE.encode("unicode_escape").decode()}"
"""
COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_ends_of_lines_and_tabs_do_something() -> None:
    shown = terminal.visible_lines(f"one\ttwo\n{HOSTILE}\n")
    assert shown == "one\ttwo\na\\x1b]0;owned\\x07b\\x9b31mc\\u202ed\\re\n"


def test_what_is_printed_to_a_terminal_is_guarded_and_to_a_file_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, file = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", file)
    terminal.guard()
    print(HOSTILE)
    print(HOSTILE, file=sys.stderr)
    assert "\x1b" not in screen.getvalue()
    assert file.getvalue() == HOSTILE + "\n"


def test_tables_have_colours_of_their_own_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.table import Table

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal.guard()
    output.console.cache_clear()
    table = Table("NAME", style="red")
    table.add_row(HOSTILE)
    output.console().print(table)
    output.console.cache_clear()
    shown = screen.getvalue()
    assert "\x1b[" in shown
    assert COLOUR.sub("", shown).replace("\n", "").isprintable()


def _show_a_spinner() -> None:
    with inputs.busy("Reading"):
        pass


def _show_a_bar() -> None:
    assert len(list(inputs.track([HOSTILE] * 50, "Allocating"))) == 50


def _show_evictions() -> None:
    with Display(quiet=True) as display:
        display.show(Standing(total=5, evicted=2, gone=2, hold=HOSTILE))


@pytest.mark.parametrize("show", [_show_a_spinner, _show_a_bar, _show_evictions])
def test_what_moves_does_so_behind_the_guard(monkeypatch: pytest.MonkeyPatch, show: Callable[[], None]) -> None:
    """Spinners and bars are control sequences of our own: the guard lets them through, and nothing of others."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal.guard()
    show()
    shown = screen.getvalue()
    assert "\x1b[?25l" in shown  # the cursor is hidden meanwhile
    assert "\\x1b[" not in shown
    assert COLOUR.sub("", shown).replace("\n", "").replace("\r", "").isprintable()


def test_a_command_at_a_terminal(tmp_path: Path) -> None:
    manifest = tmp_path / "class.yaml"
    manifest.write_text(MANIFEST)
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "dray", "validate", str(manifest)]
    with subprocess.Popen(command, stdout=slave, stderr=slave, stdin=slave) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                shown += os.read(master, 65536)
            except OSError:
                break
    os.close(master)
    assert process.returncode == 1
    text = COLOUR.sub("", shown.decode())
    assert "owned" in text
    assert text.replace("\r\n", "").isprintable()


def test_words_come_through_where_the_locale_has_no_letters_for_them(tmp_path: Path) -> None:
    """A dash, or a file's name in another encoding, ended the command with the code for `no`."""
    odd = tmp_path / os.fsdecode(b"caf\xe9.yaml")
    odd.write_text("kind: [")
    asked = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
    shown = subprocess.run([DRAY, "get", "devices", "-f", str(CLUSTER)], capture_output=True, env=asked, check=False)
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert "–".encode() in shown.stdout
    done = subprocess.run([DRAY, "validate", odd], capture_output=True, env=asked, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False), done


def test_a_pipe_that_nobody_reads_is_no_answer() -> None:
    """It was told as 1, which says that there are none."""
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "wb") as nobody:
        done = subprocess.run([DRAY, "get", "devices", "-f", str(CLUSTER)], stdout=nobody, stderr=-1, check=False)
    assert (done.returncode, done.stderr) == (141, b"")

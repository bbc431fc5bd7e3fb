"""What one sees of an eviction: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import io

import pytest

from dray.cli.eviction_display import Display
from dray.controllers.eviction.progress import Standing


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def standing(evicted: int, total: int = 700, blocked: int = 0, put_off: int = 0, hold: str = "") -> Standing:
    return Standing(total=total, evicted=evicted, gone=evicted, blocked=blocked, put_off=put_off, hold=hold)


def test_a_bar_with_rate_time_left_and_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, clock = Terminal(), Clock()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm-256color")
    with Display(clock=clock) as display:
        for second in range(3):
            clock.now = float(second)
            display.show(standing(390 + 10 * second, blocked=3))
    said = terminal.getvalue()
    assert "Evicting" in said
    assert "410/700 pods · 10.0/s · 29 s left · 3 waiting for a disruption budget" in said


def test_lines_at_most_one_a_second_and_always_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Display(clock=clock) as display:
        for tenth in range(15):
            clock.now = tenth / 10
            display.show(standing(tenth * 50))
    assert capsys.readouterr().out.splitlines() == [
        "0 of 700 pods evicted",
        "500 of 700 pods evicted",
        "700 of 700 pods evicted",
    ]


def test_who_a_policy_puts_off_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with Display(clock=Clock()) as display:
        display.show(standing(1, total=4, blocked=1, put_off=2))
    said = "1 of 4 pods evicted · 1 waiting for a disruption budget · 2 put off by the eviction policy\n"
    assert capsys.readouterr().out == said


def test_for_programs_standard_output_stays_clean(capsys: pytest.CaptureFixture[str]) -> None:
    with Display(quiet=True, clock=Clock()) as display:
        display.show(standing(1, total=1))
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "1 of 1 pod evicted\n")


def test_a_hold_is_said_once_and_when_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with Display(clock=Clock()) as display:
        for hold in ("", "too many. To confirm: …", "too many. To confirm: …", ""):
            display.show(standing(0, hold=hold))
    assert capsys.readouterr().err.splitlines() == ["dray: too many. To confirm: …", "dray: pods leave again"]

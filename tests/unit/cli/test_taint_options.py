"""How taints and times are read from the command line."""

from __future__ import annotations

import io
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.cli.taint_options import (
    CLUSTER_EFFECTS,
    DEVICE_EFFECTS,
    NODE_EFFECTS,
    confirm,
    read_duration,
    read_taint,
    read_taints,
    split_nodes,
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("maintenance=hbm:NoExecute", ("maintenance", "hbm", "NoExecute")),
        ("maintenance:None", ("maintenance", "", "None")),
        ("example.com/fw=:NoSchedule", ("example.com/fw", "", "NoSchedule")),
    ],
)
def test_taints(text: str, parts: tuple[str, str, str]) -> None:
    assert read_taint(text, DEVICE_EFFECTS) == parts


def test_nodes_and_taints_are_told_apart_by_how_they_are_written() -> None:
    words = ["node-1", "a:NoExecute", "node/node-2", "b=c", "nodes/node-1"]
    assert split_nodes(words) == (["node-1", "node-2"], ["a:NoExecute", "b=c"])


def test_an_effect_may_be_left_out_where_there_is_only_one() -> None:
    assert read_taint("maintenance=fan", ("NoExecute",), "NoExecute") == ("maintenance", "fan", "NoExecute")


@pytest.mark.parametrize(
    ("text", "effects", "says"),
    [
        ("", DEVICE_EFFECTS, "no effect. Write KEY[=VALUE]:EFFECT with the effect None, NoSchedule or NoExecute"),
        ("a=b", DEVICE_EFFECTS, "no effect"),
        ("a=b:", DEVICE_EFFECTS, "no effect"),
        ("a=b:PreferNoSchedule", DEVICE_EFFECTS, "there is no effect 'PreferNoSchedule'"),
        ("a=b:None", NODE_EFFECTS, "there is no effect 'None'"),
        ("a:NoSchedule", ("NoExecute",), "Write KEY[=VALUE]:EFFECT with the effect NoExecute."),
        (":NoExecute", DEVICE_EFFECTS, "the key"),
        ("a b:NoExecute", DEVICE_EFFECTS, "the key"),
        ("a=b=c:NoExecute", DEVICE_EFFECTS, "the value"),
        (f"a={'x' * 64}:NoExecute", DEVICE_EFFECTS, "the value"),
    ],
)
def test_what_is_no_taint_is_said(
    text: str, effects: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        read_taint(text, effects)
    assert end.value.code == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("effects", [NODE_EFFECTS, CLUSTER_EFFECTS])
def test_a_key_with_an_effect_is_given_once(effects: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Else the preview would be of what no server takes."""
    first, second, _ = effects
    assert len(read_taints([f"a:{first}", f"a:{second}", f"b:{first}"], effects)) == 3
    with pytest.raises(SystemExit) as end:
        read_taints([f"a:{first}", f"a:{second}", f"a=b:{first}"], effects)
    assert end.value.code == 2
    assert f"taint 'a=b:{first}': a:{first} is given twice" in capsys.readouterr().err


@given(st.integers(1, 86_400 * 30))
def test_times_come_back(seconds: int) -> None:
    assert read_duration(f"{seconds}s", "--for") == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "hours"), [("2h", 2), ("90m", 1.5), ("1d12h", 36), ("1d1h30m", 25.5), ("3600000ms", 1)]
)
def test_times(text: str, hours: float) -> None:
    assert read_duration(text, "--for") == timedelta(hours=hours)


@pytest.mark.parametrize(
    "text", ["soon", "2", "-2h", "0s", "h", "1h2d", "2 h", "1.5h", "٢h", "9" * 5000 + "s", "99999d"]
)
def test_what_is_no_time_is_said(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        read_duration(text, "--for")
    assert end.value.code == 2
    assert "Write it as 2h, 90m, 1d12h or 30s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "passes"), [("24\n", True), ("24", True), ("23\n", False), ("yes\n", False), ("", False)]
)
def test_the_number_must_be_typed(answer: str, passes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    if passes:
        confirm(24, "This taints every device.", "devices")
        return
    with pytest.raises(SystemExit) as end:
        confirm(24, "This taints every device.", "devices")
    assert end.value.code == 1

"""`python -m bench`: what there is, and what is wrong with what was asked for; nothing is measured here."""

from __future__ import annotations

import pytest
from bench import __main__ as command
from bench import _compare


@pytest.mark.parametrize("asked", ["-h", "--help"])
def test_help_names_every_benchmark_and_what_it_measures(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    command.main([asked])
    told = capsys.readouterr().out
    assert "python -m bench compare OLD NEW" in told
    assert {"server", "load", "store"} <= command.benchmarks().keys()
    for name, about in command.benchmarks().items():
        assert about, f"{name} does not say what it measures"
        assert f"  {name} " in told


@pytest.mark.parametrize("asked", ["nonsense", "_compare", "--nodes", "__main__"])
def test_what_is_no_benchmark_is_refused_before_any_is_run(asked: str) -> None:
    with pytest.raises(SystemExit, match=f"there is no benchmark '{asked}'; there are admission, allocator, "):
        command.main(["server", asked])


@pytest.mark.parametrize("asked", [[], ["old"], ["old", "new", "newer"]])
def test_two_checkouts_are_compared(asked: list[str]) -> None:
    with pytest.raises(SystemExit, match="both paths of checkouts"):
        command.main(["compare", *asked])


def test_only_checkouts_are_compared() -> None:
    with pytest.raises(SystemExit, match="nowhere is not a checkout of dray"):
        command.main(["compare", "nowhere", "."])


def test_a_difference_is_real_if_it_is_there_turn_by_turn_whatever_the_speed_of_the_machine() -> None:
    """The machine becomes three times as fast meanwhile; each turn of the new one takes a tenth less, or as much."""
    speeds = [300.0 - 5 * turn for turn in range(40)]
    assert "0.900  (0.900 to 0.900)  less" in _compare.row("less", [(speed, speed * 0.9) for speed in speeds])
    assert "1.100  (1.100 to 1.100)  more" in _compare.row("more", [(speed, speed * 1.1) for speed in speeds])
    either = [(speed, speed * (0.9 if turn % 2 else 1.1)) for turn, speed in enumerate(speeds)]
    assert "no difference that is real" in _compare.row("either", either)


def test_a_few_pairs_say_nothing() -> None:
    with pytest.raises(ValueError, match="5 pairs are too few"):
        _compare.row("few", [(1.0, 2.0)] * 5)
    assert "more" in _compare.row("enough", [(1.0, 2.0)] * 6)

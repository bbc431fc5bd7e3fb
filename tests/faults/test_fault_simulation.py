"""Whole control planes that have bad days: whatever fails, nothing goes wrong, and in the end everything is right.

Every seed is one day, the same every time. `DRAY_SEED=17 pytest tests/faults/test_fault_simulation.py` lives through
day 17 again.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from fault_simulation.coverage import FAULTS, STATES
from fault_simulation.seeds import seeds
from fault_simulation.simulation import Day, Report, day_of, simulate

SEEDS = (*range(25), 10_277, 10_537)
"""The first ones, and some that have taught something: a late pod of a gang that counted on others which were not
stored yet, and devices that came free for a gang one by one and were taken by those who had just left."""
SHORT = Day(steps=12)


@functools.cache
def report_of(seed: int) -> Report:
    """What became of a day."""
    return simulate(seed)


def failures(seed: int) -> list[str]:
    """What went wrong on a day, and how to see it again."""
    report = report_of(seed)
    replay = f"DRAY_SEED={seed} pytest {Path(__file__).name}"
    return [f"seed {seed} ({replay}): {problem}" for problem in report.problems]


@pytest.mark.req("4381-115", "4381-116", "4381-124", "4381-125", "4381-126", "4381-127", "4381-128", "4381-131")
@pytest.mark.req("5055-58", "5055-83", "5055-85", "5055-86", "5055-88", "5055-90", "5055-91", "5055-95", "5055-101")
@pytest.mark.req("implied-5", "implied-6", "implied-7", "implied-8")
@pytest.mark.parametrize("seed", seeds(SEEDS))
def test_whatever_fails_nothing_goes_wrong_and_all_that_can_be_done_is_done(seed: int) -> None:
    assert failures(seed) == []


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_nobody_is_gone_or_waits_for_a_clock_that_is_set_by_hours(seed: int) -> None:
    assert simulate(seed, replace(day_of(seed), jumps=0.15, jump=24.0)).problems == ()


def traces(seeds: tuple[int, ...], hash_seed: str) -> list[str]:
    """The digests of short days in a process of their own."""
    program = f"""
from fault_simulation.simulation import Day, simulate
for seed in {seeds}:
    print(simulate(seed, Day(steps={SHORT.steps})).trace)
"""
    places = os.pathsep.join((str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")))
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": places}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.split()


def test_a_seed_is_the_same_day_in_every_process() -> None:
    """Texts have other hashes in this one."""
    seeds = (0, 3)
    assert traces(seeds, "1") == [simulate(seed, SHORT).trace for seed in seeds]


def test_a_day_says_which_faults_met_which_states() -> None:
    met = report_of(0).met
    assert {fault for fault, _ in met} <= set(FAULTS)
    assert {state for _, state in met} <= set(STATES)
    assert met["slow", "pods wait"] > 0


def test_another_seed_is_another_day() -> None:
    assert report_of(0).trace != report_of(5).trace

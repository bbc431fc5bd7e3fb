"""From `spec.prioritizerPolicy` to prioritizers with weights."""

from __future__ import annotations

from typing import Final

from dray.api.cluster import PrioritizerConfig, PrioritizerPolicy, ScoreCoordinate
from dray.api.cluster.placement import (
    DEFAULT_WEIGHT,
    MODE_ADDITIVE,
    MODE_EXACT,
    MODES,
    SCORE_ADD_ON,
    SCORE_BUILT_IN,
    SCORE_TYPES,
)
from dray.placement.prioritizers import Prioritizer
from dray.placement.prioritizers.addon import AddOn
from dray.placement.prioritizers.balance import Balance
from dray.placement.prioritizers.resource import CPU, MEMORY
from dray.placement.prioritizers.steady import Steady
from dray.placement.problem import MisconfiguredError

BUILT_IN: Final[dict[str, Prioritizer]] = {entry.name: entry for entry in (Balance(), Steady(), CPU, MEMORY)}
DEFAULT_WEIGHTS: Final = {"Balance": 1, "Steady": 1}

_PATH: Final = "spec.prioritizerPolicy"


def read_prioritizers(policy: PrioritizerPolicy) -> list[tuple[Prioritizer, int]]:
    """Every prioritizer that counts, with its weight. Raises MisconfiguredError.

    Of several entries for one built-in prioritizer the last counts; add-on scores add up. A weight of 0 switches a
    prioritizer off, whatever its name.
    """
    mode = policy.mode or MODE_ADDITIVE
    if mode not in MODES:
        raise MisconfiguredError(f"{_PATH}.mode: {mode!r} is unknown; known are {' and '.join(MODES)}")
    built_in = {} if mode == MODE_EXACT else dict(DEFAULT_WEIGHTS)
    add_ons: list[tuple[Prioritizer, int]] = []
    for index, config in enumerate(policy.configurations):
        path = f"{_PATH}.configurations[{index}].scoreCoordinate"
        coordinate, weight = _read_config(config, path)
        if (coordinate.type or SCORE_BUILT_IN) == SCORE_BUILT_IN:
            built_in[coordinate.built_in] = weight
        elif weight:
            add_ons.append((_read_add_on(coordinate, path), weight))
    return [(_find_built_in(name), weight) for name, weight in built_in.items() if weight] + add_ons


def _read_config(config: PrioritizerConfig, path: str) -> tuple[ScoreCoordinate, int]:
    if config.score_coordinate is None:
        raise MisconfiguredError(f"{path}: must be given")
    return config.score_coordinate, DEFAULT_WEIGHT if config.weight is None else config.weight


def _find_built_in(name: str) -> Prioritizer:
    found = BUILT_IN.get(name)
    if found is None:
        known = ", ".join(sorted(BUILT_IN))
        raise MisconfiguredError(f"{_PATH}: {name!r} is not a built-in prioritizer; known are {known}")
    return found


def _read_add_on(coordinate: ScoreCoordinate, path: str) -> Prioritizer:
    if coordinate.type != SCORE_ADD_ON:
        raise MisconfiguredError(f"{path}.type: {coordinate.type!r} is unknown; known are {' and '.join(SCORE_TYPES)}")
    if coordinate.add_on is None:
        raise MisconfiguredError(f"{path}.addOn: must be given for type {SCORE_ADD_ON}")
    return AddOn(coordinate.add_on.resource_name, coordinate.add_on.score_name)

"""How the containers of a pod behave on a simulated node: by its annotations, else by those of its node."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from dray.simulation import names

LARGEST_EXIT_CODE: Final = 255


class Behaviour(msgspec.Struct, frozen=True):
    """Times in seconds. Without `run` containers run until they are stopped."""

    start: float = 0.0
    run: float | None = None
    stop: float = 0.0
    exit_code: int = 0
    problem: str = ""
    """What an annotation says that cannot be meant; it is left out of account and told in an event."""


def read_behaviour(pod: Mapping[str, str], node: Mapping[str, str]) -> Behaviour:
    """The behaviour that annotations of a pod and of its node describe; the pod's win."""
    problems: list[str] = []

    def number(name: str) -> float | None:
        text = pod.get(name, node.get(name))
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isfinite(value) and value >= 0:
            return value
        problems.append(f"annotation {name} must be a number that is not negative, not {text!r}")
        return None

    start, run, stop = number(names.START_SECONDS), number(names.RUN_SECONDS), number(names.STOP_SECONDS)
    code = number(names.EXIT_CODE) or 0
    if code != int(code) or code > LARGEST_EXIT_CODE:
        problems.append(f"annotation {names.EXIT_CODE} must be a whole number up to {LARGEST_EXIT_CODE}, not {code:g}")
        code = 0
    return Behaviour(start or 0.0, run, stop or 0.0, int(code), "; ".join(problems))

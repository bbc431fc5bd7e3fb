"""What a pod that was refused waits for."""

from __future__ import annotations

from enum import Flag, auto


class Cause(Flag):
    """The kinds of change that may make a pod fit."""

    NOTHING = 0
    NODE = auto()
    POD_GONE = auto()
    POD_CAME = auto()
    """A pod got a node, or other labels where it is."""
    DEVICES = auto()
    VOLUME = auto()
    """A volume, a claim for one, or a storage class."""
    CLAIM = auto()
    CLASS = auto()
    SELECTORS = auto()
    """Selectors that take long have been evaluated."""
    GROUP = auto()
    """A PodGroup changed, or has more pods."""
    ERROR = auto()
    """Something went wrong: try again whatever happens."""

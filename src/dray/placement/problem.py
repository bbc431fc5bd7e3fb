"""What is wrong with a placement's spec."""

from __future__ import annotations

from typing import NamedTuple


class PlacementProblem(NamedTuple):
    """A fault in the spec and the stage that met it; an empty stage is the pipeline itself."""

    stage: str
    message: str

    def __str__(self) -> str:
        return f"{self.stage}: {self.message}" if self.stage else self.message


class MisconfiguredError(ValueError):
    """Part of a spec cannot be used."""

    def __init__(self, message: str, stage: str = "") -> None:
        super().__init__(message)
        self.problem = PlacementProblem(stage, message)

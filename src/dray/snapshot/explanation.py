"""The allocator's reason tree, told to people and to programs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dray.allocator import Explanation
from dray.snapshot import prose


class ClaimExplanation:
    """Why claims fit or not. `str()` is for people, `to_dict()` for programs, `report` has everything."""

    def __init__(self, report: Explanation) -> None:
        self.report = report

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return self.report.to_dict()

    def text(self, *, now: datetime | None = None, width: int | None = None) -> str:
        """For people: with the ages of taints if `now` is given, and in lines of at most `width`."""
        return prose.tell(self.report, prose.Style(now=now, width=width))

    def summary(self) -> str:
        """One line, as in a pod's PodScheduled message (4381-217)."""
        return prose.summary(self.report)

    def __str__(self) -> str:
        return self.text()

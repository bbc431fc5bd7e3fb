"""The allocator's reason tree, told to people and to programs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from dray.allocator import Explanation
from dray.snapshot import prose


class ClaimExplanation:
    """Why claims fit or not. `str()` is for people, `to_dict()` for programs, `report` has everything."""

    def __init__(self, report: Explanation, lifting_helps: Callable[[str, str, str], bool] | None = None) -> None:
        """`lifting_helps` says whether a claim would fit on a node without a taint rule: (rule, claim, node)."""
        self.report = report
        self._lifting_helps = lifting_helps

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return self.report.to_dict()

    def text(self, *, now: datetime | None = None, width: int | None = None) -> str:
        """For people: with the ages of taints if `now` is given, and in lines of at most `width`."""
        return prose.tell(self.report, prose.Style(now=now, width=width, lifting_helps=self._lifting_helps))

    def summary(self) -> str:
        """One line, as in a pod's PodScheduled message (4381-217)."""
        return prose.summary(self.report)

    def brief(self) -> str:
        """The reasons in one line, for where the claim is named already."""
        return prose.brief(self.report)

    def __str__(self) -> str:
        return self.text()

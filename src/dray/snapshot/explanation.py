"""The allocator's reason tree, told to people and to programs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dray.allocator import Explanation
from dray.prose import explanations
from dray.prose.remedies import Trials, all_advice
from dray.prose.tables import wrap
from dray.prose.wording import names


class ClaimExplanation:
    """Why claims fit or not. `str()` is for people, `to_dict()` for programs, `report` has everything."""

    def __init__(
        self,
        report: Explanation,
        trials: Trials | None = None,
        passed_over: Mapping[str, str] | None = None,
        fits_there: tuple[str, ...] = (),
    ) -> None:
        """`trials` try what would help; without them no advice is given.

        `passed_over` are nodes that take no pods, with why not; the report is about the others. If the claims fit on
        none of these, `fits_there` are the first of those that have the devices.
        """
        self.report = report
        self.trials = trials
        self.passed_over = dict(passed_over or {})
        self.fits_there = fits_there

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `advice` names all devices, claims and rules of what would help."""
        plain = self.report.to_dict()
        if self.trials is not None:
            plain["advice"] = [one.to_dict() for one in all_advice(self.report, self.trials)]
        if self.passed_over:
            plain["passedOver"] = self.passed_over
        return {**plain, "wouldFitOn": list(self.fits_there)} if self.fits_there else plain

    def text(self, *, now: datetime | None = None, width: int | None = None) -> str:
        """For people: with the ages of taints if `now` is given, and in lines of at most `width`."""
        told = explanations.tell(self.report, explanations.Style(now=now, width=width, trials=self.trials))
        if not self.passed_over:
            return told
        closed = [f"{node} ({why})" for node, why in self.passed_over.items()]
        where = f" Devices that fit are on {names(self.fits_there, 5)}." if self.fits_there else ""
        return f"{told}\n\n{wrap(f'Take no pods: {names(closed, 5)}.{where}', width)}"

    def brief(self) -> str:
        """The reasons in one line, for where the claim is named already."""
        told = explanations.brief(self.report)
        fitting = [f"{node}, which is {self.passed_over[node]}" for node in self.fits_there]
        return f"{told}; there are devices on {fitting[0]}" if fitting else told

    def __str__(self) -> str:
        return self.text()

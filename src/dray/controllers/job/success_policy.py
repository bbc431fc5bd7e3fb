"""When a job has succeeded although not every index has: as its author says. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence

from dray.api.generated.batch import Job
from dray.validation.job_policies import read_intervals


def letters_of(job: Job) -> int:
    """How much a job says of the indexes that it takes to succeed."""
    policy = job.spec.success_policy
    return sum(len(rule.succeeded_indexes or "") for rule in policy.rules) if policy is not None else 0


def matched_rule(job: Job, completed: Collection[int]) -> int | None:
    """The position of the first rule that the completed indexes meet; None if none is met."""
    policy = job.spec.success_policy
    for position, rule in enumerate(policy.rules if policy is not None and completed else ()):
        if rule.succeeded_indexes is None:
            if rule.succeeded_count is not None and len(completed) >= rule.succeeded_count:
                return position
            continue
        # Two thousand million indexes are written in a few letters: nobody makes numbers of them.
        _, wanted = read_intervals(rule.succeeded_indexes, job.spec.completions or 0)
        number = sum(last - first + 1 for first, last in wanted)
        done = _done(wanted, completed)
        if number and done >= min(number if rule.succeeded_count is None else rule.succeeded_count, number):
            return position
    return None


def _done(wanted: Sequence[tuple[int, int]], completed: Collection[int]) -> int:
    """How many indexes are in one of the intervals, which are in order."""
    starts = [first for first, _ in wanted]
    places = ((index, bisect_right(starts, index) - 1) for index in completed)
    return sum(place >= 0 and index <= wanted[place][1] for index, place in places)

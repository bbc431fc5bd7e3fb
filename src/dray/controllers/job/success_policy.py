"""When a job has succeeded although not every index has: as its author says. Pure."""

from __future__ import annotations

from collections.abc import Collection

from dray.api.generated.batch import Job
from dray.controllers.job import indexes


def matched_rule(job: Job, completed: Collection[int]) -> int | None:
    """The position of the first rule that the completed indexes meet; None if none is met."""
    policy = job.spec.success_policy
    for position, rule in enumerate(policy.rules if policy is not None and completed else ()):
        if rule.succeeded_indexes is None:
            if rule.succeeded_count is not None and len(completed) >= rule.succeeded_count:
                return position
            continue
        wanted = {one for one in indexes.parse(rule.succeeded_indexes) if one < (job.spec.completions or 0)}
        done = len(wanted.intersection(completed))
        enough = len(wanted) if rule.succeeded_count is None else min(rule.succeeded_count, len(wanted))
        if wanted and done >= enough:
            return position
    return None

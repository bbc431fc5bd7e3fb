"""What rules and patches do not reach because their selectors fail, in words."""

from __future__ import annotations

from dray.prose.wording import count
from dray.tracker import Problem


def tell_problem(problem: Problem) -> str:
    """Goes on after the rule or patch that has the selector. One that cannot be read fails on every device."""
    what = f"passes over {count(problem.count, 'device')}" if problem.count else "selects no device at all"
    return f"{what}: {problem.message}"

"""A decision in one bounded line, for conditions and for the status: what kept clusters out, with a few of each.

Nothing in it changes with time alone, so that whoever writes it down writes only what is news.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

from dray.placement.explain import explain_mismatch, find_repelling
from dray.placement.moments import Moment, earliest, text_of
from dray.placement.tolerations import tolerate
from dray.placement.trace import Trace

NAMED: Final = 3
"""How many clusters a summary names for each reason."""


def summarize(trace: Trace) -> str:
    """How many clusters were selected and what kept the others out, with a few examples of each."""
    if trace.held is not None:
        return f"left as it is: {trace.held}"
    wanted = trace.policy.count
    selected = f"selected {len(trace.selected)}" + (f" of {wanted} wanted" if wanted is not None else "")
    parts = [f"{selected} {_plural(wanted if wanted is not None else len(trace.selected))}"]
    if trace.problem is not None:
        return f"{parts[0]}: misconfigured"
    parts.append(f"{len(trace.available)} available")
    mismatched = trace.available - trace.matched
    if mismatched:
        parts.append(f"{len(mismatched)} match no predicate ({_examples(mismatched, _Reasons(trace).of_mismatch)})")
    repelled = trace.matched - trace.feasible
    if repelled:
        parts.append(f"{len(repelled)} kept out by taints ({_examples(repelled, _Reasons(trace).of_taint)})")
    spare = trace.feasible - frozenset(trace.selected)
    if spare:
        parts.append(f"{len(spare)} not needed ({_examples(spare, _Reasons(trace).of_rank)})")
    limited = _find_limited(trace)
    if limited:
        named = ", ".join(f"{name}: until {text_of(until)}" for until, name in heapq.nsmallest(NAMED, limited))
        parts.append(f"{len(limited)} tolerated for a time ({named}{', …' if len(limited) > NAMED else ''})")
    return "; ".join(parts)


class _Reasons:
    """What to say of one cluster, in a few words."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def of_mismatch(self, name: str) -> str:
        return f"{name}: {explain_mismatch(self._trace, self._trace.case.fleet.members[name], mismatches=1)}"

    def of_taint(self, name: str) -> str:
        return f"{name}: {find_repelling(self._trace, self._trace.case.fleet.members[name])}"

    def of_rank(self, name: str) -> str:
        shunned = self._trace.shunned.get(name)
        return name if shunned is None else f"{name}: {shunned}"


def _find_limited(trace: Trace) -> list[tuple[Moment, str]]:
    """Selected clusters that leave when a toleration runs out, and when that is."""
    case = trace.case
    found: list[tuple[Moment, str]] = []
    for taints, tainted in case.fleet.tainted.items():
        until = earliest(*(tolerate(taint, trace.policy.tolerations, case.now).until for taint in taints))
        if until is not None:
            found += [(until, name) for name in tainted.intersection(trace.selected)]
    return found


def _plural(count: int) -> str:
    return "cluster" if count == 1 else "clusters"


def _examples(names: AbstractSet[str], tell: Callable[[str], str]) -> str:
    shown = [tell(name) for name in heapq.nsmallest(NAMED, names)]
    return ", ".join(shown) + (", …" if len(names) > NAMED else "")

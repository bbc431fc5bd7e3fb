"""A decision in one bounded line, for conditions."""

from __future__ import annotations

import heapq
from collections.abc import Set as AbstractSet
from typing import Final

from dray.placement.explain import find_repelling
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
        parts.append(f"{len(mismatched)} match no predicate ({_examples(mismatched)})")
    repelled = trace.matched - trace.feasible
    if repelled:
        parts.append(f"{len(repelled)} kept out by taints ({_tainted_examples(trace, repelled)})")
    spare = len(trace.feasible) - len(trace.selected)
    if spare:
        parts.append(f"{spare} not needed")
    return "; ".join(parts)


def _plural(count: int) -> str:
    return "cluster" if count == 1 else "clusters"


def _examples(names: AbstractSet[str]) -> str:
    shown = heapq.nsmallest(NAMED, names)
    return ", ".join(shown) + (", …" if len(names) > NAMED else "")


def _tainted_examples(trace: Trace, names: AbstractSet[str]) -> str:
    members = trace.scene.fleet.members
    shown = [f"{name}: {find_repelling(trace, members[name])}" for name in heapq.nsmallest(NAMED, names)]
    return ", ".join(shown) + (", …" if len(names) > NAMED else "")

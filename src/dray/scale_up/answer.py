"""The answer to "which nodes are missing?", as data and in words."""

from __future__ import annotations

from typing import Any

import msgspec

from dray.prose import wording
from dray.prose.tables import lay_out, wrap
from dray.prose.wording import count

MAX_TOLD = 20


class GroupAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """How many nodes of a group to add, and who would run there."""

    name: str
    nodes: int
    limit: int
    price: float
    pods: tuple[str, ...] = ()


class Unplaced(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that no group helps: why it does not fit now, and why not on one more node of each group."""

    pod: str
    message: str
    groups: dict[str, str] = {}


class ScaleUpPlan(msgspec.Struct, frozen=True, rename="camel"):
    """What to add. `fitting` are pods that need no new node; `placements` says where each pod would go."""

    pending: int
    fitting: tuple[str, ...] = ()
    groups: tuple[GroupAnswer, ...] = ()
    placements: dict[str, str] = {}
    unplaced: tuple[Unplaced, ...] = ()
    notes: tuple[str, ...] = ()
    """What was not looked at."""

    @property
    def nodes(self) -> int:
        """How many nodes to add in all."""
        return sum(group.nodes for group in self.groups)

    @property
    def cost(self) -> float:
        """What they cost."""
        return sum(group.nodes * group.price for group in self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return {**plain, "nodes": self.nodes, "cost": self.cost}

    def text(self, width: int | None = None, rest: str = "") -> str:
        """For people, in lines of at most `width`; `rest` says where the pods are that a table leaves out."""
        if not self.pending:
            return "No pod is pending."
        parts = [wrap(self.headline(), width)]
        added = [group for group in self.groups if group.nodes]
        if added:
            rows = [("group", "add", "of", "price", "pods")]
            for group in added:
                price = f"{group.nodes * group.price:g}"
                rows.append((group.name, str(group.nodes), str(group.limit), price, str(len(group.pods))))
            parts.append("\n".join(lay_out(rows, width)))
        if self.unplaced:
            parts.append("\n".join(self._refusals(width, rest)))
        parts += [wrap(f"Note: {note}.", width) for note in self.notes]
        return "\n\n".join(parts)

    def headline(self) -> str:
        """In one sentence."""
        helped = len(self.placements) - len(self.fitting)
        verdicts = []
        if self.fitting:
            verdicts.append(f"{_fit(len(self.fitting))} on the nodes that are there")
        if helped:
            verdicts.append(f"{_fit(helped)} with {count(self.nodes, 'more node')}")
        untried = sum(1 for one in self.unplaced if one.message and not one.groups)
        if len(self.unplaced) > untried:
            verdicts.append(f"{_fit(len(self.unplaced) - untried)} on no node of any group")
        if untried:
            verb = "waits" if untried == 1 else "wait"
            verdicts.append(f"{untried} {verb} for something other than nodes, or for another scheduler")
        verb = "is" if self.pending == 1 else "are"
        return f"{count(self.pending, 'pod')} {verb} pending: {', '.join(verdicts)}."

    def _refusals(self, width: int | None, rest: str) -> list[str]:
        rows = [("pod", "why not")]
        for refused in self.unplaced[:MAX_TOLD]:
            reasons = refused.groups or {"": refused.message}
            for group, reason in reasons.items():
                rows.append((refused.pod, f"{group}: {reason}" if group else reason))
        return [*lay_out(rows, width), *wording.rest(len(self.unplaced) - MAX_TOLD, "pod", rest)]


def _fit(number: int) -> str:
    return f"{number} {'fits' if number == 1 else 'fit'}"

"""What a drain that keeps budgets does, told before it begins: its pace, its end, and who waits for what. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from dray.api.kinds import NODES, RULES
from dray.api.times import Time, later
from dray.eviction.drain import DrainTerms, is_paused
from dray.prose.wording import count, names
from dray.snapshot.snapshot import Snapshot
from dray.what_if.guard_preview import asking
from dray.what_if.taint_preview import TaintPreview


def paced(preview: TaintPreview, terms: DrainTerms, taints: tuple[str, ...], snapshot: Snapshot) -> TaintPreview:
    """The preview of the same pods leaving one by one, with the taints that are really written."""
    now = Time.parse(preview.now).datetime()
    free = now
    pods = []
    for pod in sorted(preview.pods, key=lambda one: (one.due, one.pod)):
        leaves = max(Time.parse(pod.due).datetime(), free)
        pods.append(replace(pod, expected=str(Time.of(leaves))))
        if terms.rate:
            free = later(leaves, 1.0 / terms.rate)
    budgets = (*_tell_stuck(preview, terms), *tell_budgets(preview))
    notes = (*_tell_pause(preview, snapshot), *_tell_pace(terms), *budgets, *preview.notes)
    finished = max((one.expected for one in pods), default=None)
    guard = asking(preview.guard) if preview.guard is not None else None
    waits = bool(budgets) or terms.wait_for_replacements
    timed = replace(preview, taints=taints, pods=tuple(pods), finished=finished, may_wait=waits)
    return replace(timed, guard=guard, notes=notes)


def tell_broken(preview: TaintPreview) -> tuple[str, ...]:
    """What is broken if budgets are ignored, budget by budget."""
    return tuple(
        f"disruption budget {name} is broken: {count(needed, 'pod')} {_verb(needed, 'leave')}, and it allows {allowed}"
        for name, needed, allowed in _short(preview)
    )


def tell_ended(drained: Iterable[str]) -> tuple[str, ...]:
    """Which drains end because another taint comes in the place of theirs."""
    return tuple(f"the drain of {target} ends: this comes in the place of its taint" for target in drained)


def tell_budgets(preview: TaintPreview) -> tuple[str, ...]:
    """Which budgets make pods wait."""
    return tuple(
        f"{needed - allowed} of {count(needed, 'pod')} {_verb(needed - allowed, 'wait')} for disruption budget {name}, "
        f"which allows {allowed} now"
        for name, needed, allowed in _short(preview)
    )


def _tell_stuck(preview: TaintPreview, terms: DrainTerms) -> Iterator[str]:
    """Who is never let go: the eviction API refuses pods of several budgets, whatever these allow."""
    stuck = [pod for pod in preview.pods if pod.budget is not None and pod.more_budgets]
    if stuck:
        budgets = sorted({one.name for pod in stuck for one in (pod.budget, *pod.more_budgets) if one is not None})
        until = "the deadline" if terms.deadline is not None else "no more than one is about them"
        yield (
            f"the eviction API lets nobody go who is under several disruption budgets ({names(budgets, 4)}): "
            f"{names([pod.pod for pod in stuck], 5)} {_verb(len(stuck), 'stay')} until {until}"
        )


def _verb(number: int, verb: str) -> str:
    return f"{verb}s" if number == 1 else verb


def _short(preview: TaintPreview) -> Iterator[tuple[str, int, int]]:
    """Budgets that allow less than is needed: name, needed, allowed."""
    found = {
        f"{pod.pod.partition('/')[0]}/{budget.name}": budget
        for pod in preview.pods
        for budget in (pod.budget, *pod.more_budgets)
        if budget is not None
    }
    for name, budget in sorted(found.items()):
        if budget.granted < budget.needed:
            yield name, budget.needed, budget.granted


def _tell_pause(preview: TaintPreview, snapshot: Snapshot) -> Iterator[str]:
    targets = [("rule", RULES, name) for name in preview.rules] + [("node", NODES, name) for name in preview.nodes]
    for word, kind, name in targets:
        found = snapshot.get(kind.resource, "", name)
        if found is not None and is_paused(found.metadata.annotations):
            yield f"the drain is paused: nobody leaves until `dray drain resume {word}/{name}`"


def _tell_pace(terms: DrainTerms) -> Iterator[str]:
    if terms.rate:
        yield f"{count(terms.rate, 'pod')} a second at most, from the first one on"
    if terms.wait_for_replacements:
        yield "a ready pod leaves only when those of its controller that left before are replaced"
    if terms.deadline is not None:
        yield "who is still there at the deadline is deleted, whatever budgets say"

"""What is out of service: the rules that taint devices, how far they are, and what they wait for; nodes that pods have
to leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from dray.allocator import Inventory
from dray.api.conditions import find_condition
from dray.api.generated.core import Node, Pod, Taint
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.pods import is_finished
from dray.api.resource import DeviceTaintRule
from dray.api.resource.pool import pool_of
from dray.api.resource.rule_annotations import EXPIRES_AT
from dray.api.resource.taint import EFFECT_NO_EXECUTE
from dray.api.taints import taint_text
from dray.eviction.budgets import Keepers, waiting_for
from dray.eviction.confirmations import is_confirmed, is_taint_confirmed
from dray.eviction.drain import drain_taints, is_drained, is_paused, leaves_by_drain, must_leave, still_stopping
from dray.eviction.rule_condition import EVICTION_HELD, EVICTION_IN_PROGRESS
from dray.prose.wording import count, names
from dray.tracker.view import EffectiveDevice
from dray.views.device import Document
from dray.what_if.driver_evictions import Unconfirmed


class RuleRow(Document, frozen=True, kw_only=True):
    """A DeviceTaintRule."""

    name: str
    taint: str
    effect: str
    rate: int | None
    devices: int
    in_use: int
    """How many of them claims hold now: what conditions tell may be seconds old."""
    since: str | None
    until: str | None
    drained: bool
    """Whether a drain has pods leave for it: its command goes on somewhere, or can be given again."""
    in_progress: bool
    progress: str
    held: str
    """Why nobody leaves until somebody confirms it; empty if nobody has to."""


class Reach(NamedTuple):
    """The devices of a rule in numbers."""

    devices: int
    in_use: int

    @classmethod
    def of(cls, devices: Sequence[EffectiveDevice], inventory: Inventory) -> Reach:
        """Devices that a rule selects."""
        return cls(len(devices), sum(inventory.holding(one.id) is not None for one in devices))


def rule_rows(rules: Iterable[DeviceTaintRule], reach: Callable[[str], Reach]) -> list[RuleRow]:
    """All rules, those that evict first; `reach` says what a rule of some name selects."""
    rows = [_row(rule, reach(rule.metadata.name)) for rule in rules]
    return sorted(rows, key=lambda row: (not row.held, not row.in_progress, row.name))


class NodeRow(Document, frozen=True, kw_only=True):
    """A node that pods have to leave, or whose evictions are held."""

    name: str
    taints: tuple[str, ...]
    """Those that make them leave: with NoExecute, or of a drain."""
    pods: int
    progress: str
    """What they wait for: a drain that is paused, or disruption budgets; empty if they leave as they are told."""
    held: str


def node_rows(nodes: Iterable[Node], pods: Iterable[Pod], budgets: Iterable[PodDisruptionBudget] = ()) -> list[NodeRow]:
    """Those that are held first."""
    wanted = {node.metadata.name: node for node in nodes if is_drained(node) or any(map(_evicts, node.spec.taints))}
    there: dict[str, list[Pod]] = {name: [] for name in wanted}
    for pod in pods:
        if pod.spec.node_name in there and not is_finished(pod):
            there[pod.spec.node_name].append(pod)
    keepers = Keepers(budgets)
    rows = [_node_row(node, there[name], keepers) for name, node in wanted.items()]
    return sorted((row for row in rows if row.pods or row.held), key=lambda row: (not row.held, row.name))


def _node_row(node: Node, pods: Sequence[Pod], keepers: Keepers) -> NodeRow:
    leaving = must_leave(node, pods)
    evicting = [taint for taint in node.spec.taints if _evicts(taint)]
    waits = not all(is_taint_confirmed(taint, node.metadata.annotations) for taint in evicting)
    held = find_condition(node.status.conditions, EVICTION_HELD)
    return NodeRow(
        name=node.metadata.name,
        taints=tuple(map(taint_text, dict.fromkeys((*evicting, *drain_taints(node))))),
        pods=len(leaving) + len(still_stopping(node, pods)),
        progress=_node_progress(node, leaving, keepers),
        held=held.message if held is not None and held.status == "True" and waits else "",
    )


def _node_progress(node: Node, leaving: Sequence[Pod], keepers: Keepers) -> str:
    asked = [pod for pod in leaving if leaves_by_drain(node, pod)]
    if asked and is_paused(node.metadata.annotations):
        return _tell_paused(f"node/{node.metadata.name}")
    waiting = waiting_for(asked, keepers) if asked else {}
    if not waiting:
        return ""
    number = sum(waiting.values())
    which = f"budget{'' if len(waiting) == 1 else 's'} {names(sorted(waiting), 3)}"
    return f"{count(number, 'pod')} {'waits' if number == 1 else 'wait'} for disruption {which}."


def _tell_paused(target: str) -> str:
    return f"The drain is paused until `dray drain resume {target}`."


class PoolRow(Document, frozen=True, kw_only=True):
    """A pool whose driver has pods leave that are there still, and that nobody confirmed."""

    name: str
    """The slice that it is confirmed on."""
    pool: str
    """`driver/pool`."""
    taints: tuple[str, ...]
    pods: int
    held: str


def pool_rows(found: Iterable[Unconfirmed]) -> list[PoolRow]:
    """All that were found."""
    return [
        PoolRow(
            name=one.slice.metadata.name,
            pool="/".join(pool_of(one.slice)),
            taints=one.taints,
            pods=one.pods,
            held=one.why,
        )
        for one in found
    ]


def _evicts(taint: Taint) -> bool:
    return taint.effect == EFFECT_NO_EXECUTE


def _row(rule: DeviceTaintRule, reach: Reach) -> RuleRow:
    taint = rule.spec.taint
    progress = find_condition(rule.status.conditions, EVICTION_IN_PROGRESS)
    held = find_condition(rule.status.conditions, EVICTION_HELD)
    is_held = held is not None and held.status == "True"
    was_confirmed = is_held and is_confirmed(rule)
    told = progress.message if progress is not None else ""
    drained = is_drained(rule)
    if drained:
        is_still = is_paused(rule.metadata.annotations)
        told = _tell_paused(f"rule/{rule.metadata.name}") if is_still else "Drained: pods leave as budgets allow."
    return RuleRow(
        name=rule.metadata.name,
        taint=taint_text(taint),
        effect=taint.effect,
        rate=taint.evictions_per_second,
        devices=reach.devices,
        in_use=reach.in_use,
        since=str(taint.time_added) if taint.time_added else None,
        until=rule.metadata.annotations.get(EXPIRES_AT),
        drained=drained,
        in_progress=progress is not None and progress.status == "True",
        progress="Confirmed: its pods leave." if was_confirmed else told,
        held=held.message if held is not None and is_held and not was_confirmed else "",
    )

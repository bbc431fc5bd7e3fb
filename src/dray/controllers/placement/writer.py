"""Carries out a plan: PlacementDecisions first, the placement's status last, events for people along the way.

Whatever fails raises, and is planned and tried again; what was written before stays and is not written twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec.structs import replace

from dray.api.cluster import Placement, PlacementDecision, PlacementDecisionStatus, PlacementStatus
from dray.api.kinds import DECISIONS
from dray.client import Client, Informer
from dray.client.calls import delete_exactly
from dray.controllers.placement.plan import ChangedDecision, PlacementWrites, describe_change, describe_scores
from dray.placement import PlacementResult
from dray.reconcile import EventRecorder

_Content: TypeAlias = tuple[dict[str, str], PlacementDecisionStatus]


class Writer:
    """Writes for one controller, and lets its informers see what was written at once."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        placements: Informer[Placement],
        decisions: Informer[PlacementDecision],
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._placements = placements
        self._decisions = decisions
        self._written: dict[str, PlacementStatus] = {}
        """What placements are to say, by uid, as it was written or found last."""
        self._stated: dict[str, _Content] = {}
        """The same of decisions."""
        self._told: dict[str, str] = {}

    def wrote(self, placement: Placement) -> bool:
        """Whether the status is as this writer left it."""
        written = self._written.get(placement.metadata.uid)
        return written is not None and written == placement.status

    def stated(self, decision: PlacementDecision) -> bool:
        """Whether a decision is as this writer left it."""
        return self._stated.get(decision.metadata.uid) == _content(decision)

    def forget(self, placement: Placement) -> None:
        """The placement is gone."""
        self._written.pop(placement.metadata.uid, None)
        self._told.pop(placement.metadata.uid, None)

    def forget_decision(self, decision: PlacementDecision) -> None:
        """The decision is gone."""
        self._stated.pop(decision.metadata.uid, None)

    async def write(
        self,
        placement: Placement,
        result: PlacementResult,
        plan: PlacementWrites,
        existing: Iterable[PlacementDecision],
    ) -> None:
        """Everything that the plan asks for, which was made for the `existing` decisions.

        What need not be written is noted, too: a write whose answer was lost may still come, and is seen by that.
        """
        self._written[placement.metadata.uid] = placement.status
        self._stated |= {decision.metadata.uid: _content(decision) for decision in existing}
        for decision in plan.create:
            await self._create(placement, result, decision)
        for change in plan.change:
            await self._change(placement, result, change)
        for decision in plan.delete:
            await self._delete(placement, decision)
        if plan.status is not None:
            self._written[placement.metadata.uid] = plan.status
            written = await self._client.update(replace(placement, status=plan.status), subresource="status")
            self._written[placement.metadata.uid] = written.status
            self._placements.put(written)
        await self._warn(placement, "DecisionUpdate", "; ".join(result.warnings))

    async def tell_held(self, placement: Placement, why: str) -> None:
        """Says once that the decisions are left as they are."""
        await self._warn(placement, "DecisionHeld", f"The decisions are left as they are: {why}")

    async def _warn(self, placement: Placement, reason: str, message: str) -> None:
        uid = placement.metadata.uid
        if message and self._told.get(uid) != message:
            await self._recorder.warning(placement, reason, message)
        self._told[uid] = message

    async def _create(self, placement: Placement, result: PlacementResult, wanted: PlacementDecision) -> None:
        made = await self._client.create(replace(wanted, status=type(wanted.status)()))
        self._stated[made.metadata.uid] = _content(made)
        self._decisions.put(made)
        await self._recorder.normal(placement, "DecisionCreate", f"Decision {wanted.metadata.name} is created")
        await self._change(placement, result, ChangedDecision(made, replace(made, status=wanted.status)))

    async def _change(self, placement: Placement, result: PlacementResult, change: ChangedDecision) -> None:
        current = change.old
        self._stated[current.metadata.uid] = _content(change.new)
        if change.of_labels:
            current = await self._client.update(replace(change.new, status=current.status))
            self._decisions.put(current)
        if not change.of_status:
            return
        self._decisions.put(await self._client.update(replace(current, status=change.new.status), subresource="status"))
        name = change.new.metadata.name
        moved = describe_change(change.old, change.new)
        await self._recorder.normal(placement, "DecisionUpdate", f"Decision {name} is updated: {moved}")
        scores = describe_scores(change.new, result)
        if scores:
            await self._recorder.normal(placement, "ScoreUpdate", scores)

    async def _delete(self, placement: Placement, decision: PlacementDecision) -> None:
        await delete_exactly(self._client, DECISIONS, decision)
        await self._recorder.normal(placement, "DecisionDelete", f"Decision {decision.metadata.name} is deleted")


def _content(decision: PlacementDecision) -> _Content:
    return decision.metadata.labels, decision.status

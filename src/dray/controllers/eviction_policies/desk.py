"""The desk: asks the policy of a pod that must leave, does what it says, and tells what was decided and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from dray.api.generated.core import Pod
from dray.api.status import ApiError
from dray.controllers.context import Context
from dray.controllers.eviction_policies.deciders import Decider, TookTooLong, within
from dray.controllers.eviction_policies.policy_metrics import PolicyMetrics
from dray.controllers.eviction_policies.removal import Mark, evict_pod, remove_pod
from dray.controllers.eviction_policies.waiting import WaitingCondition
from dray.eviction import PodRef
from dray.eviction.policy import Decision, EvictionCause, Force, Never, Now, PolicyState, Siblings, Wait
from dray.eviction.replicas import Replicas
from dray.eviction.settings import POLICY_ANNOTATION, Fallback
from dray.reconcile import EventRecorder
from dray.reconcile.clock import as_time

EVENT = "EvictionPolicy"
FAILED_EVENT = "EvictionPolicyFailed"
SHORTEST_WAIT = 1.0
LONGEST_WAIT = 24 * 3600.0
HOLD_SECONDS = 30.0
FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 30.0
TOO_MANY_REQUESTS = 429


class Left(NamedTuple):
    """The pod was told to leave, or (not deleted) was gone already."""

    is_deleted: bool


class Later(NamedTuple):
    """The pod stays until a time, in seconds since 1970."""

    until: float


class Stays(NamedTuple):
    """The pod stays: by decision, or because it need not leave any more."""

    is_kept: bool


Outcome: TypeAlias = Left | Later | Stays


class Rules(NamedTuple):
    """Whom to ask, for how long, and what if there is no answer."""

    default: Decider
    offered: Mapping[str, Decider]
    fallback: Fallback
    timeout: float


class _Case(msgspec.Struct):
    """What is remembered of a pod between questions."""

    since: float
    cause: EvictionCause
    asked: int = 0
    refusals: int = 0
    refused: str = ""
    told: str = ""


class Desk:
    """Of one eviction controller."""

    def __init__(self, context: Context, prefix: str, recorder: EventRecorder, mark: Mark, rules: Rules) -> None:
        """`mark` is how the controller marks pods that it deletes; `prefix` its name in metrics."""
        self._client = context.client
        self._clock = context.clock
        self._recorder = recorder
        self._mark = mark
        self._rules = rules
        self._metrics = PolicyMetrics(prefix, context.metrics)
        self._waiting = WaitingCondition(context.client, context.clock)
        self._cases: dict[PodRef, _Case] = {}
        self.replicas = Replicas()

    async def settle(self, pod: Pod, cause: EvictionCause, must_leave: Callable[[], bool]) -> Outcome:
        """Asks about a pod and does what is decided, unless it need not leave any more when the answer is there.

        Raises ApiError or OSError if what was decided cannot be done now.
        """
        siblings = self.replicas.siblings(pod)
        # From the question on, so that nobody who is asked about a sibling meanwhile counts on this pod.
        self.replicas.evicting(pod, is_so=True)
        outcome: Outcome | None = None
        try:
            outcome = await self._settle(pod, self._case(pod, cause), siblings, must_leave)
            return outcome
        finally:
            self.replicas.evicting(pod, is_so=isinstance(outcome, Left) and outcome.is_deleted)

    async def _settle(
        self, pod: Pod, case: _Case, siblings: Siblings | None, must_leave: Callable[[], bool]
    ) -> Outcome:
        decider = await self._choose(pod)
        decision = await self._ask(decider, pod, case, siblings)
        if not must_leave():
            self._withdraw(pod)
            return Stays(is_kept=False)
        self._metrics.decided(decider.name, type(decision).__name__.lower())
        if isinstance(decision, Now | Force):
            return await self._remove(decider, decision, pod, case)
        await self._tell(decider, decision, pod, case)
        if isinstance(decision, Never):
            await self._waiting.clear(pod)
            self._withdraw(pod)
            return Stays(is_kept=True)
        return Later(decision.until)

    def follows_up(self, pod: Pod) -> bool:
        """Whether the policy of a pod wants to know what becomes of those that were deleted."""
        offered = self._rules.offered.get(pod.metadata.annotations.get(POLICY_ANNOTATION, ""))
        is_wanted = (offered or self._rules.default).follows_up
        return is_wanted and any(
            one.type == "DisruptionTarget" and one.reason == self._mark.reason for one in pod.status.conditions
        )

    async def follow_up(self, pod: Pod, unknown: EvictionCause) -> float | None:
        """Asks about a pod that is being deleted; `unknown` stands for its cause if it was deleted before a restart.

        Returns after how many seconds to ask again, None for not again. Raises ApiError or OSError.
        """
        decider = await self._choose(pod)
        case = self._cases.get(PodRef.of(pod)) or self._case(pod, unknown)
        decision = await self._ask(decider, pod, case, None)
        self._metrics.decided(decider.name, type(decision).__name__.lower())
        if isinstance(decision, Force):
            await self._tell(decider, decision, pod, case)
            await remove_pod(self._client, pod, self._mark, as_time(self._clock.now()), force=True)
        if isinstance(decision, Wait):
            return decision.until - self._clock.now()
        return None

    async def cancelled(self, pod: Pod) -> None:
        """A pod need not leave any more: what was said about waiting is withdrawn. Raises ApiError or OSError."""
        self._withdraw(pod)
        await self._waiting.clear(pod)

    def forget(self, pod: Pod) -> None:
        """A pod is gone."""
        self.replicas.drop(pod)
        self._cases.pop(PodRef.of(pod), None)

    async def close(self) -> None:
        """Gives up connections and threads."""
        for decider in (self._rules.default, *self._rules.offered.values()):
            await decider.close()

    def _case(self, pod: Pod, cause: EvictionCause) -> _Case:
        ref = PodRef.of(pod)
        case = self._cases.get(ref)
        if case is None or case.cause.key != cause.key or case.cause.rule != cause.rule:
            case = self._cases[ref] = _Case(self._clock.now(), cause)
        return case

    def _withdraw(self, pod: Pod) -> None:
        self.replicas.stays(pod)
        self._cases.pop(PodRef.of(pod), None)

    async def _choose(self, pod: Pod) -> Decider:
        name = pod.metadata.annotations.get(POLICY_ANNOTATION, "")
        if not name or name == self._rules.default.name:
            return self._rules.default
        offered = self._rules.offered.get(name)
        if offered is None:
            there = ", ".join(sorted({self._rules.default.name, *self._rules.offered}))
            message = f"annotation {POLICY_ANNOTATION}: policy {name!r} is not offered here, only {there}"
            await self._recorder.warning(pod, FAILED_EVENT, message)
            return self._rules.default
        return offered

    async def _ask(self, decider: Decider, pod: Pod, case: _Case, siblings: Siblings | None) -> Decision:
        """The answer; the fallback if there is none."""
        now = self._clock.now()
        state = PolicyState(asked=case.asked, since=case.since, refused=case.refused, siblings=siblings)
        case.asked += 1
        asking = decider.decide(pod, case.cause, state, now)
        try:
            answer = await (within(self._rules.timeout, asking, self._clock) if decider.may_block else asking)
        except TookTooLong:
            why = f"no answer in {self._rules.timeout:g} s"
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        else:
            if isinstance(answer, Wait) and answer.until == answer.until:
                return Wait(min(max(answer.until, now + SHORTEST_WAIT), now + LONGEST_WAIT), answer.reason)
            if isinstance(answer, Now | Never | Force):
                return answer
            why = f"{answer!r} is no decision"
        return await self._fall_back(decider, pod, why)

    async def _fall_back(self, decider: Decider, pod: Pod, why: str) -> Decision:
        fallback = self._rules.fallback
        self._metrics.failed(decider.name, fallback)
        consequence = "the pod is deleted" if fallback is Fallback.DELETE else "the pod stays, and it is asked again"
        await self._recorder.warning(pod, FAILED_EVENT, f"{decider.name}: {why}; {consequence}")
        if fallback is Fallback.DELETE:
            return Now()
        return Wait(self._clock.now() + HOLD_SECONDS, f"policy {decider.name} failed")

    async def _remove(self, decider: Decider, decision: Now | Force, pod: Pod, case: _Case) -> Outcome:
        await self._tell(decider, decision, pod, case)
        try:
            return Left(await self._carry_out(decision, pod))
        except ApiError as error:
            if not (isinstance(decision, Now) and decision.respect_budgets and error.code == TOO_MANY_REQUESTS):
                raise
            case.refused = _refusal(error)
        self._metrics.refused()
        case.refusals += 1
        await self._tell(decider, Wait(0.0, case.refused), pod, case)
        return Later(self._clock.now() + min(FIRST_BACKOFF * 2 ** min(case.refusals - 1, 10), LONGEST_BACKOFF))

    async def _carry_out(self, decision: Now | Force, pod: Pod) -> bool:
        if isinstance(decision, Now) and decision.respect_budgets:
            return await evict_pod(self._client, pod)
        now = as_time(self._clock.now())
        return await remove_pod(self._client, pod, self._mark, now, force=isinstance(decision, Force))

    async def _tell(self, decider: Decider, decision: Decision, pod: Pod, case: _Case) -> None:
        """An event for each new reason, and a condition while the pod waits."""
        what = {Wait: "waits", Never: "stays", Force: "is removed by force"}.get(type(decision), "leaves")
        text = f"{decider.name}: pod {what}: {decision.reason}" if decision.reason else ""
        if not text and not isinstance(decision, Now):
            text = f"{decider.name}: pod {what}"
        if text and text != case.told:
            case.told = text
            await self._recorder.normal(pod, EVENT, text)
        if isinstance(decision, Wait):
            await self._waiting.set(pod, decider.name, decision.reason)


def _refusal(error: ApiError) -> str:
    details = error.status.details
    return "; ".join(cause.message for cause in details.causes) if details is not None else str(error)

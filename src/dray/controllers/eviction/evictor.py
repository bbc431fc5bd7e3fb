"""Evicts pods: asks the policy of a pod that must leave, does what it says, and tells what was decided and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import msgspec

from dray.api.conditions import DISRUPTION_TARGET
from dray.api.generated.core import Pod
from dray.api.references import ObjectRef
from dray.api.status import ApiError
from dray.controllers.context import Context
from dray.controllers.eviction.deciders import Decider, PolicyFailed, ask
from dray.controllers.eviction.identity import Identity
from dray.controllers.eviction.policy_metrics import PolicyMetrics
from dray.controllers.eviction.policy_sources import make_policies
from dray.controllers.eviction.removal import evict_pod, refusal, remove_pod
from dray.controllers.eviction.waiting_condition import WaitingCondition
from dray.eviction.drain import REFUSED
from dray.eviction.policy import Decision, EvictionCause, Force, Never, Now, PolicyState, Siblings, Wait
from dray.eviction.replicas import Replicas
from dray.eviction.settings import POLICY_ANNOTATION, FailurePolicy
from dray.reconcile import EventRecorder

EVENT = "EvictionPolicy"
FAILED_EVENT = "EvictionPolicyFailed"
HOLD_SECONDS = 30.0


class Left(NamedTuple):
    """The pod was told to leave, or (not deleted) was gone already."""

    is_deleted: bool


class Later(NamedTuple):
    """The pod stays until a time, in seconds since 1970."""

    until: float
    problem: str = ""
    """Why the policy could not be asked, if that is the reason."""


class Stays(NamedTuple):
    """The pod stays: by decision, or because it need not leave any more."""

    is_kept: bool


Outcome: TypeAlias = Left | Later | Stays


class _Case(msgspec.Struct):
    """What is remembered of a pod between questions."""

    since: float
    cause: EvictionCause
    asked: int = 0
    refusals: int = 0
    refused: str = ""
    told: str = ""


class Evictor:
    """Of one eviction controller."""

    def __init__(self, context: Context, recorder: EventRecorder, identity: Identity) -> None:
        """Raises SettingsError if a policy cannot be made."""
        self._client = context.client
        self._clock = context.clock
        self._recorder = recorder
        self._identity = identity
        self._policies = make_policies(context.settings.eviction)
        self._metrics = PolicyMetrics(identity.metrics, context.metrics)
        self._waiting = WaitingCondition(context.client, context.clock)
        self._cases: dict[ObjectRef, _Case] = {}
        self._replicas = Replicas()
        self.counts_siblings = any(decider.counts_siblings for decider in self._policies.all())
        """Whether a policy wants to know how the pods of a controller are: then `put_pod` must hear of them all."""

    async def settle(self, pod: Pod, cause: EvictionCause, must_leave: Callable[[], bool]) -> Outcome:
        """Asks about a pod and does what is decided, unless it need not leave any more when the answer is there.

        Raises ApiError or OSError if what was decided cannot be done now.
        """
        siblings = self._replicas.siblings(pod)
        # From the question on, so that nobody who is asked about a sibling meanwhile counts on this pod.
        self._replicas.evicting(pod, is_so=True)
        outcome: Outcome | None = None
        try:
            outcome = await self._settle(pod, self._case(pod, cause), siblings, must_leave)
            return outcome
        finally:
            self._replicas.evicting(pod, is_so=isinstance(outcome, Left) and outcome.is_deleted)

    async def _settle(
        self, pod: Pod, case: _Case, siblings: Siblings | None, must_leave: Callable[[], bool]
    ) -> Outcome:
        decider = await self._choose(pod)
        decision, problem = await self._ask(decider, pod, case, siblings)
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
        return Later(decision.until, problem)

    def follows_up(self, pod: Pod) -> bool:
        """Whether the policy of a pod wants to know what becomes of those that were deleted."""
        offered = self._policies.offered.get(pod.metadata.annotations.get(POLICY_ANNOTATION, ""))
        is_wanted = (offered or self._policies.default).follows_up
        ours = self._identity.target.reason
        return is_wanted and any(one.type == DISRUPTION_TARGET and one.reason == ours for one in pod.status.conditions)

    async def follow_up(self, pod: Pod, unknown: EvictionCause) -> float | None:
        """Asks about a pod that is being deleted; `unknown` stands for its cause if it was deleted before a restart.

        Returns after how many seconds to ask again, None for not again. Raises ApiError or OSError.
        """
        decider = await self._choose(pod)
        case = self._cases.get(ObjectRef.of(pod)) or self._case(pod, unknown)
        decision, _ = await self._ask(decider, pod, case, None)
        self._metrics.decided(decider.name, type(decision).__name__.lower())
        if isinstance(decision, Force):
            await self._tell(decider, decision, pod, case)
            await remove_pod(self._client, self._clock, pod, self._identity.target, force=True)
        if isinstance(decision, Wait):
            return decision.until - self._clock.now()
        return None

    async def cancelled(self, pod: Pod) -> None:
        """A pod need not leave any more: what was said about waiting is withdrawn. Raises ApiError or OSError."""
        self._withdraw(pod)
        await self._waiting.clear(pod)

    def says_that_it_waits(self, pod: Pod) -> bool:
        """Whether a pod says that it waits, because that was said here."""
        return self._waiting.is_said_here(pod)

    def put_pod(self, pod: Pod) -> None:
        """A pod is there, or has changed."""
        if self.counts_siblings:
            self._replicas.put(pod)

    def forget(self, pod: Pod) -> None:
        """A pod is gone."""
        self._replicas.drop(pod)
        self._waiting.forget(pod)
        self._cases.pop(ObjectRef.of(pod), None)

    async def close(self) -> None:
        """Gives up connections and threads."""
        for decider in self._policies.all():
            await decider.close()

    def _case(self, pod: Pod, cause: EvictionCause) -> _Case:
        ref = ObjectRef.of(pod)
        case = self._cases.get(ref)
        if case is None or case.cause.key != cause.key or case.cause.rule != cause.rule:
            case = self._cases[ref] = _Case(self._clock.now(), cause)
        return case

    def _withdraw(self, pod: Pod) -> None:
        self._replicas.stays(pod)
        self._cases.pop(ObjectRef.of(pod), None)

    async def _choose(self, pod: Pod) -> Decider:
        name = pod.metadata.annotations.get(POLICY_ANNOTATION, "")
        if not name or name == self._policies.default.name:
            return self._policies.default
        offered = self._policies.offered.get(name)
        if offered is None:
            there = ", ".join(sorted({self._policies.default.name, *self._policies.offered}))
            message = f"annotation {POLICY_ANNOTATION}: policy {name!r} is not offered here, only {there}"
            await self._recorder.warning(pod, FAILED_EVENT, message)
            return self._policies.default
        return offered

    async def _ask(self, decider: Decider, pod: Pod, case: _Case, siblings: Siblings | None) -> tuple[Decision, str]:
        """What is decided, and why the policy could not be asked, if so: then it is decided as configured."""
        state = PolicyState(asked=case.asked, since=case.since, refused=case.refused, siblings=siblings)
        case.asked += 1
        try:
            return await ask(decider, (pod, case.cause, state), self._policies.timeout, self._clock), ""
        except PolicyFailed as error:
            problem = f"{decider.name}: {error}"
        is_held = self._policies.failure_policy is FailurePolicy.HOLD
        self._metrics.failed(decider.name, self._policies.failure_policy)
        consequence = "the pod stays, and it is asked again" if is_held else "the pod is deleted"
        await self._recorder.warning(pod, FAILED_EVENT, f"{problem}; {consequence}")
        if is_held:
            return Wait(self._clock.now() + HOLD_SECONDS, f"policy {decider.name} failed"), problem
        return Now(), problem

    async def _remove(self, decider: Decider, decision: Now | Force, pod: Pod, case: _Case) -> Outcome:
        await self._tell(decider, decision, pod, case)
        try:
            return Left(await self._carry_out(decision, pod))
        except ApiError as error:
            case.refused = refusal(error) if isinstance(decision, Now) and decision.respect_budgets else ""
            if not case.refused:
                raise
        self._metrics.refused()
        case.refusals += 1
        await self._tell(decider, Wait(0.0, case.refused), pod, case)
        return Later(self._clock.now() + REFUSED.after(case.refusals))

    async def _carry_out(self, decision: Now | Force, pod: Pod) -> bool:
        if isinstance(decision, Now) and decision.respect_budgets:
            is_deleted = await evict_pod(self._client, pod)
            if is_deleted:
                await self._tell_marking(pod)
            return is_deleted
        await self._tell_marking(pod)
        is_forced = isinstance(decision, Force)
        return await remove_pod(self._client, self._clock, pod, self._identity.target, force=is_forced)

    async def _tell_marking(self, pod: Pod) -> None:
        await self._recorder.normal(pod, self._identity.event, self._identity.marking(ObjectRef.of(pod)))

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

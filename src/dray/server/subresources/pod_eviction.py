"""`pods/eviction`: deletes a pod if its disruption budget allows it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from dray.api.conditions import DISRUPTION_TARGET, with_condition
from dray.api.generated.core import Pod, PodCondition
from dray.api.generated.policy import Eviction, PodDisruptionBudget
from dray.api.kinds import BUDGETS, PODS
from dray.api.meta import DeleteOptions, Status, StatusCause
from dray.api.pods import is_ready
from dray.api.status import ApiError
from dray.api.times import Time
from dray.eviction.budgets import Keepers, is_spared
from dray.server import errors
from dray.server.beside import LARGE
from dray.server.engine import Call, Engine
from dray.server.subresources.posted_about import check_named
from dray.server.verbs import deletes
from dray.server.verbs.rewrites import rewrite
from dray.store import Record

DONE = Status(status="Success", code=201)


async def evict(engine: Engine, call: Call, eviction: Eviction) -> Status:
    """Deletes a pod if its disruption budget allows it. Raises ApiError (429) if not now."""
    check_named(call, eviction, must_say=True)
    name = call.route.name
    pod = engine.get(PODS.resource, call.route.namespace, name)
    await engine.admission.check(engine, call, None, pod)  # a node evicts only pods of its own
    if not isinstance(pod, Pod):
        raise errors.not_found(PODS, name)
    given = deletes.checked(eviction.delete_options or DeleteOptions())
    dry_run = call.dry_run or bool(given.dry_run)
    spares = not await _spend_budget(engine, call, pod, dry_run)
    if given.preconditions is None or given.preconditions.uid in (None, "", pod.metadata.uid):
        await rewrite(
            engine,
            PODS,
            call.route.namespace,
            name,
            lambda found: _disrupted(found, call.now, if_unready=spares),
            dry_run=dry_run,
        )
    one = replace(call.route, verb="delete", subresource="")
    deletion = Call(one, call.caller, call.now, dry_run=dry_run, warnings=call.warnings, turn=call.turn)
    await deletes.delete(engine, deletion, given, is_admitted=True)  # what was asked about is the eviction
    call.annotations.update(deletion.annotations)
    return DONE


def _disrupted(pod: Pod, now: Time, *, if_unready: bool) -> Pod:
    """The pod with the condition that tells why it is going to be deleted. Raises ApiError if it has become ready."""
    if if_unready and is_ready(pod):
        raise _refused(StatusCause(reason="DisruptionBudget", message="The pod has become ready."), retry_after=0)
    made = PodCondition(
        type=DISRUPTION_TARGET,
        status="True",
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
        last_transition_time=now,
    )
    return replace(pod, status=replace(pod.status, conditions=with_condition(pod.status.conditions, made)))


async def _spend_budget(engine: Engine, call: Call, pod: Pod, dry_run: bool) -> bool:
    """Charges the pod's budget, and says whether it had to. Raises ApiError if the pod may not go."""
    records = engine.store.list(BUDGETS.resource, pod.metadata.namespace).records
    if sum(record.size for record in records) > LARGE:
        budgets = await engine.beside(call, _covering, records, pod)
    else:
        budgets = _covering(records, pod)
    if len(budgets) > 1:
        raise errors.internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    for budget in budgets:
        if is_spared(pod, budget):
            return False  # as long as it is not ready
        await rewrite(
            engine,
            BUDGETS,
            budget.metadata.namespace,
            budget.metadata.name,
            lambda found: _spend(found, pod.metadata.name, call.now),
            dry_run=dry_run,
        )
    return True


def _covering(records: Sequence[Record], pod: Pod) -> list[PodDisruptionBudget]:
    """The budgets that are about a pod: the selectors of all in its namespace are read."""
    return Keepers(record.obj for record in records).covering(pod)


def _refused(cause: StatusCause, retry_after: int) -> ApiError:
    return errors.too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.", retry_after=retry_after, cause=cause
    )


def _spend(budget: PodDisruptionBudget, pod: str, now: Time) -> PodDisruptionBudget:
    name, status = budget.metadata.name, budget.status
    if (status.observed_generation or 0) < budget.metadata.generation:
        cause = StatusCause(
            reason="DisruptionBudget", message=f"The disruption budget {name} is still being processed."
        )
        raise _refused(cause, retry_after=10)
    if (status.disruptions_allowed or 0) <= 0:
        needs = f"needs {status.desired_healthy or 0} healthy pods and has {status.current_healthy or 0} currently"
        cause = StatusCause(reason="DisruptionBudget", message=f"The disruption budget {name} {needs}")
        raise _refused(cause, retry_after=0)
    spent = replace(
        status,
        disruptions_allowed=status.disruptions_allowed - 1,
        disrupted_pods={**status.disrupted_pods, pod: now},
    )
    return replace(budget, status=spent)

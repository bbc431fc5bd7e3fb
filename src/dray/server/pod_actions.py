"""What one posts to a pod: a binding to a node, and an eviction that respects disruption budgets."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from msgspec.structs import replace

from dray.api import codec
from dray.api.field import FieldError, not_supported, required
from dray.api.generated.core import Binding, ObjectReference, Pod, PodCondition
from dray.api.generated.policy import Eviction, PodDisruptionBudget
from dray.api.labels import LabelSelector
from dray.api.meta import DeleteOptions, Object, Status, StatusCause, StatusDetails
from dray.api.registry import by_kind
from dray.api.times import Time
from dray.server import body, deletes, errors
from dray.server.engine import Call, Engine
from dray.server.http import Request, Response
from dray.server.objects import with_metadata
from dray.server.options import write_options
from dray.server.rewrites import rewrite

T = TypeVar("T", bound=Object)

PODS = by_kind("v1", "Pod")
BUDGETS = by_kind("policy/v1", "PodDisruptionBudget")


def _body(call: Call, request: Request, kind: type[T]) -> T:
    """What was posted, which must be about the pod of the path if it says what it is about. Raises ApiError."""
    if isinstance(request.document, kind):
        return request.document
    reading = codec.read(body.parse(request.body, request.header("content-type")), kind)
    if reading.obj is None:
        raise errors.bad_request("; ".join(map(str, reading.errors)))
    given = write_options(request.query, "CreateOptions")
    body.complain(reading, kind.__name__, "v1", given, call.warnings)
    name = reading.obj.metadata.name
    if call.route.name and name and name != call.route.name:
        raise errors.bad_request(f"name in URL does not match name in {kind.__name__} object")
    return reading.obj


@cache
def _success(code: int) -> bytes:
    return codec.encode(Status(status="Success", code=code))


def _done(code: int) -> Response:
    return Response(code, _success(code))


async def bind(engine: Engine, call: Call, request: Request) -> Response:
    """Gives a pod its node. Raises ApiError if it has one, is being deleted, or is held by a gate."""
    binding = _body(call, request, Binding)
    name = call.route.name or binding.metadata.name
    target = binding.target
    problem = _target_problem(target)
    if problem is not None:
        raise errors.bad_request(str(problem))

    def assign(pod: Pod) -> Pod:
        _check_bindable(pod, binding)
        meta = pod.metadata
        pod = with_metadata(
            pod,
            annotations={**meta.annotations, **binding.metadata.annotations},
            labels={**meta.labels, **binding.metadata.labels},
        )
        conditions = _scheduled(pod, call.now)
        return replace(
            pod,
            spec=replace(pod.spec, node_name=target.name),
            status=replace(pod.status, conditions=conditions, nominated_node_name=""),
        )

    await rewrite(engine, PODS, call.route.namespace, name, assign, dry_run=call.dry_run)
    return _done(201)


def _target_problem(target: ObjectReference) -> FieldError | None:
    if target.kind not in ("", "Node"):
        return not_supported("target.kind", target.kind, ("Node", "<empty>"))
    return None if target.name else required("target.name")


def _check_bindable(pod: Pod, binding: Binding) -> None:
    name = pod.metadata.name
    wanted_uid = binding.metadata.uid
    if wanted_uid and wanted_uid != pod.metadata.uid:
        raise _binding_conflict(name, f"pod {name} has another uid")
    if pod.metadata.deletion_timestamp is not None:
        raise _binding_conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if pod.spec.node_name:
        raise _binding_conflict(name, f'pod {name} is already assigned to node "{pod.spec.node_name}"')
    if pod.spec.scheduling_gates:
        raise _binding_conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def _binding_conflict(name: str, why: str) -> errors.ApiError:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    return errors.ApiError(409, "Conflict", message, StatusDetails(name=name, kind="pods/binding"))


def _scheduled(pod: Pod, now: Time) -> tuple[PodCondition, ...]:
    others = tuple(condition for condition in pod.status.conditions if condition.type != "PodScheduled")
    made = PodCondition(
        type="PodScheduled",
        status="True",
        last_transition_time=now,
    )
    return (*others, made)


async def evict(engine: Engine, call: Call, request: Request) -> Response:
    """Deletes a pod if its disruption budget allows it. Raises ApiError (429) if not now."""
    eviction = _body(call, request, Eviction)
    name = call.route.name
    pod = engine.get(PODS.resource, call.route.namespace, name)
    if not isinstance(pod, Pod):
        raise errors.not_found(PODS, name)
    given = eviction.delete_options or DeleteOptions()
    dry_run = call.dry_run or bool(given.dry_run)
    if pod.status.phase not in ("Succeeded", "Failed", "Pending") and pod.metadata.deletion_timestamp is None:
        await _spend_budget(engine, call, pod, dry_run)
    if given.preconditions is None or given.preconditions.uid in (None, "", pod.metadata.uid):
        await rewrite(
            engine,
            PODS,
            call.route.namespace,
            name,
            lambda found: _disrupted(found, call.now),
            dry_run=dry_run,
        )
    one = replace(call.route, verb="delete", subresource="")
    await deletes.delete(engine, Call(one, call.caller, call.now, dry_run=dry_run, warnings=call.warnings), given)
    return _done(201)


def _disrupted(pod: Pod, now: Time) -> Pod:
    """The pod with the condition that tells why it is going to be deleted."""
    known = pod.status.conditions
    before = next((one for one in known if one.type == "DisruptionTarget" and one.status == "True"), None)
    made = PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
        last_transition_time=now if before is None else before.last_transition_time,
    )
    others = tuple(one for one in known if one.type != made.type)
    return replace(pod, status=replace(pod.status, conditions=(*others, made)))


async def _spend_budget(engine: Engine, call: Call, pod: Pod, dry_run: bool) -> None:
    budgets = _budgets(engine, pod)
    if len(budgets) > 1:
        raise errors.internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    for budget in budgets:
        await rewrite(
            engine,
            BUDGETS,
            budget.metadata.namespace,
            budget.metadata.name,
            lambda found: _spend(found, pod.metadata.name, call.now),
            dry_run=dry_run,
        )


def _budgets(engine: Engine, pod: Pod) -> list[PodDisruptionBudget]:
    stored = [record.obj for record in engine.store.list(BUDGETS.resource, pod.metadata.namespace).records]
    return [
        budget
        for budget in stored
        if budget.spec.selector is not None and LabelSelector.of(budget.spec.selector).matches(pod.metadata.labels)
    ]


def _spend(budget: PodDisruptionBudget, pod: str, now: Time) -> PodDisruptionBudget:
    name, status = budget.metadata.name, budget.status
    if (status.observed_generation or 0) < budget.metadata.generation:
        cause = StatusCause(
            reason="DisruptionBudget", message=f"The disruption budget {name} is still being processed."
        )
        raise errors.too_many_requests(
            "Cannot evict pod as it would violate the pod's disruption budget.", retry_after=10, cause=cause
        )
    if (status.disruptions_allowed or 0) <= 0:
        needs = f"needs {status.desired_healthy or 0} healthy pods and has {status.current_healthy or 0} currently"
        cause = StatusCause(reason="DisruptionBudget", message=f"The disruption budget {name} {needs}")
        raise errors.too_many_requests(
            "Cannot evict pod as it would violate the pod's disruption budget.", retry_after=0, cause=cause
        )
    spent = replace(
        status,
        disruptions_allowed=status.disruptions_allowed - 1,
        disrupted_pods={**status.disrupted_pods, pod: now},
    )
    return replace(budget, status=spent)

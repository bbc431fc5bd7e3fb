"""`pods/binding`, and `bindings`: gives a pod its node."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from dray.api.conditions import POD_SCHEDULED, with_condition
from dray.api.field import FieldError, invalid, not_supported, required
from dray.api.generated.core import Binding, ObjectReference, Pod, PodCondition
from dray.api.kinds import PODS
from dray.api.meta import Status, StatusDetails
from dray.api.times import Time
from dray.server import errors
from dray.server.engine import Call, Engine
from dray.server.objects import with_metadata
from dray.server.subresources.posted_about import check_named
from dray.server.verbs import reservations
from dray.server.verbs.rewrites import rewrite
from dray.validation import names

DONE = Status(status="Success", code=201)


async def bind(engine: Engine, call: Call, binding: Binding) -> Status:
    """Gives a pod its node. Raises ApiError if it has one, is being deleted, or is held by a gate."""
    check_named(call, binding)
    name = call.route.name or binding.metadata.name
    if call.route.name:
        await engine.admission.check(engine, call, None, engine.get(PODS.resource, call.route.namespace, name))
    target = binding.target
    problem = _target_problem(target)
    if problem is not None:
        raise errors.bad_request(str(problem))

    def assign(pod: Pod) -> Pod:
        return assigned(pod, binding, call.now)

    judged = partial(reservations.binding, engine, binding) if reservations.is_judged(call) else None
    await rewrite(engine, PODS, call.route.namespace, name, assign, dry_run=call.dry_run, judged=judged)
    return DONE


def assigned(pod: Pod, binding: Binding, now: Time) -> Pod:
    """The pod with its node. Raises ApiError if it has one, is being deleted, or is held by a gate."""
    _check_bindable(pod, binding)
    meta, given = pod.metadata, binding.metadata
    if given.annotations or given.labels:
        annotations, labels = {**meta.annotations, **given.annotations}, {**meta.labels, **given.labels}
        pod = with_metadata(pod, annotations=annotations, labels=labels)
    return replace(
        pod,
        spec=replace(pod.spec, node_name=binding.target.name),
        status=replace(pod.status, conditions=_scheduled(pod, now), nominated_node_name=""),
    )


def _target_problem(target: ObjectReference) -> FieldError | None:
    if target.kind not in ("", "Node"):
        return not_supported("target.kind", target.kind, ("Node", "<empty>"))
    if not target.name:
        return required("target.name")
    problems = names.dns_subdomain(target.name)
    return invalid("target.name", target.name, ", ".join(problems)) if problems else None


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
    made = PodCondition(type=POD_SCHEDULED, status="True", last_transition_time=now)
    return with_condition(pod.status.conditions, made)

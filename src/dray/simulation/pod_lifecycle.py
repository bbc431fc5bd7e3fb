"""What a simulated node does next with a pod. Pure: from the objects and the time to one step.

Pending ──claims ready, start-seconds──▶ Running ──run-seconds──▶ Succeeded | Failed
   │  ▲ not ready: event, waits             │ restartPolicy says so: runs again, later and later
   └──┴────────── deleted: stop-seconds ────┴──▶ ended, then the object is removed
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from dray.api.backoff import Backoff
from dray.api.generated.core import Pod, PodStatus
from dray.api.pod_claims import is_reserved_for
from dray.api.pods import RUNNING, is_finished
from dray.api.resource import ResourceClaim
from dray.api.times import Time
from dray.simulation import pod_status
from dray.simulation.behaviour import Behaviour

ClaimLookup = Callable[[str, str], ResourceClaim | None]

RESTARTS: Final = Backoff(first=10.0, longest=300.0)
KILLED: Final = 137


class Step(msgspec.Struct, frozen=True):
    """What to do now, and after how many seconds to look again (None: when something changes)."""

    status: PodStatus | None = None
    remove: bool = False
    warning: str = ""
    again_in: float | None = None


NOTHING: Final = Step()


class PodSurroundings(msgspec.Struct, frozen=True):
    """Where a pod runs: the address of its node, the one it gets, its behaviour, and the claims of the cluster."""

    host: str
    address: str
    behaviour: Behaviour
    find_claim: ClaimLookup
    has_free_ports: bool = True
    """Whether no other pod of the node has one of the host ports that this one asks for."""


def plan(pod: Pod, surroundings: PodSurroundings, now: float, written: Time) -> Step:
    """The next step of a pod; `now` in seconds since 1970, `written` the same as the API writes it."""
    if pod.metadata.deletion_timestamp is not None:
        return _plan_end(pod, surroundings.behaviour, now, written)
    if is_finished(pod):
        return NOTHING
    if _is_overdue(pod, now):
        message = "Pod was active on the node longer than the specified deadline"
        status = pod_status.ended(pod, KILLED, written, reason="DeadlineExceeded", message=message)
        return Step(status)
    step = (
        _plan_run(pod, surroundings.behaviour, now, written)
        if pod.status.phase == RUNNING
        else _plan_start(pod, surroundings, now, written)
    )
    return _not_past_deadline(pod, step, now)


def _plan_start(pod: Pod, surroundings: PodSurroundings, now: float, written: Time) -> Step:
    if not surroundings.has_free_ports:
        message = "Pod was rejected: node didn't have free ports for the requested pod ports"
        return Step(pod_status.without_ports(pod, message, written))
    problem = claim_problem(pod, surroundings.find_claim)
    if problem:
        return Step(warning=problem)
    delay = surroundings.behaviour.start
    if delay > 0:
        if pod.status.start_time is None:
            return Step(pod_status.starting(pod, surroundings.host, written), again_in=delay)
        left = _left(_seconds(pod.status.start_time), delay, now)
        if left > 0:
            return Step(again_in=left)
    address = surroundings.host if pod.spec.host_network else surroundings.address
    return Step(pod_status.running(pod, surroundings.host, address, written), again_in=surroundings.behaviour.run)


def _plan_run(pod: Pod, behaviour: Behaviour, now: float, written: Time) -> Step:
    ready = pod_status.ready_again(pod, written)
    if ready is not None:
        return Step(ready)  # which is a change, so the pod is looked at again
    resized = pod_status.resized(pod)
    if resized is not None:
        return Step(resized)
    waits = _waits_for_restart(pod)
    if waits is not None:
        left = _left(waits, _backoff(pod), now)
        return Step(again_in=left) if left > 0 else Step(pod_status.restarted(pod, behaviour.exit_code, written))
    if behaviour.run is None:
        return NOTHING
    left = _started(pod, now) + behaviour.run - now
    if left > 0:
        return Step(again_in=left)
    code = behaviour.exit_code
    policy = pod.spec.restart_policy or "Always"
    if policy == "Never" or (policy == "OnFailure" and not code):
        return Step(pod_status.ended(pod, code, written))
    backoff = _backoff(pod)
    if backoff > 0:
        return Step(pod_status.backing_off(pod, code, written), again_in=backoff)
    return Step(pod_status.restarted(pod, code, written), again_in=behaviour.run)


def _plan_end(pod: Pod, behaviour: Behaviour, now: float, written: Time) -> Step:
    """The containers stop within their grace period; then nothing keeps the object but finalizers of others."""
    meta = pod.metadata
    assert meta.deletion_timestamp is not None
    grace = float(meta.deletion_grace_period_seconds or 0)
    if not is_finished(pod):
        left = _left(_seconds(meta.deletion_timestamp) - grace, min(behaviour.stop, grace), now)
        if left > 0:
            return Step(again_in=left)
        stopped_in_time = pod.status.phase == "Running" and behaviour.stop <= grace
        code = 0 if stopped_in_time else KILLED
        return Step(pod_status.ended(pod, code, written), remove=True)
    return Step(remove=True) if grace or not meta.finalizers else NOTHING


def claim_problem(pod: Pod, find_claim: ClaimLookup) -> str:
    """Why a pod must not start yet: a claim that is missing, not allocated or not reserved for it; empty if none."""
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    for reference in pod.spec.resource_claims:
        name = reference.resource_claim_name
        if reference.resource_claim_template_name:
            if reference.name not in made:
                return f"claim {reference.name}: no ResourceClaim has been made from its template yet"
            name = made[reference.name]
            if not name:
                continue  # none was needed
        problem = _problem(pod, find_claim, name or "")
        if problem:
            return f"claim {reference.name}: {problem}"
    extended = pod.status.extended_resource_claim_status
    problem = _problem(pod, find_claim, extended.resource_claim_name) if extended is not None else ""
    return f"extended resources: {problem}" if problem else ""


def _problem(pod: Pod, find_claim: ClaimLookup, name: str) -> str:
    claim = find_claim(pod.metadata.namespace, name)
    if claim is None:
        return f"there is no ResourceClaim {name}"
    if claim.status.allocation is None:
        return f"ResourceClaim {name} is not allocated"
    return "" if is_reserved_for(claim, pod) else f"ResourceClaim {name} is not reserved for this pod"


def _is_overdue(pod: Pod, now: float) -> bool:
    left = _deadline_left(pod, now)
    return left is not None and left <= 0


def _deadline_left(pod: Pod, now: float) -> float | None:
    seconds, start = pod.spec.active_deadline_seconds, pod.status.start_time
    return None if seconds is None or start is None else _seconds(start) + seconds - now


def _not_past_deadline(pod: Pod, step: Step, now: float) -> Step:
    """Looks again when the deadline is reached, if not before."""
    seconds = pod.spec.active_deadline_seconds
    if seconds is None:
        return step
    left = _deadline_left(pod, now)
    left = float(seconds) if left is None else left
    again = left if step.again_in is None else min(step.again_in, left)
    return msgspec.structs.replace(step, again_in=again)


def _waits_for_restart(pod: Pod) -> float | None:
    """Since when containers that ended wait to be restarted; None if they run."""
    moments = [
        _seconds(status.last_state.terminated.finished_at)
        for status in pod.status.container_statuses
        if status.state.waiting is not None
        and status.last_state.terminated is not None
        and status.last_state.terminated.finished_at is not None
    ]
    return max(moments) if moments else None


def _backoff(pod: Pod) -> float:
    """The first restart is at once; every later one waits twice as long as the one before."""
    restarts = max((status.restart_count for status in pod.status.container_statuses), default=0)
    return RESTARTS.after(restarts)


def _started(pod: Pod, now: float) -> float:
    """When the containers started last."""
    moments = [
        _seconds(status.state.running.started_at)
        for status in pod.status.container_statuses
        if status.state.running is not None and status.state.running.started_at is not None
    ]
    return max(moments, default=now)


def _left(since: float, seconds: float, now: float) -> float:
    """How much of a short time is left; 0 if it has not even begun: the clock was set back, and nobody waits for it."""
    return since + seconds - now if since <= now else 0.0


def _seconds(moment: Time) -> float:
    return moment.datetime().timestamp()

"""Columns for resource.k8s.io."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dray.api.meta import Condition
from dray.api.times import Time
from dray.server.answers.tables.columns import AGE, NAME, NONE, Cell, Column, since, text


def _state(claim: Any) -> str:
    """deleted, allocated, reserved: what is true of the claim; pending if nothing is."""
    states = []
    if claim.metadata.deletion_timestamp is not None:
        states.append("deleted")
    if claim.status.allocation is not None:
        states.append("allocated")
        if claim.status.reserved_for:
            states.append("reserved")
    return ",".join(states) or "pending"


def _devices(claim: Any) -> str:
    if claim.status.allocation is None:
        return NONE
    names = [f"{result.pool}/{result.device}" for result in claim.status.allocation.devices.results]
    shown = ",".join(names[:4])
    return f"{shown},… ({len(names)})" if len(names) > 4 else shown or NONE


def _node(claim: Any) -> str:
    allocation = claim.status.allocation
    if allocation is None:
        return NONE
    if allocation.node_selector is None:
        return "<any>"
    for term in allocation.node_selector.node_selector_terms:
        for requirement in term.match_fields:
            if requirement.key == "metadata.name" and len(requirement.values) == 1:
                return str(requirement.values[0])
    return "<selector>"


def _consumers(claim: Any) -> str:
    names = [f"{consumer.resource}/{consumer.name}" for consumer in claim.status.reserved_for]
    shown = ",".join(names[:3])
    return f"{shown},… ({len(names)})" if len(names) > 3 else shown or NONE


def _time_added(rule: Any, now: Time) -> Cell:
    return since(rule.spec.taint.time_added, now)


def _eviction(rule: Any) -> str:
    for condition in rule.status.conditions:
        if condition.type == "EvictionInProgress":
            return f"{condition.reason}: {condition.message}"
    return ""


def _selects(rule: Any) -> str:
    selector = rule.spec.device_selector
    if selector is None:
        return "nothing"
    criteria = [
        f"{name}={value}"
        for name, value in (
            ("class", selector.device_class_name),
            ("driver", selector.driver),
            ("pool", selector.pool),
            ("device", selector.device),
        )
        if value
    ]
    criteria += [f"{len(selector.selectors)} CEL"] if selector.selectors else []
    return ",".join(criteria) or "everything"


def _outcome(request: Any) -> Condition | None:
    """What came of a question about pools: Complete or Failed; None while there is no answer."""
    conditions = () if request.status is None else request.status.conditions
    return next((each for each in conditions if each.type in ("Complete", "Failed") and each.status == "True"), None)


def _of_pools(count: Callable[[Any], int]) -> Callable[[Any], str]:
    """A sum over the pools of an answer."""

    def read(request: Any) -> str:
        outcome = _outcome(request)
        if request.status is None or (outcome is not None and outcome.type == "Failed"):
            return "-"
        return str(sum(map(count, request.status.pools)))

    return read


def _sum_of(name: str) -> Callable[[Any], str]:
    return _of_pools(lambda pool: getattr(pool, name) or 0)


def _pools(request: Any, _now: Time) -> Cell:
    return 0 if request.status is None else request.status.pool_count or 0


def _answer(request: Any) -> str:
    outcome = _outcome(request)
    if outcome is None:
        return "Pending"
    listed, there_are = len(request.status.pools), request.status.pool_count or 0
    if outcome.type == "Complete" and listed < there_are:
        return f"Complete ({listed}/{there_are} pools)"
    return outcome.type


def _answered(request: Any, now: Time) -> Cell:
    outcome = _outcome(request)
    return since(outcome.last_transition_time, now) if outcome is not None and outcome.type == "Complete" else NONE


COLUMNS: dict[str, tuple[Column, ...]] = {
    "ResourceClaim": (
        NAME,
        text("State", _state, description="Whether the claim is pending, allocated, reserved, being deleted."),
        AGE,
        text("Devices", _devices, wide=True, description="The devices that were allocated."),
        text("Node", _node, wide=True, description="The node on which they can be used."),
        text("Consumers", _consumers, wide=True, description="Who may use the claim now."),
    ),
    "ResourceSlice": (
        NAME,
        text("Node", lambda s: s.spec.node_name, description="The node of the devices, if they belong to one."),
        text("Driver", lambda s: s.spec.driver, description="The driver that published the slice."),
        text("Pool", lambda s: s.spec.pool.name, description="The pool that the slice belongs to."),
        AGE,
        text("Devices", lambda s: len(s.spec.devices), wide=True, description="How many devices the slice lists."),
    ),
    "DeviceTaintRule": (
        NAME,
        text("Key", lambda r: r.spec.taint.key, description="The taint's key."),
        text("Value", lambda r: r.spec.taint.value, description="The taint's value."),
        text("Effect", lambda r: r.spec.taint.effect, description="The taint's effect."),
        Column("TimeAdded", _time_added, description="The time since the taint was added."),
        AGE,
        text("Selects", _selects, wide=True, description="Which devices get the taint."),
        text("Eviction", _eviction, wide=True, description="How the eviction of pods stands."),
    ),
    "ResourcePoolStatusRequest": (
        NAME,
        text("Driver", lambda r: r.spec.driver, description="The driver whose pools are asked about."),
        text("Total", _sum_of("total_devices"), description="Devices of all pools."),
        text("Available", _sum_of("available_devices"), description="Devices that are left."),
        text("Allocated", _sum_of("allocated_devices"), description="Devices that claims have."),
        text("Unavailable", _sum_of("unavailable_devices"), description="Devices with taints that keep pods away."),
        text(
            "Errors",
            _of_pools(lambda pool: pool.validation_error is not None),
            description="Pools that something is wrong with.",
        ),
        Column("Pools", _pools, type="integer", description="Pools that there are."),
        text("Status", _answer, description="Whether there is an answer."),
        Column("Completed", _answered, description="The time since the answer."),
    ),
    "ResourceSlicePatch": (
        NAME,
        text("Priority", lambda p: p.spec.devices.priority or 0, description="The patch's priority."),
        AGE,
    ),
}

"""What must hold when nothing has failed for a while: whatever fits is running, whatever is released is free."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dray.api.generated.core import Pod
from dray.api.pod_groups import group_of
from dray.api.resource import DeviceTaintRule, ResourceClaim
from fault_simulation.device_evictions import DeviceEvictions
from fault_simulation.fitting import Fitting, extended_amount
from fault_simulation.gang_safety import find_gang_leftovers
from fault_simulation.ledger import CLAIMS, GROUPS, REPLICA_SETS, Ledger, claim_names, is_finished, is_owned
from fault_simulation.preemptions import find_preemption_leftovers

GRACE = 60.0
"""Seconds that nobody may be late by when nothing has failed for a long time."""


def find_leftovers(ledger: Ledger, evictions: DeviceEvictions) -> Iterator[str]:
    """Everything that somebody forgot."""
    yield from _claim_leftovers(ledger)
    for pod in ledger.pods:
        yield from _pod_leftovers(ledger, pod)
    yield from _waiting_leftovers(ledger)
    yield from find_gang_leftovers(ledger)
    yield from find_preemption_leftovers(ledger)
    yield from _replica_leftovers(ledger)
    yield from evictions.find_overdue(GRACE)
    for rule in ledger.rules:
        yield from _rule_leftovers(rule, evictions)


def _waiting_leftovers(ledger: Ledger) -> Iterator[str]:
    """Everything that fits is scheduled. Gangs are another matter."""
    fitting = Fitting(ledger)
    for pod in ledger.pods:
        if group_of(pod) is not None:
            continue
        node = fitting.find_node(pod) if not pod.spec.node_name and pod.metadata.deletion_timestamp is None else ""
        if node:
            yield f"pod {pod.metadata.name} waits, but could run on {node}"


def _rule_leftovers(rule: DeviceTaintRule, evictions: DeviceEvictions) -> Iterator[str]:
    """The status of a rule adds up."""
    name = f"rule {rule.metadata.name}"
    told = next((one for one in rule.status.conditions if one.type == "EvictionInProgress"), None)
    if told is None or told.observed_generation != rule.metadata.generation:
        yield f"{name} does not tell how far it is"
        return
    if rule.spec.taint.effect != "NoExecute":
        if told.status != "False":
            yield f"{name} has no effect, but says that it evicts"
        return
    pending = evictions.pending(rule)
    number = re.match(r"(\d+) pods? needs? to be evicted", told.message)
    if number is None or int(number[1]) != pending or (told.status == "True") != bool(pending):
        yield f"{name} has {pending} pods to evict, but says {told.status}: {told.message}"


def _claim_leftovers(ledger: Ledger) -> Iterator[str]:
    pods = {pod.metadata.uid: pod for pod in ledger.pods}
    for claim in ledger.claims:
        name = f"claim {claim.metadata.name}"
        for consumer in claim.status.reserved_for:
            if consumer.uid not in pods or is_finished(pods[consumer.uid]):
                yield f"{name} is still reserved for pod {consumer.name}, which needs it no more"
        owner = next((one for one in claim.metadata.owner_references if one.kind == "Pod"), None)
        if owner is not None and (owner.uid not in pods or is_finished(pods[owner.uid])):
            yield f"{name} is still there, but pod {owner.name} needs it no more"
        if claim.metadata.deletion_timestamp is not None and not claim.status.reserved_for:
            yield f"{name} is still there, but was deleted and is not used"


def _pod_leftovers(ledger: Ledger, pod: Pod) -> Iterator[str]:
    name = f"pod {pod.metadata.name}"
    if is_finished(pod):
        return
    if pod.metadata.deletion_timestamp is not None:
        yield f"{name} was deleted and is still there"
        return
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_template_name:
            owned = [claim for claim in ledger.claims if is_owned(claim, pod.metadata.uid)]
            if len(owned) > 1 or (not owned and _knows_its_claims(ledger, pod)):
                yield f"{name} has {len(owned)} claims of its own"
    if pod.spec.node_name and extended_amount(pod):
        made = [claim.metadata.name for claim in ledger.claims if is_owned(claim, pod.metadata.uid)]
        if len(made) != 1 or made[0] not in claim_names(pod):
            yield f"{name} has the claims {made} for its extended resource, and says {claim_names(pod)}"
    if pod.spec.node_name and pod.status.phase != "Running":
        yield f"{name} has a node but is {pod.status.phase or 'not started'}"
    if pod.status.phase == "Running":
        for each in claim_names(pod):
            claim: ResourceClaim | None = ledger.find(CLAIMS, pod.metadata.namespace, each)
            if claim is None or all(consumer.uid != pod.metadata.uid for consumer in claim.status.reserved_for):
                yield f"{name} runs without claim {each}"


def _knows_its_claims(ledger: Ledger, pod: Pod) -> bool:
    """Which claims are a pod's own, its group says; as long as that is not there, nobody makes any."""
    name = group_of(pod)
    return name is None or ledger.find(GROUPS, *name) is not None


def _replica_leftovers(ledger: Ledger) -> Iterator[str]:
    for found in ledger.all(REPLICA_SETS):
        live = [pod for pod in ledger.pods if is_owned(pod, found.metadata.uid) and not is_finished(pod)]
        if len(live) != found.spec.replicas:
            yield f"{len(live)} pods instead of {found.spec.replicas}"

"""Every advice that explain gives, to claims and to pods, is followed to the letter, and keeps what it promised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from itertools import combinations
from random import Random

import pytest

import builders
import dray
from builders import Manifest
from dray.prose.remedies import find_advice
from dray.prose.remedy import tell_remedy
from dray.snapshot import Snapshot
from dray.snapshot.explanation import ClaimExplanation
from dray.snapshot.pod_explanation import explain_pod
from odd_states import draw_odd_state
from verdict_states import Newcomer

ELSEWHERE = {"schedulingGates", "schedulingGroup", "volumes"}
"""What a pod waits for that no device helps it to."""


def crowded_state(number: int) -> list[Manifest]:
    """An odd state in which everybody has come, claims hold several devices, and several rules taint one device."""
    chance = Random(f"crowded {number}")
    state = draw_odd_state(number)
    objects = [deepcopy(one) for one in state.objects]
    for step in state.steps:
        if isinstance(step, Newcomer):
            objects += [deepcopy(one) for one in (*step.claims, step.pod)]
    held = {device for one in objects for device in held_by(one)}
    for one in list(objects):
        if chance.random() < 0.6:
            objects += holders_of_the_rest(chance, one, held)
    for index in range(chance.choice((0, 0, 0, 1, 3))):
        selector = chance.choice(({"driver": builders.DRIVER}, {"pool": "p0"}, {"pool": "p1"}))
        tainted = builders.taint(f"k{index}", chance.choice(("NoSchedule", "NoExecute")))
        objects.append(builders.taint_rule(f"extra-{index}", selector, tainted))
    return objects


def held_by(claim: Manifest) -> Iterator[str]:
    allocation = claim.get("status", {}).get("allocation") or {}
    return (one["device"] for one in allocation.get("devices", {}).get("results", ()))


def holders_of_the_rest(chance: Random, published: Manifest, held: set[str]) -> Iterator[Manifest]:
    """One or two claims for the devices of a slice that nobody has."""
    spec = published["spec"] if published["kind"] == "ResourceSlice" else {}
    free = [one["name"] for one in spec.get("devices", ()) if not one.get("allowMultipleAllocations")]
    free = [name for name in free if name not in held]
    half = chance.randint(0, len(free))
    for index, part in enumerate((free[:half], free[half:])):
        if part:
            status = builders.allocated(*part, pool=spec["pool"]["name"], driver=spec["driver"])
            asked = builders.request(deviceClassName="any", count=len(part))
            yield builders.claim(f"held-all-{index}-{published['metadata']['name']}", asked, status=status)


def advised(explanation: ClaimExplanation) -> Iterator[tuple[str, str, str]]:
    """Claims, nodes, and what would make them fit there."""
    trials, report = explanation.trials, explanation.report
    if trials is None or report.error:
        return
    for claim in report.claims:
        for request in () if claim.error else claim.requests:
            if not any(node.fits for node in request.nodes):
                advice = find_advice(claim.claim, request, trials)
                if advice is not None:
                    yield from ((claim.claim, advice.node.node, tell_remedy(one)) for one in advice.remedies)


def followed(objects: list[Manifest], claim: str, remedy: str) -> Iterator[list[Manifest]]:
    """The clusters that an advice speaks of."""
    if match := re.fullmatch(r"with constraint (\S+) dropped", remedy):
        yield [without_constraint(one, match[1]) if is_claim(one, claim) else one for one in objects]
    elif match := re.fullmatch(r"when pool (\S+) of (\S+) is complete", remedy):
        yield completed(objects, match[2], match[1])
    elif match := re.fullmatch(r"without the taints? of rules? (.*)", remedy):
        yield without(objects, "DeviceTaintRule", match[1].split(", "))
    elif match := re.fullmatch(r"when (.*) gives? back what (?:it|they) holds?", remedy):
        yield without(objects, "ResourceClaim", holders_in(match[1]))
    else:
        match = re.fullmatch(r"when (?:(one|\d+) of )?(.*) (?:is|are) released", remedy)
        assert match is not None, remedy
        listed = re.findall(r"(\S+) \(([^)]*)\)", match[2])
        needed = len(listed) if match[1] is None else 1 if match[1] == "one" else int(match[1])
        for some in combinations(listed, needed):
            yield released(objects, some)


def is_claim(one: Manifest, name: str) -> bool:
    return one["kind"] == "ResourceClaim" and f"default/{one['metadata']['name']}" == name


def holders_in(text: str) -> list[str]:
    return re.findall(r"default/(\S+?)(?=,| |$)", text)


def without(objects: list[Manifest], kind: str, names: list[str]) -> list[Manifest]:
    assert names
    assert {one["metadata"]["name"] for one in objects if one["kind"] == kind} >= set(names)
    return [one for one in objects if one["kind"] != kind or one["metadata"]["name"] not in names]


def released(objects: list[Manifest], devices: tuple[tuple[str, str], ...]) -> list[Manifest]:
    """Exactly these devices are given back, by those who are named as holding them."""
    changed = deepcopy(objects)
    for device, holders in devices:
        for name in holders_in(holders):
            (held,) = [one for one in changed if is_claim(one, f"default/{name}")]
            found = held["status"]["allocation"]["devices"]
            kept = [one for one in found["results"] if one["device"] != device]
            assert len(kept) < len(found["results"]), (device, name)
            found["results"] = kept
            if not kept:
                del held["status"]
    return changed


def without_constraint(claim: Manifest, attribute: str) -> Manifest:
    changed = deepcopy(claim)
    devices = changed["spec"]["devices"]
    devices["constraints"] = [
        one
        for one in devices["constraints"]
        if attribute not in (whole := one.get("matchAttribute") or one["distinctAttribute"], whole.partition("/")[2])
    ]
    return changed


def completed(objects: list[Manifest], driver: str, pool: str) -> list[Manifest]:
    """The newest slices of a pool are all that there are."""
    changed = deepcopy(objects)
    slices = [one["spec"] for one in changed if one["kind"] == "ResourceSlice"]
    mine = [one["pool"] for one in slices if (one["driver"], one["pool"]["name"]) == (driver, pool)]
    newest = [one for one in mine if one["generation"] == max(each["generation"] for each in mine)]
    for one in newest:
        one["resourceSliceCount"] = len(newest)
    return changed


def fits(objects: list[Manifest], claims: list[str], node: str) -> bool:
    """On the node, and nobody says that they cannot be judged, because of what another node has."""
    snapshot = dray.load(*objects)
    return all(snapshot.allocate(*claims, node=where).status == "allocated" for where in (node, None))


def check_claims(objects: list[Manifest], snapshot: Snapshot) -> int:
    tried = 0
    for name in snapshot.pending():
        for claim, node, remedy in advised(snapshot.explain(name)):
            for then in followed(objects, claim, remedy):
                tried += 1
                assert fits(then, [claim], node), (name, node, remedy)
    return tried


def check_pods(objects: list[Manifest], snapshot: Snapshot) -> int:
    """What helps the claims of a pod helps the pod, unless it waits for something else than a node."""
    tried = 0
    for pod in [one for one in objects if one["kind"] == "Pod" and not one["spec"].keys() & ELSEWHERE]:
        name = f"default/{pod['metadata']['name']}"
        told = explain_pod(snapshot, name)
        found = []
        if told.claims is not None:
            found += [(node, remedy, followed(objects, claim, remedy)) for claim, node, remedy in advised(told.claims)]
        for note in told.notes:
            if match := re.fullmatch(r"Its \d+ claims would fit together on (\S+) (.*)\.", note):
                found.append((match[1], match[2], followed(objects, "", match[2])))
        for node, remedy, clusters in found:
            for then in clusters:
                tried += 1
                assert explain_pod(dray.load(*then), name).status == "fits", (name, node, remedy)
    return tried


@pytest.mark.parametrize("number", [*range(60), 291])
def test_who_follows_an_advice_gets_what_it_promises(number: int) -> None:
    objects = crowded_state(number)
    snapshot = dray.load(*objects)
    check_claims(objects, snapshot)
    check_pods(objects, snapshot)

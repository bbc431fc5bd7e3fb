"""What pods and claims need from the claim controller, decision by decision."""

from typing import Any

import pytest
from msgspec.structs import replace

from controller_world import manifest, typed
from controller_world import pod as pod_manifest
from dray.api.generated.core import Pod
from dray.api.pod_claims import POD_CLAIM_NAME, generate_name
from dray.api.resource import ResourceClaim
from dray.api.resource.claim import FINALIZER
from dray.controllers.resource_claim.claim_plan import Step, plan_claim
from dray.controllers.resource_claim.pod_plan import PodPlan, is_done, other_claim, plan_pod

DELETED = "2026-06-01T12:00:00Z"
ALLOCATION = {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"}]}}


def pod(uid: str = "u", *, statuses: Any = (), phase: str = "", deleted: bool = False, **spec: Any) -> Pod:
    meta: dict[str, Any] = {"uid": uid, **({"deletionTimestamp": DELETED} if deleted else {})}
    made = pod_manifest("p", meta=meta, **spec)
    made["status"] = {"phase": phase, "resourceClaimStatuses": list(statuses)}
    found: Pod = typed(made)
    return found


def claim(
    name: str = "c",
    *,
    owner: str = "",
    finalizer: bool = True,
    allocated: bool = True,
    reserved: tuple[str, ...] = (),
    foreign: bool = False,
    deleted: bool = False,
) -> ResourceClaim:
    meta: dict[str, Any] = {"finalizers": [FINALIZER] if finalizer else []}
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}]
    if deleted:
        meta["deletionTimestamp"] = DELETED
    users = [{"resource": "pods", "name": uid, "uid": uid} for uid in reserved]
    if foreign:
        users.append({"resource": "things", "apiGroup": "example.com", "name": "x", "uid": "x"})
    status = {"reservedFor": users, **({"allocation": ALLOCATION} if allocated else {})}
    found: ResourceClaim = typed(manifest("resource.k8s.io/v1", "ResourceClaim", name, meta=meta, status=status))
    return found


TEMPLATE = {"name": "dev", "resourceClaimTemplateName": "t"}
DIRECT = {"name": "dev", "resourceClaimName": "c"}
RECORDED = {"name": "dev", "resourceClaimName": "c"}


def summary(plan: PodPlan) -> dict[str, Any]:
    made = {
        "make": [entry.name for entry in plan.make],
        "found": list(plan.found),
        "reserve": [one.metadata.name for one in plan.reserve],
        "problems": len(plan.problems),
    }
    return {key: value for key, value in made.items() if value}


@pytest.mark.req("4381-75", "4381-77", "4381-133", "4381-134", "4381-135")
@pytest.mark.parametrize(
    ("subject", "claims", "made", "expected"),
    [
        pytest.param(pod(), [], {}, {}, id="no claims"),
        pytest.param(pod(resourceClaims=[DIRECT]), [], {}, {}, id="a user's claim is the user's to create"),
        pytest.param(pod(resourceClaims=[TEMPLATE]), [], {}, {"make": ["dev"]}, id="new pod"),
        pytest.param(pod(resourceClaims=[TEMPLATE]), [], {"dev": "c"}, {"found": [("dev", "c")]}, id="made before"),
        pytest.param(
            pod(resourceClaims=[TEMPLATE], statuses=[RECORDED]), [claim(owner="u")], {"dev": "c"}, {}, id="all is well"
        ),
        pytest.param(
            pod(resourceClaims=[TEMPLATE], statuses=[RECORDED]), [], {"dev": "c"}, {}, id="its news is on the way"
        ),
        pytest.param(
            pod(resourceClaims=[TEMPLATE], statuses=[RECORDED]), [], {}, {"make": ["dev"]}, id="it was deleted"
        ),
        pytest.param(
            pod(resourceClaims=[TEMPLATE], statuses=[RECORDED]),
            [claim()],
            {},
            {"make": ["dev"], "problems": 1},
            id="a user's claim",
        ),
        pytest.param(
            pod(resourceClaims=[TEMPLATE], statuses=[RECORDED]),
            [claim(owner="earlier")],
            {},
            {"make": ["dev"], "problems": 1},
            id="an earlier pod's claim",
        ),
        pytest.param(pod(resourceClaims=[TEMPLATE], statuses=[{"name": "dev"}]), [], {}, {}, id="none was needed"),
        pytest.param(pod(resourceClaims=[TEMPLATE], deleted=True), [], {}, {}, id="being deleted"),
        pytest.param(pod(resourceClaims=[TEMPLATE], phase="Failed"), [], {}, {}, id="finished"),
        pytest.param(
            pod(resourceClaims=[DIRECT], nodeName="n"), [claim()], {}, {"reserve": ["c"]}, id="put on a node by hand"
        ),
        pytest.param(pod(resourceClaims=[DIRECT]), [claim()], {}, {}, id="the scheduler reserves"),
        pytest.param(
            pod(resourceClaims=[DIRECT], nodeName="n"), [claim(allocated=False)], {}, {}, id="nothing to reserve"
        ),
        pytest.param(pod(resourceClaims=[DIRECT], nodeName="n"), [claim(deleted=True)], {}, {}, id="claim going"),
        pytest.param(pod(resourceClaims=[DIRECT], nodeName="n"), [claim(reserved=("u",))], {}, {}, id="reserved"),
    ],
)
def test_pods(subject: Pod, claims: list[ResourceClaim], made: dict[str, str], expected: dict[str, Any]) -> None:
    known = {one.metadata.name: one for one in claims}
    assert summary(plan_pod(subject, known.get, lambda: made)) == expected


@pytest.mark.req(
    "4381-59", "4381-61", "4381-131", "4381-136", "4381-137", "4381-138", "4381-140", "4381-141", "4381-39"
)
@pytest.mark.parametrize(
    ("subject", "gone", "is_needless", "allocated", "users", "steps"),
    [
        pytest.param(claim(), [], False, True, [], [], id="allocated, and its scheduler may be about to reserve it"),
        pytest.param(claim(reserved=("a",)), [], False, True, ["a"], [], id="in use"),
        pytest.param(claim(reserved=("a",)), ["a"], False, False, [], [Step.DROP_FINALIZER], id="last user gone"),
        pytest.param(claim(reserved=("a", "b")), ["a"], False, True, ["b"], [], id="one of two gone"),
        pytest.param(claim(reserved=("a",), foreign=True), ["a"], False, True, ["x"], [], id="another kind of user"),
        pytest.param(claim(foreign=True), ["x"], False, True, ["x"], [], id="no pod, whatever its uid"),
        pytest.param(
            claim(owner="a", reserved=("a",)),
            ["a"],
            True,
            False,
            [],
            [Step.DROP_FINALIZER, Step.DELETE],
            id="generated",
        ),
        pytest.param(
            claim(owner="a", finalizer=False, allocated=False), [], True, False, [], [Step.DELETE], id="never used"
        ),
        pytest.param(claim(owner="a", reserved=("b",)), [], True, True, ["b"], [], id="somebody else uses it"),
        pytest.param(
            claim(deleted=True, allocated=False), [], False, False, [], [Step.DROP_FINALIZER], id="deleted, unallocated"
        ),
        pytest.param(claim(deleted=True), [], False, False, [], [Step.DROP_FINALIZER], id="deleted, allocated, unused"),
        pytest.param(claim(deleted=True, reserved=("a",)), [], False, True, ["a"], [], id="deleted, in use"),
        pytest.param(claim(deleted=True, finalizer=False), [], False, True, [], [], id="somebody else's finalizer"),
        pytest.param(claim(reserved=("a",), finalizer=False), ["a"], False, True, [], [], id="not allocated by us"),
    ],
)
def test_claims(
    subject: ResourceClaim, gone: list[str], is_needless: bool, allocated: bool, users: list[str], steps: list[Step]
) -> None:
    plan = plan_claim(subject, gone, is_needless=is_needless)
    status = plan.status or subject.status
    assert (status.allocation is not None) is allocated
    assert [one.uid for one in status.reserved_for] == users
    assert list(plan.steps) == steps


@pytest.mark.req("4381-136")
@pytest.mark.parametrize(
    ("subject", "done"),
    [
        (pod(), False),
        (pod(phase="Running", nodeName="n"), False),
        (pod(deleted=True, nodeName="n"), False),
        (pod(deleted=True), True),
        (pod(phase="Succeeded"), True),
        (pod(phase="Failed"), True),
    ],
)
def test_pods_that_are_done_or_never_start(subject: Pod, done: bool) -> None:
    assert is_done(subject) is done


@pytest.mark.req("4381-78", "SVS-59")
@pytest.mark.parametrize(
    ("pod_name", "entry", "expected"),
    [
        ("p", "dev", "p-dev-"),
        ("x" * 40, "y" * 15, "x" * 40 + "-" + "y" * 15 + "-"),
        ("x" * 80, "y" * 30, "x" * 40 + "-" + "y" * 15 + "-"),
        ("x" * 39 + "." + "x" * 40, "y" * 30, "x" * 39 + "-" + "y" * 15 + "-"),
    ],
)
def test_names(pod_name: str, entry: str, expected: str) -> None:
    assert generate_name(pod_name, entry) == expected
    assert len(expected) <= 57


@pytest.mark.parametrize(
    ("name", "owner", "statuses", "other"),
    [
        ("c", "u", [], None),
        ("c", "u", [RECORDED], None),
        ("second", "u", [RECORDED], "c"),
        ("second", "u", [{"name": "else", "resourceClaimName": "c"}], None),
        ("second", "earlier", [RECORDED], None),
    ],
)
def test_a_claim_is_one_too_many_if_its_pod_uses_another_for_the_same_entry(
    name: str, owner: str, statuses: Any, other: str | None
) -> None:
    made = claim(name, owner=owner, allocated=False)
    made = replace(made, metadata=replace(made.metadata, annotations={POD_CLAIM_NAME: "dev"}))
    assert other_claim(made, pod(statuses=statuses)) == other

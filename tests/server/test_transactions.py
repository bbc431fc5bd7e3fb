"""What belongs together is stored in one write in process, or not at all; admission, rights and quotas apply."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

import builders
from dray.api.generated.core import Event, ObjectReference, Pod
from dray.api.kinds import CLAIMS, EVENTS, PODS, QUOTAS
from dray.api.meta import ObjectMeta
from dray.api.pod_claims import claim_for, consumer, is_owned_by
from dray.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dray.api.resource.claim import FINALIZER
from dray.api.status import ApiError
from local_server import LocalServer, local_server, typed

CONTROLLER = "resource-claim-controller"
SCHEDULER = "kube-scheduler"


@contextlib.asynccontextmanager
async def started_server() -> AsyncIterator[LocalServer]:
    async with local_server() as started:
        admin = started.client()
        await admin.create(typed(builders.claim_template("one", builders.request())))
        yield started


async def add_pod(server: LocalServer, name: str = "p") -> Pod:
    entries = [builders.pod_claim("gpu", template="one")]
    made = await server.client().create(typed(builders.pod(name, claims=entries)))
    assert isinstance(made, Pod)
    return made


def wanted(pod: Pod, template: ResourceClaimTemplate) -> dict[str, ResourceClaim]:
    return {"gpu": claim_for(pod, pod.spec.resource_claims[0], template)}


async def template(server: LocalServer) -> ResourceClaimTemplate:
    found = server.engine.get("resourceclaimtemplates.resource.k8s.io", "default", "one")
    assert isinstance(found, ResourceClaimTemplate)
    return found


async def test_a_claim_and_the_note_of_it_follow_each_other() -> None:
    async with started_server() as server:
        pod = await add_pod(server)
        made = await server.component(CONTROLLER).create_claims(pod, wanted(pod, await template(server)))
        assert made is not None
        stored: Any = await server.client().get(PODS, "default", "p")
        assert [each.resource_claim_name for each in stored.status.resource_claim_statuses] == [made[0].metadata.name]
        assert int(stored.metadata.resource_version) == int(made[0].metadata.resource_version) + 1


async def test_no_claim_is_made_for_a_pod_that_has_one_by_now() -> None:
    async with started_server() as server:
        pod = await add_pod(server)
        controller = server.component(CONTROLLER)
        await controller.create_claims(pod, wanted(pod, await template(server)))
        with pytest.raises(ApiError, match="its claims have changed"):
            await controller.create_claims(pod, wanted(pod, await template(server)))
        assert len((await server.client().list(CLAIMS)).items) == 1


async def allocated(server: LocalServer, pod: Pod) -> ResourceClaim:
    made = await server.component(CONTROLLER).create_claims(pod, wanted(pod, await template(server)))
    assert made is not None
    claim = made[0]
    status = replace(claim.status, allocation=AllocationResult(), reserved_for=(consumer(pod),))
    return replace(claim, metadata=replace(claim.metadata, finalizers=(FINALIZER,)), status=status)


async def test_a_pod_gets_its_node_together_with_its_devices() -> None:
    async with started_server() as server:
        pod = await add_pod(server)
        stored = await server.component(SCHEDULER).bind_with_claims(pod, "node-1", [await allocated(server, pod)])
        assert stored is not None
        assert stored[0].status.allocation is not None
        bound: Any = await server.client().get(PODS, "default", "p")
        assert bound.spec.node_name == "node-1"
        assert int(bound.metadata.resource_version) == int(stored[0].metadata.resource_version) + 1


async def test_a_pod_that_cannot_be_bound_leaves_its_claim_as_it_was() -> None:
    async with started_server() as server:
        pod = await add_pod(server)
        claim = await allocated(server, pod)
        scheduler = server.component(SCHEDULER)
        assert await scheduler.bind_with_claims(pod, "node-1", []) == []
        with pytest.raises(ApiError, match="already assigned"):
            await scheduler.bind_with_claims(pod, "node-2", [claim])
        left: Any = await server.client().get(CLAIMS, "default", claim.metadata.name)
        assert left.status.allocation is None
        assert left.metadata.finalizers == ()


async def test_a_claim_that_somebody_else_changed_binds_nobody() -> None:
    async with started_server() as server:
        pod = await add_pod(server)
        claim = await allocated(server, pod)
        await server.client().patch(CLAIMS, "default", claim.metadata.name, {"metadata": {"labels": {"a": "b"}}})
        with pytest.raises(ApiError, match="has been modified"):
            await server.component(SCHEDULER).bind_with_claims(pod, "node-1", [claim])
        left: Any = await server.client().get(PODS, "default", "p")
        assert not left.spec.node_name


async def test_only_what_the_identity_may_do() -> None:
    async with started_server() as server:
        pod = await add_pod(server)
        claim = await allocated(server, pod)
        with pytest.raises(ApiError, match="forbidden"):
            await server.component(CONTROLLER).bind_with_claims(pod, "node-1", [claim])


async def test_where_people_have_configured_admission_each_write_is_asked_about() -> None:
    async with started_server() as server:
        pod = await add_pod(server)
        claim = await allocated(server, pod)
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
        policy = builders.manifest("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "any", "", spec=spec)
        binding = builders.manifest(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicyBinding",
            "any",
            "",
            spec={"policyName": "any", "validationActions": ["Deny"]},
        )
        for each in (policy, binding):
            await server.client().create(typed(each))
        assert await server.component(SCHEDULER).bind_with_claims(pod, "node-1", [claim]) is None
        assert await server.component(CONTROLLER).create_claims(pod, {}) is None


async def test_claims_come_with_their_pod_where_their_maker_runs_beside() -> None:
    async with started_server() as server:
        told: list[ResourceClaim] = []
        server.component(CONTROLLER).make_claims_with_pods(lambda _, claims: told.extend(claims))
        pod = await add_pod(server)
        assert [each.resource_claim_name for each in pod.status.resource_claim_statuses] == [told[0].metadata.name]
        assert is_owned_by(told[0], pod)
        assert int(pod.metadata.resource_version) == int(told[0].metadata.resource_version) + 1


async def test_a_pod_whose_template_is_missing_or_that_has_a_quota_is_left_to_the_controller() -> None:
    async with started_server() as server:
        told: list[ResourceClaim] = []
        server.component(CONTROLLER).make_claims_with_pods(lambda _, claims: told.extend(claims))
        entries = [builders.pod_claim("gpu", template="missing")]
        await server.client().create(typed(builders.pod("early", claims=entries)))
        quota = builders.manifest("v1", "ResourceQuota", "q", spec={"hard": {"count/pods": "5"}})
        await server.client().create(typed(quota))
        status = {"status": {"hard": {"count/pods": "5"}, "used": {"count/pods": "1"}}}
        await server.client().patch(QUOTAS, "default", "q", status, subresource="status")
        await add_pod(server, "limited")
        assert told == []
        assert (await server.client().list(CLAIMS)).items == ()
        assert len((await server.client().list(PODS)).items) == 2


async def test_a_name_that_is_taken_is_told_of_the_pod() -> None:
    async with started_server() as server:
        server.component(CONTROLLER).make_claims_with_pods(lambda *_: None)
        await add_pod(server)
        with pytest.raises(ApiError, match='pods "p" already exists'):
            await add_pod(server)
        assert len((await server.client().list(CLAIMS)).items) == 1


async def test_events_of_many_are_one_write() -> None:
    async with started_server() as server:
        about = ObjectReference(kind="Pod", namespace="default", name="p")
        events = [
            Event(
                kind="Event",
                api_version="v1",
                metadata=ObjectMeta(name=f"p.{number}", namespace="default"),
                involved_object=about,
                type="Normal",
                reason="Scheduled",
            )
            for number in range(3)
        ]
        stored = await server.component(SCHEDULER).create_events(events)
        assert stored is not None
        revisions = [int(each.metadata.resource_version) for each in stored]
        assert revisions == list(range(revisions[0], revisions[0] + 3))
        assert await server.component(SCHEDULER).create_events(events) is None
        assert len((await server.client().list(EVENTS)).items) == 3


class Decision:
    """What a scheduler hands in for a new pod, and what it hears of it."""

    def __init__(self, pod: Pod, claims: Sequence[ResourceClaim], result: AllocationResult) -> None:
        self.node = "node-1"
        self.claims = [
            replace(
                claim,
                metadata=replace(claim.metadata, finalizers=(FINALIZER,)),
                status=replace(claim.status, allocation=result, reserved_for=(consumer(pod),)),
            )
            for claim in claims
        ]
        self.heard: list[str] = []

    def stored(self, pod: Pod) -> None:
        self.heard.append(f"stored {pod.spec.node_name}")

    def failed(self) -> None:
        self.heard.append("failed")

    def lost(self) -> None:
        self.heard.append("lost")


class Decisions(list[Decision]):
    """A scheduler that always finds something: the given devices."""

    def __init__(self, result: AllocationResult | None = None) -> None:
        super().__init__()
        self._result = result or AllocationResult()

    def place(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Decision:
        self.append(Decision(pod, claims, self._result))
        return self[-1]

    @property
    def heard(self) -> list[list[str]]:
        return [each.heard for each in self]


async def test_a_new_pod_is_stored_with_its_node_and_its_devices() -> None:
    async with started_server() as server:
        told: list[ResourceClaim] = []
        decisions = Decisions()
        server.component(CONTROLLER).make_claims_with_pods(lambda _, claims: told.extend(claims))
        server.component(SCHEDULER).give_nodes_with_pods(decisions.place)
        pod = await add_pod(server)
        assert pod.spec.node_name == "node-1"
        assert [(each.type, each.status) for each in pod.status.conditions] == [("PodScheduled", "True")]
        claim: Any = await server.client().get(CLAIMS, "default", told[0].metadata.name)
        assert claim == told[0]
        assert claim.status.allocation is not None
        assert claim.status.reserved_for == (consumer(pod),)
        assert claim.metadata.finalizers == (FINALIZER,)
        assert int(pod.metadata.resource_version) == int(claim.metadata.resource_version) + 1
        plain: Any = await server.client().create(typed(builders.pod("plain")))
        assert plain.spec.node_name == "node-1"
        assert decisions.heard == [["stored node-1"], ["stored node-1"]]


async def test_who_may_not_bind_gives_no_nodes_to_new_pods() -> None:
    async with started_server() as server:
        decisions = Decisions()
        server.component(CONTROLLER).give_nodes_with_pods(decisions.place)
        pod: Any = await server.client().create(typed(builders.pod("plain")))
        assert not pod.spec.node_name
        assert decisions.heard == [["failed"]]


async def test_a_new_pod_whose_devices_somebody_else_has_is_stored_without_a_node() -> None:
    async with started_server() as server:
        result = DeviceRequestAllocationResult(request="r", driver="gpu.example.com", pool="p", device="gpu-0")
        decisions = Decisions(AllocationResult(devices=DeviceAllocationResult(results=(result,))))
        await server.client().create(typed(builders.resource_slice("s", pool="p", devices=[builders.device("gpu-0")])))
        server.component(CONTROLLER).make_claims_with_pods(lambda *_: None)
        server.component(SCHEDULER).give_nodes_with_pods(decisions.place)
        assert (await add_pod(server)).spec.node_name
        second = await add_pod(server, "q")
        assert not second.spec.node_name
        assert decisions.heard == [["stored node-1"], ["failed"]]
        claims: Any = (await server.client().list(CLAIMS)).items
        assert [each.status.allocation is not None for each in claims] in ([True, False], [False, True])


async def test_no_decision_is_asked_for_a_name_that_is_taken_or_a_dry_run() -> None:
    async with started_server() as server:
        await server.client().create(typed(builders.pod("plain")))
        decisions = Decisions()
        server.component(SCHEDULER).give_nodes_with_pods(decisions.place)
        with pytest.raises(ApiError, match='pods "plain" already exists'):
            await server.client().create(typed(builders.pod("plain")))
        assert decisions == []


async def test_who_asked_for_a_pod_and_left_leaves_the_outcome_open() -> None:
    async with started_server() as server:
        decisions = Decisions()
        server.component(SCHEDULER).give_nodes_with_pods(decisions.place)
        asking = asyncio.ensure_future(server.client().create(typed(builders.pod("plain"))))
        while not decisions:
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert decisions.heard == [["lost"]]

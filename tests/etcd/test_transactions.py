"""What belongs together is stored in one write, or not at all, on either engine; admission, rights and quotas apply."""

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
from dray.api.pod_claims import claim_for, consumer
from dray.api.references import is_owned_by
from dray.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dray.api.resource.claim import FINALIZER
from dray.api.status import ApiError
from dray.server.api_server import ApiServer
from dray.store import Uncertain
from etcd_world import Etcd, etcd_servers
from local_server import ADMIN, local_server, typed

CONTROLLER = "resource-claim-controller"
SCHEDULER = "kube-scheduler"
ROUNDS = 8


@contextlib.asynccontextmanager
async def started_servers(place: Etcd | None = None, count: int = 1) -> AsyncIterator[Sequence[ApiServer]]:
    async with contextlib.AsyncExitStack() as stack:
        servers: Sequence[ApiServer]
        if place is None:
            servers = [await stack.enter_async_context(local_server())]
        else:
            servers = await stack.enter_async_context(etcd_servers(place.urls, count, with_roles=True))
        await servers[0].client_of(ADMIN).create(typed(builders.claim_template("one", builders.request())))
        yield servers


@contextlib.asynccontextmanager
async def started_server(place: Etcd | None = None) -> AsyncIterator[ApiServer]:
    async with started_servers(place) as (server,):
        yield server


async def add_pod(server: ApiServer, name: str = "p") -> Pod:
    entries = [builders.pod_claim("gpu", template="one")]
    made = await server.client_of(ADMIN).create(typed(builders.pod(name, claims=entries)))
    assert isinstance(made, Pod)
    return made


def wanted(pod: Pod, template: ResourceClaimTemplate) -> dict[str, ResourceClaim]:
    return {"gpu": claim_for(pod, pod.spec.resource_claims[0], template)}


async def template(server: ApiServer) -> ResourceClaimTemplate:
    found = server.engine.get("resourceclaimtemplates.resource.k8s.io", "default", "one")
    assert isinstance(found, ResourceClaimTemplate)
    return found


async def test_a_claim_and_the_note_of_it_follow_each_other(place: Etcd | None) -> None:
    async with started_server(place) as server:
        pod = await add_pod(server)
        made = await server.local_client(CONTROLLER).create_claims(pod, wanted(pod, await template(server)))
        assert made is not None
        stored: Any = await server.client_of(ADMIN).get(PODS, "default", "p")
        assert [each.resource_claim_name for each in stored.status.resource_claim_statuses] == [made[0].metadata.name]
        assert int(stored.metadata.resource_version) == int(made[0].metadata.resource_version) + 1


async def test_no_claim_is_made_for_a_pod_that_has_one_by_now(place: Etcd | None) -> None:
    async with started_server(place) as server:
        pod = await add_pod(server)
        controller = server.local_client(CONTROLLER)
        await controller.create_claims(pod, wanted(pod, await template(server)))
        with pytest.raises(ApiError, match="its claims have changed"):
            await controller.create_claims(pod, wanted(pod, await template(server)))
        assert len((await server.client_of(ADMIN).list(CLAIMS)).items) == 1


async def allocated(server: ApiServer, pod: Pod, result: AllocationResult | None = None) -> ResourceClaim:
    made = await server.local_client(CONTROLLER).create_claims(pod, wanted(pod, await template(server)))
    assert made is not None
    claim = made[0]
    status = replace(claim.status, allocation=result or AllocationResult(), reserved_for=(consumer(pod),))
    return replace(claim, metadata=replace(claim.metadata, finalizers=(FINALIZER,)), status=status)


async def test_a_pod_gets_its_node_together_with_its_devices(place: Etcd | None) -> None:
    async with started_server(place) as server:
        pod = await add_pod(server)
        stored = await server.local_client(SCHEDULER).bind_with_claims(pod, "node-1", [await allocated(server, pod)])
        assert stored is not None
        assert stored[0].status.allocation is not None
        bound: Any = await server.client_of(ADMIN).get(PODS, "default", "p")
        assert bound.spec.node_name == "node-1"
        assert int(bound.metadata.resource_version) == int(stored[0].metadata.resource_version) + 1


async def test_a_pod_that_cannot_be_bound_leaves_its_claim_as_it_was(place: Etcd | None) -> None:
    async with started_server(place) as server:
        pod = await add_pod(server)
        claim = await allocated(server, pod)
        scheduler = server.local_client(SCHEDULER)
        assert await scheduler.bind_with_claims(pod, "node-1", []) == []
        with pytest.raises(ApiError, match="already assigned"):
            await scheduler.bind_with_claims(pod, "node-2", [claim])
        left: Any = await server.client_of(ADMIN).get(CLAIMS, "default", claim.metadata.name)
        assert left.status.allocation is None
        assert left.metadata.finalizers == ()


async def test_a_claim_that_somebody_else_changed_binds_nobody(place: Etcd | None) -> None:
    async with started_server(place) as server:
        pod = await add_pod(server)
        claim = await allocated(server, pod)
        await server.client_of(ADMIN).patch(
            CLAIMS, "default", claim.metadata.name, {"metadata": {"labels": {"a": "b"}}}
        )
        with pytest.raises(ApiError, match="has been modified"):
            await server.local_client(SCHEDULER).bind_with_claims(pod, "node-1", [claim])
        left: Any = await server.client_of(ADMIN).get(PODS, "default", "p")
        assert not left.spec.node_name


async def test_only_what_the_identity_may_do() -> None:
    async with started_server() as server:
        pod = await add_pod(server)
        claim = await allocated(server, pod)
        with pytest.raises(ApiError, match="forbidden"):
            await server.local_client(CONTROLLER).bind_with_claims(pod, "node-1", [claim])


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
            await server.client_of(ADMIN).create(typed(each))
        assert await server.local_client(SCHEDULER).bind_with_claims(pod, "node-1", [claim]) is None
        assert await server.local_client(CONTROLLER).create_claims(pod, {}) is None


async def test_claims_come_with_their_pod_where_their_maker_runs_beside() -> None:
    async with started_server() as server:
        told: list[ResourceClaim] = []
        server.local_client(CONTROLLER).make_claims_with_pods(lambda _, claims: told.extend(claims))
        pod = await add_pod(server)
        assert [each.resource_claim_name for each in pod.status.resource_claim_statuses] == [told[0].metadata.name]
        assert is_owned_by(told[0], pod)
        assert int(pod.metadata.resource_version) == int(told[0].metadata.resource_version) + 1


async def test_a_pod_whose_template_is_missing_or_that_has_a_quota_is_left_to_the_controller() -> None:
    async with started_server() as server:
        told: list[ResourceClaim] = []
        server.local_client(CONTROLLER).make_claims_with_pods(lambda _, claims: told.extend(claims))
        entries = [builders.pod_claim("gpu", template="missing")]
        await server.client_of(ADMIN).create(typed(builders.pod("early", claims=entries)))
        quota = builders.manifest("v1", "ResourceQuota", "q", spec={"hard": {"count/pods": "5"}})
        await server.client_of(ADMIN).create(typed(quota))
        status = {"status": {"hard": {"count/pods": "5"}, "used": {"count/pods": "1"}}}
        await server.client_of(ADMIN).patch(QUOTAS, "default", "q", status, subresource="status")
        await add_pod(server, "limited")
        assert told == []
        assert (await server.client_of(ADMIN).list(CLAIMS)).items == ()
        assert len((await server.client_of(ADMIN).list(PODS)).items) == 2


async def test_a_name_that_is_taken_is_told_of_the_pod(place: Etcd | None) -> None:
    async with started_server(place) as server:
        server.local_client(CONTROLLER).make_claims_with_pods(lambda *_: None)
        await add_pod(server)
        with pytest.raises(ApiError, match='pods "p" already exists'):
            await add_pod(server)
        assert len((await server.client_of(ADMIN).list(CLAIMS)).items) == 1


async def test_events_of_many_are_one_write(place: Etcd | None) -> None:
    async with started_server(place) as server:
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
        stored = await server.local_client(SCHEDULER).create_events(events)
        assert stored is not None
        revisions = [int(each.metadata.resource_version) for each in stored]
        assert revisions == list(range(revisions[0], revisions[0] + 3))
        assert await server.local_client(SCHEDULER).create_events(events) is None
        assert len((await server.client_of(ADMIN).list(EVENTS)).items) == 3


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


async def test_a_new_pod_is_stored_with_its_node_and_its_devices(place: Etcd | None) -> None:
    async with started_server(place) as server:
        told: list[ResourceClaim] = []
        decisions = Decisions()
        server.local_client(CONTROLLER).make_claims_with_pods(lambda _, claims: told.extend(claims))
        server.local_client(SCHEDULER).give_nodes_with_pods(decisions.place)
        pod = await add_pod(server)
        assert pod.spec.node_name == "node-1"
        assert [(each.type, each.status) for each in pod.status.conditions] == [("PodScheduled", "True")]
        claim: Any = await server.client_of(ADMIN).get(CLAIMS, "default", told[0].metadata.name)
        assert claim == told[0]
        assert claim.status.allocation is not None
        assert claim.status.reserved_for == (consumer(pod),)
        assert claim.metadata.finalizers == (FINALIZER,)
        assert int(pod.metadata.resource_version) == int(claim.metadata.resource_version) + 1
        plain: Any = await server.client_of(ADMIN).create(typed(builders.pod("plain")))
        assert plain.spec.node_name == "node-1"
        assert decisions.heard == [["stored node-1"], ["stored node-1"]]


async def test_who_may_not_bind_gives_no_nodes_to_new_pods() -> None:
    async with started_server() as server:
        decisions = Decisions()
        server.local_client(CONTROLLER).give_nodes_with_pods(decisions.place)
        pod: Any = await server.client_of(ADMIN).create(typed(builders.pod("plain")))
        assert not pod.spec.node_name
        assert decisions.heard == [["failed"]]


async def test_a_new_pod_whose_devices_somebody_else_has_is_stored_without_a_node(place: Etcd | None) -> None:
    async with started_server(place) as server:
        result = DeviceRequestAllocationResult(request="r", driver="gpu.example.com", pool="p", device="gpu-0")
        decisions = Decisions(AllocationResult(devices=DeviceAllocationResult(results=(result,))))
        await server.client_of(ADMIN).create(
            typed(builders.resource_slice("s", pool="p", devices=[builders.device("gpu-0")]))
        )
        server.local_client(CONTROLLER).make_claims_with_pods(lambda *_: None)
        server.local_client(SCHEDULER).give_nodes_with_pods(decisions.place)
        assert (await add_pod(server)).spec.node_name
        second = await add_pod(server, "q")
        assert not second.spec.node_name
        assert decisions.heard == [["stored node-1"], ["failed"]]
        claims: Any = (await server.client_of(ADMIN).list(CLAIMS)).items
        assert [each.status.allocation is not None for each in claims] in ([True, False], [False, True])


async def test_no_decision_is_asked_for_a_name_that_is_taken_or_a_dry_run() -> None:
    async with started_server() as server:
        await server.client_of(ADMIN).create(typed(builders.pod("plain")))
        decisions = Decisions()
        server.local_client(SCHEDULER).give_nodes_with_pods(decisions.place)
        with pytest.raises(ApiError, match='pods "plain" already exists'):
            await server.client_of(ADMIN).create(typed(builders.pod("plain")))
        assert decisions == []


async def test_who_asked_for_a_pod_and_left_leaves_the_outcome_open(place: Etcd | None) -> None:
    async with started_server(place) as server:
        decisions = Decisions()
        server.local_client(SCHEDULER).give_nodes_with_pods(decisions.place)
        asking = asyncio.ensure_future(server.client_of(ADMIN).create(typed(builders.pod("plain"))))
        while not decisions:
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert decisions.heard == [["lost"]]


async def test_whether_a_pod_has_its_node_stays_open_if_the_engine_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with started_server() as server:
        decisions = Decisions()
        server.local_client(SCHEDULER).give_nodes_with_pods(decisions.place)

        async def vanish(*_: object) -> None:
            raise Uncertain("the answer was lost")

        monkeypatch.setattr(server.store, "transact", vanish)
        with pytest.raises(ApiError, match="the answer was lost"):
            await server.client_of(ADMIN).create(typed(builders.pod("plain")))
        assert decisions.heard == [["lost"]]


async def test_of_schedulers_at_two_servers_one_gives_a_device_and_a_node(etcd: Etcd) -> None:
    async with started_servers(etcd, 2) as servers:
        one, other = servers
        devices = [builders.device(f"gpu-{number}") for number in range(ROUNDS)]
        await one.client_of(ADMIN).create(typed(builders.resource_slice("s", pool="p", devices=devices)))
        for number in range(ROUNDS):
            found = DeviceRequestAllocationResult(
                request="r", driver="gpu.example.com", pool="p", device=f"gpu-{number}"
            )
            result = AllocationResult(devices=DeviceAllocationResult(results=(found,)))
            pods = [await add_pod(one, f"p{number}-{each}") for each in range(2)]
            claims = [await allocated(one, pod, result) for pod in pods]
            await other.store.catch_up()
            outcomes = await asyncio.gather(
                *(
                    server.local_client(SCHEDULER).bind_with_claims(pod, "node-1", [claim])
                    for server, pod, claim in zip(servers, pods, claims, strict=True)
                ),
                return_exceptions=True,
            )
            assert sorted(getattr(each, "code", 0) for each in outcomes) == [0, 409], outcomes
            for each, pod, claim in zip(outcomes, pods, claims, strict=True):
                is_bound = not isinstance(each, BaseException)
                stored: Any = await other.client_of(ADMIN).get(PODS, "default", pod.metadata.name)
                left: Any = await other.client_of(ADMIN).get(CLAIMS, "default", claim.metadata.name)
                assert (bool(stored.spec.node_name), left.status.allocation is not None) == (is_bound, is_bound)

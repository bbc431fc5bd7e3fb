"""Webhooks, behind real sockets and TLS: what they are asked, what their answers do, and who has to wait for them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from admission_objects import CONFIG_MAPS, EVERYTHING, config_map, deployment, webhooks
from dray.api.generated.core import ConfigMap
from dray.api.kinds import CONFIG_MAPS as KIND
from dray.api.kinds import DEPLOYMENTS
from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.server.local import LocalClient
from dray.server.objects import finish
from dray.server.verbs import writes
from dray.store import Key
from local_server import LocalServer, local_server, typed
from webhook_server import WebhookServer, webhook_server

VALIDATING = by_kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
MUTATING = by_kind("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")


@contextlib.asynccontextmanager
async def world() -> AsyncIterator[tuple[LocalServer, LocalClient, WebhookServer]]:
    async with local_server(with_roles=False) as server, webhook_server() as hooks:
        try:
            yield server, server.client(), hooks
        finally:
            await server.stop()


async def test_a_webhook_is_asked_and_refuses_in_the_words_of_kubernetes() -> None:
    async with world() as (_, admin, hooks):
        await admin.create(webhooks("w", {"clientConfig": hooks.client("/deny")}))
        with pytest.raises(ApiError) as failure:
            await admin.create(config_map("c", a="b"))
        assert str(failure.value) == 'admission webhook "w-0.example.com" denied the request without explanation'
        assert failure.value.code == 400
        asked = hooks.requests("/deny")[0]
        assert asked["object"]["data"] == {"a": "b"}
        assert (asked["oldObject"], asked["operation"], asked["name"], asked["namespace"]) == (
            None,
            "CREATE",
            "c",
            "default",
        )
        assert asked["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
        assert asked["userInfo"]["username"] == "admin"
        await admin.create(webhooks("v", {"clientConfig": hooks.client("/deny-with-reason")}))
        with pytest.raises(ApiError, match=r"v-0.example.com. denied the request: pay first") as failure:
            await admin.create(config_map("c"))
        assert (failure.value.code, failure.value.reason) == (402, "PaymentRequired")


async def test_a_refusal_that_no_client_could_read_is_told_in_one_that_they_can() -> None:
    async with world() as (_, admin, hooks):
        await admin.create(webhooks("w", {"clientConfig": hooks.client("/deny-with-nonsense")}))
        with pytest.raises(ApiError, match="denied the request: mmm") as failure:
            await admin.create(config_map("c"))
        assert failure.value.code == 400
        assert max(len(failure.value.reason), len(str(failure.value))) < 40_000


WRONG = {
    "/close": "failed to call webhook: Post",
    "/redirect": "the webhook answered 307, not 200",
    "/500": "the webhook answered 500, not 200",
    "/garbage": "received invalid webhook response: the answer is no AdmissionReview",
    "/huge": "the answer is larger than 8388608 bytes",
    "/crumbs": "the answer comes in more than 20000 pieces",
    "/wrong-uid": 'expected response.uid="',
    "/no-response": "webhook response was absent",
    "/not-a-review": "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview",
    "/no-patch-type": "webhook returned response.patch but not response.patchType",
    "/bad-patch": "received undecodable patch",
}


@pytest.mark.parametrize("path", WRONG)
async def test_an_answer_that_is_none_fails_or_is_ignored_as_the_webhook_says(path: str) -> None:
    async with world() as (_, admin, hooks):
        client = hooks.client(path)
        await admin.create(webhooks("w", {"clientConfig": client, "failurePolicy": "Fail"}, mutating=True))
        with pytest.raises(ApiError) as failure:
            await admin.create(config_map())
        assert failure.value.code == 500
        assert 'failed calling webhook "w-0.example.com": ' in str(failure.value)
        assert WRONG[path] in str(failure.value)
        await admin.delete(MUTATING, "", "w")
        await admin.create(webhooks("w", {"clientConfig": client, "failurePolicy": "Ignore"}, mutating=True))
        await admin.create(config_map())
        assert "/allow" not in [asked for asked, _ in hooks.asked]


@pytest.mark.parametrize(
    ("client", "why"),
    [
        ({"url": "https://127.0.0.1:1/x"}, "Connection refused"),
        ({"service": {"namespace": "default", "name": "none"}}, 'service "none" not found'),
        ({"service": {"namespace": "default", "name": "empty"}}, 'no endpoints available for service "empty"'),
        ({"service": {"namespace": "default", "name": "empty", "port": 1}}, "no service port 1 found"),
    ],
)
async def test_who_is_not_there_is_told_of(client: dict[str, Any], why: str) -> None:
    async with world() as (_, admin, _hooks):
        await admin.create(service("empty"))
        await admin.create(webhooks("w", {"clientConfig": client}))
        with pytest.raises(ApiError, match=why):
            await admin.create(config_map())


@pytest.mark.parametrize(("operations", "code"), [([], 201), ([{"op": "remove", "path": "/data"}], 500)])
async def test_a_patch_of_another_sort_fails_if_it_wants_anything(operations: list[Any], code: int) -> None:
    async with world() as (_, admin, hooks):
        hooks.patch_type = "Merge"
        hooks.patches["/strange"] = operations
        await admin.create(webhooks("w", {"clientConfig": hooks.client("/strange")}, mutating=True))
        if code == 201:
            await admin.create(config_map())
            return
        with pytest.raises(ApiError, match="unsupported patch type") as failure:
            await admin.create(config_map())
        assert failure.value.code == code


async def test_what_the_server_decides_is_not_a_webhooks_to_say() -> None:
    """It could have everything be born dying, and nobody would ever finish it off."""
    async with world() as (_, admin, hooks):
        stamp = "2026-01-01T00:00:00Z"
        said = {"deletionTimestamp": stamp, "deletionGracePeriodSeconds": 5, "generation": 7, "uid": "x"}
        hooks.patches["/own"] = [{"op": "add", "path": f"/metadata/{one}", "value": said[one]} for one in said]
        await admin.create(webhooks("w", {"clientConfig": hooks.client("/own")}, mutating=True))
        found = (await admin.create(config_map("c"))).metadata
        assert found.uid != "x"
        assert (found.deletion_timestamp, found.deletion_grace_period_seconds) == (None, None)
        assert found.generation != 7


async def test_a_stranger_is_not_trusted() -> None:
    async with world() as (_, admin, hooks), webhook_server() as other:
        await admin.create(webhooks("w", {"clientConfig": hooks.client("/allow") | {"caBundle": other.bundle}}))
        with pytest.raises(ApiError, match="certificate verify failed"):
            await admin.create(config_map())
        assert not hooks.asked


async def test_an_answer_in_pieces_is_read_to_its_end() -> None:
    async with world() as (_, admin, hooks):
        await admin.create(webhooks("w", {"clientConfig": hooks.client("/pieces")}))
        await admin.create(config_map())


async def test_a_webhook_that_hangs_holds_up_only_the_request_that_needs_it() -> None:
    async with world() as (_, admin, hooks):
        hanging = {"clientConfig": hooks.client("/hang"), "timeoutSeconds": 1, "failurePolicy": "Ignore"}
        await admin.create(webhooks("w", hanging | {"objectSelector": {"matchLabels": {"slow": "yes"}}}))
        metadata = {"name": "s", "namespace": "default", "labels": {"slow": "yes"}}
        labelled = typed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        waiting = [asyncio.create_task(admin.create(labelled))]
        while not hooks.asked:
            await asyncio.sleep(0)
        for number in range(20):
            await admin.create(config_map(f"c{number}"))
        assert not waiting[0].done()
        await asyncio.gather(*waiting)  # the webhook has had its second


def adds(key: str) -> Any:
    """A webhook that adds the number of keys as another one, unless that is there."""

    def patch(obj: dict[str, Any]) -> list[dict[str, str]]:
        known = obj.get("data", {})
        return [] if key in known else [{"op": "add", "path": f"/data/{key}", "value": str(len(known))}]

    return patch


async def test_changes_come_one_after_the_other_and_who_wants_sees_the_last_of_them() -> None:
    async with world() as (server, admin, hooks):
        hooks.patches = {"/first": adds("first"), "/second": adds("second")}
        again = {"reinvocationPolicy": "IfNeeded"}
        await admin.create(webhooks("a", {"clientConfig": hooks.client("/first")} | again, mutating=True))
        await admin.create(webhooks("b", {"clientConfig": hooks.client("/second")} | again, mutating=True))
        call = admin._call("create", KIND, "default")
        made = (await writes.create(server.engine, call, config_map(given="x"))).obj
        assert isinstance(made, ConfigMap)
        assert made.data == {"given": "x", "first": "1", "second": "2"}
        assert [path for path, _ in hooks.asked] == ["/first", "/second", "/first"]
        assert call.annotations["mutation.webhook.admission.k8s.io/round_0_index_1"] == (
            '{"configuration":"b","webhook":"b-0.example.com","mutated":true}'
        )


async def test_what_is_told_reaches_the_caller_and_the_audit_log() -> None:
    async with world() as (server, admin, hooks):
        await admin.create(webhooks("w", {"clientConfig": hooks.client("/tell")}))
        call = admin._call("create", KIND, "default")
        await writes.create(server.engine, call, config_map())
        assert call.warnings == ["watch out"]
        assert call.annotations == {"w-0.example.com/seen": "yes"}


async def test_who_has_side_effects_is_not_asked_about_dry_runs() -> None:
    async with world() as (server, admin, hooks):
        stored = webhooks("w", {"clientConfig": hooks.client("/allow"), "sideEffects": "Some"})
        await server.store.create(Key(VALIDATING.resource, "", "w"), finish(stored))  # which validation refuses today
        call = admin._call("create", KIND, "default")
        call.dry_run = True
        with pytest.raises(ApiError, match="does not support dry run") as failure:
            await writes.create(server.engine, call, config_map())
        assert failure.value.code == 400
        assert not hooks.asked


async def test_conditions_and_versions_decide_what_is_asked() -> None:
    async with world() as (_, admin, hooks):
        scalers = ["horizontalpodautoscalers"]
        rules = [{**CONFIG_MAPS, "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": scalers}]
        mine = "object.metadata.name == 'mine' && authorizer.path('/x').check('get').allowed()"
        conditions = [{"name": "mine", "expression": mine}]
        asking = {"clientConfig": hooks.client("/allow"), "rules": rules, "matchConditions": conditions}
        await admin.create(webhooks("w", asking))
        for name in ("mine", "other"):
            scale = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
            kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
            content = {
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"scaleTargetRef": scale, "maxReplicas": 3},
            }
            await admin.create(typed(kind | content))
        assert [request["name"] for request in hooks.requests("/allow")] == ["mine"]
        asked = hooks.requests("/allow")[0]
        assert (asked["kind"]["version"], asked["requestKind"]["version"]) == ("v1", "v2")
        assert asked["object"]["apiVersion"] == "autoscaling/v1"


async def test_a_scale_can_be_changed() -> None:
    async with world() as (_, admin, hooks):
        await admin.create(deployment("d"))
        hooks.patches["/most"] = [{"op": "replace", "path": "/spec/replicas", "value": 2}]
        rules = [{**EVERYTHING, "resources": ["deployments/scale"]}]
        await admin.create(webhooks("w", {"clientConfig": hooks.client("/most"), "rules": rules}, mutating=True))
        await admin.patch(DEPLOYMENTS, "default", "d", {"spec": {"replicas": 9}}, subresource="scale")
        found: Any = await admin.get(DEPLOYMENTS, "default", "d")
        assert found.spec.replicas == 2
        assert hooks.requests("/most")[0]["object"]["kind"] == "Scale"


@pytest.mark.parametrize("sort", ["EndpointSlice", "Endpoints"])
async def test_a_service_leads_to_its_endpoints(sort: str) -> None:
    async with world() as (_, admin, hooks):
        for name in ("hook", "other"):
            await admin.create(service(name))
            await admin.create(endpoints(sort, name, hooks.port))
            reference = {"namespace": "default", "name": name, "path": "/allow"}
            await admin.create(webhooks("w", {"clientConfig": {"service": reference, "caBundle": hooks.bundle}}))
            if name == "hook":
                await admin.create(config_map())
                await admin.delete(VALIDATING, "", "w")
        with pytest.raises(ApiError, match=r"other\.default\.svc"):  # whom the certificate does not name
            await admin.create(config_map("d"))
        assert len(hooks.requests("/allow")) == 1


def service(name: str) -> Any:
    metadata = {"name": name, "namespace": "default"}
    spec = {"ports": [{"port": 443, "name": "https", "targetPort": 8443}]}
    return typed({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


def endpoints(sort: str, name: str, port: int) -> Any:
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    ports = [{"port": port, "name": "https"}]
    if sort == "Endpoints":
        subsets = [{"addresses": [{"ip": "127.0.0.1"}], "ports": ports}]
        return typed({"apiVersion": "v1", "kind": sort, "metadata": metadata, "subsets": subsets})
    metadata["labels"] = {"kubernetes.io/service-name": name}
    ready = [{"addresses": ["127.0.0.1"]}]
    more = {"addressType": "IPv4", "endpoints": ready, "ports": ports}
    return typed({"apiVersion": "discovery.k8s.io/v1", "kind": sort, "metadata": metadata, **more})

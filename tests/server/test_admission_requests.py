"""What webhooks and policies are told of a request: what the caller said, as Kubernetes tells it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from admission_objects import CONFIG_MAPS, EVERYTHING, binding, deployment, policy, webhooks
from dray.api import codec
from dray.api.kinds import DEPLOYMENTS, PODS
from dray.api.status import ApiError
from live_server import Answer, LiveServer, running_server
from local_server import local_server, typed
from webhook_server import WebhookServer, webhook_server

MAPS = "/api/v1/namespaces/default/configmaps"


class Asking:
    """A server, and the webhooks that it asks about ConfigMaps: `/change` and `/allow`."""

    def __init__(self, server: LiveServer, hooks: WebhookServer) -> None:
        self._server = server
        self.hooks = hooks

    async def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        return await asyncio.to_thread(self._server.request, method, path, body, content_type)

    async def asked(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> list[dict[str, Any]]:
        """What the webhooks are asked about a request, first the one that may change things."""
        self.hooks.asked.clear()
        answer = await self.send(method, path, body, content_type)
        assert answer.code < 300, answer.body
        return [review["request"] for _, review in self.hooks.asked]


@contextlib.asynccontextmanager
async def asking_about_maps(tmp_path: Path) -> AsyncIterator[Asking]:
    async with webhook_server() as hooks:
        with running_server(tmp_path / "state", program="server") as server:
            found = Asking(server, hooks)
            rules = [CONFIG_MAPS | {"operations": ["*"]}]
            for name, is_mutating in (("change", True), ("allow", False)):
                made = webhooks(name, {"clientConfig": hooks.client(f"/{name}"), "rules": rules}, mutating=is_mutating)
                path = f"/apis/admissionregistration.k8s.io/v1/{'mutating' if is_mutating else 'validating'}"
                await found.send("POST", f"{path}webhookconfigurations", codec.to_builtins(made))
            yield found


async def test_options_are_those_that_the_caller_gave(tmp_path: Path) -> None:
    async with asking_about_maps(tmp_path) as asking:
        usual = {"apiVersion": "meta.k8s.io/v1"}
        body = {"metadata": {"name": "one"}}
        for asked in await asking.asked("POST", MAPS, body):
            assert asked["options"] == usual | {"kind": "CreateOptions"}
        query = "?fieldManager=me&fieldValidation=Strict&dryRun=All"
        told = {"fieldManager": "me", "fieldValidation": "Strict", "dryRun": ["All"]}
        for asked in await asking.asked("PUT", f"{MAPS}/one{query}", body):
            assert asked["options"] == usual | told | {"kind": "UpdateOptions"}
            assert asked["dryRun"] is True
        merge = "application/merge-patch+json"
        for asked in await asking.asked("PATCH", f"{MAPS}/one", {"data": {"a": "b"}}, merge):
            assert (asked["operation"], asked["options"]) == ("UPDATE", usual | {"kind": "UpdateOptions"})
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}}
        apply = "application/apply-patch+yaml"
        for asked in await asking.asked("PATCH", f"{MAPS}/two?fieldManager=me&force=true", applied, apply):
            assert asked["operation"] == "CREATE"
            assert asked["options"] == usual | {"kind": "CreateOptions", "fieldManager": "me"}
        wish = {"gracePeriodSeconds": 7, "propagationPolicy": "Background", "dryRun": ["All"]}
        for asked in await asking.asked("DELETE", f"{MAPS}/two", wish | {"kind": "DeleteOptions", "apiVersion": "v1"}):
            assert asked["options"] == usual | wish | {"kind": "DeleteOptions"}


async def test_a_name_that_nobody_gave_is_not_told(tmp_path: Path) -> None:
    async with asking_about_maps(tmp_path) as asking:
        change, check = await asking.asked("POST", MAPS, {"metadata": {"generateName": "a-", "labels": {"a": "b"}}})
        assert ("name" in change, "name" in change["object"]["metadata"]) == (False, False)
        assert check["name"] == check["object"]["metadata"]["name"] != ""
        collection = await asking.asked("DELETE", f"{MAPS}?labelSelector=a=b")
        assert [each["oldObject"]["metadata"]["name"] for each in collection] == [check["name"]] * 2
        assert not any("name" in each for each in collection)


async def test_who_changes_an_object_may_name_it_but_not_move_it(tmp_path: Path) -> None:
    async with asking_about_maps(tmp_path) as asking:
        asking.hooks.patches["/change"] = [{"op": "add", "path": "/metadata/name", "value": "chosen"}]
        made = await asking.send("POST", MAPS, {"metadata": {"generateName": "a-"}})
        assert made.json["metadata"]["name"] == "chosen"
        asking.hooks.patches["/change"] = [{"op": "add", "path": "/metadata/namespace", "value": "kube-system"}]
        refused = await asking.send("POST", MAPS, {"metadata": {"name": "moved"}})
        assert (refused.code, refused.json["reason"]) == (400, "BadRequest")
        assert "does not match the namespace" in refused.json["message"]


async def test_earlier_rules_come_first_for_other_versions_too() -> None:
    def rule(version: str) -> dict[str, Any]:
        named = {"apiGroups": ["resource.k8s.io"], "apiVersions": [version], "resources": ["deviceclasses"]}
        return {"operations": ["CREATE"], **named}

    async with local_server(with_roles=False) as server, webhook_server() as hooks:
        admin = server.client()
        try:
            for first, second in (("v1beta1", "v1beta2"), ("v1beta2", "v1beta1")):
                rules = [rule(first), rule(second)]
                hook = {"clientConfig": hooks.client(f"/{first}"), "rules": rules}
                await admin.create(webhooks(first, hook))
            await admin.create(
                typed({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "a"}})
            )
            for version in ("v1beta1", "v1beta2"):
                (asked,) = hooks.requests(f"/{version}")
                assert (asked["kind"]["version"], asked["object"]["apiVersion"].partition("/")[2]) == (version, version)
        finally:
            await server.stop()


async def test_selectors_see_what_a_subresource_shows() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        workload = codec.to_builtins(deployment("d"))
        workload["metadata"]["labels"] = {"team": "a"}
        await admin.create(typed(workload))
        rules = [{**EVERYTHING, "resources": ["deployments/scale"]}]
        selector = {"objectSelector": {"matchLabels": {"team": "a"}}}
        await admin.create(policy("p", "false", rules=rules, matchConstraints=selector))
        await admin.create(binding("p"))
        await admin.patch(DEPLOYMENTS, "default", "d", {"spec": {"replicas": 3}}, subresource="scale")  # has no labels


def eviction(name: str) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}


async def test_an_eviction_is_asked_about_as_an_eviction_and_not_as_a_delete() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        for name in ("one", "two"):
            spec = {"containers": [{"name": "c", "image": "i"}]}
            metadata = {"name": name, "namespace": "default"}
            await admin.create(typed({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
        rules = [{**CONFIG_MAPS, "operations": ["DELETE"], "resources": ["pods"]}]
        await admin.create(policy("stay", "false", rules=rules))
        await admin.create(binding("stay"))
        with pytest.raises(ApiError, match="stay"):
            await admin.delete(PODS, "default", "one")
        await admin.post(PODS, "default", "one", "eviction", eviction("one"))
        with pytest.raises(ApiError, match="not found"):
            await admin.get(PODS, "default", "one")
        await admin.create(policy("safe", "false", rules=[{**CONFIG_MAPS, "resources": ["pods/eviction"]}]))
        await admin.create(binding("safe"))
        with pytest.raises(ApiError, match="safe"):
            await admin.post(PODS, "default", "two", "eviction", eviction("two"))

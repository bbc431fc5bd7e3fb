"""Policies and webhooks about custom resources: documents are seen, changed and refused as typed objects are."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from admission_objects import EVERYTHING, binding, mutating_binding, mutating_policy, policy, webhooks
from dray.api.custom import CustomObject
from dray.api.meta import ObjectMeta
from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.server.local import LocalClient
from dray.server.upkeep.policy_type_checks import check_policies
from local_server import LocalServer, local_server, typed
from webhook_server import webhook_server

GROUP = "example.com"
RULES = ({**EVERYTHING, "apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["widgets"]},)
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}, "note": {"type": "string"}}},
    },
}


@contextlib.asynccontextmanager
async def world() -> AsyncIterator[tuple[LocalServer, LocalClient]]:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
        definition = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        await admin.create(typed(kind | {"metadata": {"name": f"widgets.{GROUP}"}, "spec": definition}))
        try:
            yield server, admin
        finally:
            await server.stop()


def widget(name: str, **spec: Any) -> CustomObject:
    meta = ObjectMeta(name=name, namespace="default")
    return CustomObject(kind="Widget", api_version=f"{GROUP}/v1", metadata=meta, content={"spec": spec})


async def test_a_policy_refuses_and_another_changes_them() -> None:
    async with world() as (_, admin):
        await admin.create(policy("p", "object.spec.size < 5 && object.kind == 'Widget'", rules=RULES))
        await admin.create(binding("p"))
        await admin.create(mutating_policy("m", "Object{spec: Object.spec{note: 'seen'}}", rules=RULES))
        await admin.create(mutating_policy("n", "[JSONPatch{op: 'add', path: '/spec/size', value: 4}]", rules=RULES))
        for name in ("m", "n"):
            only = {"resourceRules": [{**RULES[0], "resourceNames": [f"of-{name}"]}]}
            await admin.create(mutating_binding(name, matchResources=only))
        assert (await admin.create(widget("of-m", size=1))).content == {"spec": {"size": 1, "note": "seen"}}
        assert (await admin.create(widget("of-n", size=9))).content == {"spec": {"size": 4}}
        with pytest.raises(ApiError, match=r"widgets.example.com .big. is forbidden: ValidatingAdmissionPolicy"):
            await admin.create(widget("big", size=5))


async def test_a_webhook_changes_them() -> None:
    async with world() as (_, admin), webhook_server() as hooks:
        hooks.patches["/note"] = [{"op": "add", "path": "/spec/note", "value": "patched"}]
        hook = {"clientConfig": hooks.client("/note"), "rules": list(RULES)}
        await admin.create(webhooks("w", hook, mutating=True))
        assert (await admin.create(widget("w", size=1))).content == {"spec": {"size": 1, "note": "patched"}}
        assert hooks.requests("/note")[0]["object"]["spec"] == {"size": 1}
        assert hooks.requests("/note")[0]["kind"] == {"group": GROUP, "version": "v1", "kind": "Widget"}


async def test_their_types_are_checked() -> None:
    async with world() as (server, admin):
        await admin.create(policy("right", "object.spec.size > 1", rules=RULES))
        await admin.create(policy("wrong", "object.spec.size > '1'", rules=RULES))
        await check_policies(server.engine)
        kind = by_kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")
        told = [(await admin.get(kind, "", name)).status.type_checking for name in ("right", "wrong")]  # type: ignore[attr-defined]
        assert told[0].expression_warnings == ()
        assert "example.com/v1, Kind=Widget: " in told[1].expression_warnings[0].warning


async def test_they_can_be_parameters() -> None:
    async with world() as (_, admin):
        await admin.create(widget("limits", size=3))
        kind = {"apiVersion": f"{GROUP}/v1", "kind": "Widget"}
        await admin.create(policy("p", "object.spec.size <= params.spec.size", rules=RULES, paramKind=kind))
        reference = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}
        await admin.create(binding("p", paramRef=reference))
        await admin.create(widget("small", size=3))
        with pytest.raises(ApiError, match="denied request"):
            await admin.create(widget("large", size=4))

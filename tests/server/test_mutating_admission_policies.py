"""MutatingAdmissionPolicies: what expressions make of an object."""

from __future__ import annotations

from typing import Any

import pytest

from admission_objects import CONFIG_MAPS, EVERYTHING, config_map, deployment, mutating_binding, mutating_policy
from dray.api.kinds import DEPLOYMENTS
from dray.api.status import ApiError
from local_server import local_server

LABELS = "Object{metadata: Object.metadata{labels: {'made': 'here'}}}"
SIDECAR = "Object.spec.template.spec.containers{name: 'side', image: 's'}"
APPS = ({**EVERYTHING, "apiGroups": ["apps"], "resources": ["deployments", "deployments/scale"]},)


@pytest.mark.parametrize(
    ("mutations", "data", "labels"),
    [
        ((LABELS,), {"a": "b"}, {"made": "here"}),
        (("Object{data: {'n': string(size(object.data))}}",), {"a": "b", "n": "1"}, {}),
        (("Object{data: {'x': '1'}}", "Object{data: {'y': object.data.x + '2'}}"), {"a": "b", "x": "1", "y": "12"}, {}),
        (("[JSONPatch{op: 'add', path: '/data/x', value: 'y'}]",), {"a": "b", "x": "y"}, {}),
        (
            ("[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a.b'), value: 'y'}]",),
            {"a": "b", "a.b": "y"},
            {},
        ),
        (
            ("[JSONPatch{op: 'test', path: '/data/a', value: 'x'}, JSONPatch{op: 'remove', path: '/data'}]",),
            {"a": "b"},
            {},
        ),
        (("[JSONPatch{op: 'remove', path: '/data/a'}]",), {}, {}),
        (("has(object.data.z) ? [JSONPatch{op: 'remove', path: '/data'}] : []",), {"a": "b"}, {}),
    ],
)
async def test_objects_are_changed(mutations: tuple[str, ...], data: dict[str, str], labels: dict[str, str]) -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        written: list[Any] = [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": each}} if "JSONPatch{" in each else each
            for each in mutations
        ]
        await admin.create(mutating_policy("m", *written))
        await admin.create(mutating_binding("m"))
        made: Any = await admin.create(config_map(a="b"))
        assert (made.data, made.metadata.labels) == (data, labels)


async def test_lists_with_keys_are_merged() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        template = f"Object.spec.template{{spec: Object.spec.template.spec{{containers: [{SIDECAR}]}}}}"
        apply = f"Object{{spec: Object.spec{{template: {template}}}}}"
        only = [{"name": "once", "expression": "!object.spec.template.spec.containers.exists(c, c.name == 'side')"}]
        await admin.create(mutating_policy("m", apply, rules=APPS[:1], matchConditions=only))
        await admin.create(mutating_binding("m"))
        made: Any = await admin.create(deployment("d"))
        assert {container.name: container.image for container in made.spec.template.spec.containers} == {
            "main": "image",
            "side": "s",
        }
        assert made.spec.template.spec.containers[1].termination_message_path  # with the defaults of its kind


async def test_a_scale_is_changed_as_a_scale() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        await admin.create(deployment("d"))
        most = "Object{spec: Object.spec{replicas: object.spec.replicas > 5 ? 5 : object.spec.replicas}}"
        rules = ({**EVERYTHING, "apiGroups": ["apps"], "resources": ["deployments/scale"]},)
        await admin.create(mutating_policy("m", most, rules=rules))
        await admin.create(mutating_binding("m"))
        await admin.patch(DEPLOYMENTS, "default", "d", {"spec": {"replicas": 9}}, subresource="scale")
        found: Any = await admin.get(DEPLOYMENTS, "default", "d")
        assert found.spec.replicas == 5


@pytest.mark.parametrize(
    ("mutation", "why"),
    [
        ("Object{spec: Object.data{}}", 'unexpected type name "Object.data", expected "Object.spec"'),
        ("Object{nothing: 1}", "field not declared in schema"),
        ("Object{data: {'x': object.data.none}}", "no such key: none"),
        ("[JSONPatch{op: 'remove', path: '/data/none'}]", "Unable to remove nonexistent key"),
    ],
)
async def test_what_cannot_be_done_is_up_to_the_failure_policy(mutation: str, why: str) -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        await admin.create(mutating_policy("m", mutation, failurePolicy="Ignore"))
        await admin.create(mutating_binding("m"))
        await admin.create(config_map("ignored", a="b"))
        await admin.create(mutating_policy("strict", mutation, failurePolicy="Fail"))
        await admin.create(mutating_binding("strict"))
        with pytest.raises(ApiError) as failure:
            await admin.create(config_map(a="b"))
        assert str(failure.value).startswith("policy 'strict' with binding 'strict-everywhere' denied request: ")
        assert why in str(failure.value)
        assert (failure.value.code, failure.value.reason) == (403, "Invalid")


async def test_a_patch_that_adds_a_field_that_nobody_knows_is_told_so() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        await admin.create(mutating_policy("p", "[JSONPatch{op: 'add', path: '/unheard', value: 'y'}]"))
        await admin.create(mutating_binding("p"))
        with pytest.raises(ApiError, match='unknown field "unheard"') as refused:
            await admin.create(config_map())
        assert refused.value.code == 500


async def test_nothing_that_has_no_parts_is_replaced_by_one_of_its_fields() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        selector = "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}"
        rules = ({**EVERYTHING, "apiGroups": ["apps"], "resources": ["deployments"]},)
        await admin.create(mutating_policy("m", selector, rules=rules))
        await admin.create(mutating_binding("m"))
        with pytest.raises(ApiError, match=r"may not mutate atomic arrays, maps or structs: .spec.selector"):
            await admin.create(deployment("d"))


async def test_who_wants_sees_what_was_changed_later() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        count = "Object{data: {'seen': string(size(object.data))}}"
        await admin.create(mutating_policy("a", count, reinvocationPolicy="IfNeeded"))
        await admin.create(mutating_policy("b", "Object{data: {'more': 'x'}}"))
        for name in ("a", "b"):
            await admin.create(mutating_binding(name))
        made: Any = await admin.create(config_map(given="x"))
        assert made.data == {"given": "x", "more": "x", "seen": "3"}


async def test_parameters_and_conditions() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        await admin.create(config_map("team", owner="us"))
        kind = {"apiVersion": "v1", "kind": "ConfigMap"}
        apply = "Object{metadata: Object.metadata{labels: {'owner': params.data.owner}}}"
        rules = ({**CONFIG_MAPS, "operations": ["CREATE"]},)
        mine = [{"name": "mine", "expression": "object.metadata.name.startsWith('m')"}]
        await admin.create(mutating_policy("m", apply, rules=rules, paramKind=kind, matchConditions=mine))
        reference = {"name": "team", "parameterNotFoundAction": "Deny"}
        await admin.create(mutating_binding("m", paramRef=reference))
        made: Any = await admin.create(config_map("mine"))
        assert made.metadata.labels == {"owner": "us"}
        other: Any = await admin.create(config_map("other"))
        assert other.metadata.labels == {}


@pytest.mark.parametrize(("parameter", "reason"), [("nobody", "Forbidden"), ("team", "Invalid")])
async def test_a_policy_that_is_not_configured_is_told_from_one_that_fails(parameter: str, reason: str) -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        await admin.create(config_map("team"))
        kind = {"apiVersion": "v1", "kind": "ConfigMap"}
        apply = "Object{metadata: Object.metadata{labels: {'owner': params.data.owner}}}"
        await admin.create(mutating_policy("m", apply, paramKind=kind))
        reference = {"name": parameter, "parameterNotFoundAction": "Deny"}
        await admin.create(mutating_binding("m", paramRef=reference))
        with pytest.raises(ApiError) as failure:
            await admin.create(config_map("mine"))
        assert (failure.value.code, failure.value.reason) == (403, reason)


async def test_a_kind_of_parameters_that_nobody_serves_is_told_once_however_many_bindings_there_are() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        kind = {"apiVersion": "example.com/v1", "kind": "Limit"}
        await admin.create(mutating_policy("p", "Object{}", paramKind=kind))
        for name in ("first", "second"):
            reference = {"name": "x", "parameterNotFoundAction": "Allow"}
            await admin.create(mutating_binding("p", name, paramRef=reference))
        with pytest.raises(ApiError, match="failed to configure policy: failed to find resource") as failure:
            await admin.create(config_map())
        details = failure.value.status.details
        assert details is not None
        assert len(details.causes) == 1

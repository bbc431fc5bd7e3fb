"""ValidatingAdmissionPolicies: who is asked about what, and what comes of it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from unittest.mock import Mock

import pytest

from admission_objects import CONFIG_MAPS, EVERYTHING, binding, config_map, deployment, policy
from dray.admission.type_checking import expression_warnings
from dray.api.kinds import CONFIG_MAPS as KIND
from dray.api.kinds import DEPLOYMENTS, PODS
from dray.api.meta import Object
from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.server.admission import policy_runner
from dray.server.admission.slow_policies import within_time
from dray.server.local import LocalClient
from dray.server.objects import finish
from dray.server.upkeep import policy_type_checks
from dray.server.upkeep.policy_type_checks import check_policies
from dray.server.verbs import writes
from dray.store import Key
from local_server import local_server, typed
from loop_turns import LoopTurns
from server_objects import pod

POLICIES = by_kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")
BINDINGS = by_kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding")


async def denied(client: LocalClient, obj: Object, message: str = "") -> ApiError:
    with pytest.raises(ApiError) as failure:
        await client.create(obj)
    assert message in str(failure.value)
    return failure.value


async def test_a_policy_that_denies_everything_denies_in_the_words_of_kubernetes() -> None:
    async with local_server() as server:
        admin = server.client()
        await admin.create(policy("none", "false", rules=(EVERYTHING,)))
        await admin.create(config_map("before"))  # nobody has bound it
        await admin.create(binding("none"))
        error = await denied(admin, config_map())
        said = (
            "ValidatingAdmissionPolicy 'none' with binding 'none-everywhere' denied request: failed expression: false"
        )
        assert str(error) == f'configmaps "c" is forbidden: {said}'
        assert (error.code, error.reason) == (422, "Invalid")
        details = error.status.details
        assert details is not None
        assert (details.name, details.kind, [cause.message for cause in details.causes]) == ("c", "configmaps", [said])
        with pytest.raises(ApiError, match="denied request"):
            await admin.delete(KIND, "default", "before")
        # Components in the same process are asked about like everybody else; who configures admission is not.
        controller = server.component("root-ca-cert-publisher")
        await denied(controller, config_map("kube-root-ca.crt"), "denied request")
        await admin.delete(POLICIES, "", "none")
        await admin.create(config_map())


OBJECT = {"data": {"size": "3", "who": "me"}}


@pytest.mark.parametrize(
    ("validation", "outcome"),
    [
        ("object.data.size == '3'", None),
        ("int(object.data.size) > 3", "failed expression: int(object.data.size) > 3"),
        ({"expression": "false", "message": " no "}, "denied request: no"),
        ({"expression": "false", "messageExpression": "'not ' + object.metadata.name"}, "denied request: not c"),
        (
            {"expression": "false", "message": "m", "messageExpression": "string(object.data.no)"},
            "denied request: m",
        ),
        ({"expression": "false", "message": "m", "messageExpression": "'a\\nb'"}, "denied request: m"),
        ("object.data.nothing == ''", "resulted in error: no such key: nothing"),
        ("has(object.data.nothing) || oldObject == null", None),
        ("request.operation == 'CREATE' && request.kind.kind == 'ConfigMap' && !has(request.subResource)", None),
        ("request.userInfo.username == 'admin' && 'system:masters' in request.userInfo.groups", None),
        ("request.namespace == 'default' && request.resource.resource == 'configmaps' && !request.dryRun", None),
        ("request.options.kind == 'CreateOptions'", None),
        ("namespaceObject.metadata.name == 'default' && namespaceObject.status.phase == 'Active'", None),
        ("object.kind == 'ConfigMap' && object.apiVersion == 'v1' && !has(object.metadata.labels)", None),
        ("variables.big && variables.size == 3", "denied request: failed"),
        ("variables.broken == 1", 'composited variable "broken" fails to evaluate'),
        ("authorizer.group('').resource('pods').namespace('x').check('create').allowed()", None),
        ("authorizer.requestResource.check('get').allowed()", None),
        ("authorizer.serviceAccount('default', 'x').group('').resource('pods').check('get').allowed()", "denied"),
        ("authorizer.path('/healthz').check('get').allowed()", None),
        ("authorizer.serviceAccount('a', 'B').path('/x').check('get').allowed()", "Invalid service account name"),
    ],
)
async def test_expressions_see_the_request(validation: Any, outcome: str | None) -> None:
    variables = [
        {"name": "size", "expression": "int(object.data.size)"},
        {"name": "big", "expression": "variables.size > 5"},
        {"name": "broken", "expression": "int(object.metadata.name)"},
    ]
    async with local_server(with_roles=False) as server:
        admin = server.client()
        await admin.create(policy("p", validation, variables=variables))
        await admin.create(binding("p"))
        made = config_map(**OBJECT["data"])
        if outcome is None:
            await admin.create(made)
        else:
            await denied(admin, made, outcome)


@pytest.mark.parametrize(("reason", "code"), [("Forbidden", 403), ("RequestEntityTooLarge", 413), ("Invalid", 422)])
async def test_a_validation_has_a_reason(reason: str, code: int) -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        await admin.create(policy("p", {"expression": "false", "reason": reason}))
        await admin.create(binding("p"))
        error = await denied(admin, config_map())
        assert (error.code, error.reason) == (code, reason)


async def test_what_cannot_be_evaluated_is_up_to_the_failure_policy() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        await admin.create(policy("lax", "object.nothing == 1", failurePolicy="Ignore"))
        await admin.create(binding("lax"))
        await admin.create(config_map())
        conditions = [{"name": "wrong", "expression": "object.nothing == 1"}]
        await admin.create(policy("strict", "true", matchConditions=conditions))
        await admin.create(binding("strict"))
        await denied(admin, config_map("d"), "no such key: nothing")


async def test_conditions_decide_whether_a_policy_is_asked() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        only = [
            {"name": "wrong", "expression": "object.nothing == 1"},
            {"name": "mine", "expression": "object.metadata.name.startsWith('a')"},
        ]
        await admin.create(policy("p", "false", matchConditions=only[1:]))
        await admin.create(binding("p"))
        await admin.create(config_map("b"))
        await denied(admin, config_map("a"))
        await admin.create(policy("q", "false", matchConditions=only))
        await admin.create(binding("q"))
        await admin.create(config_map("c"))  # one that is false decides, whatever is wrong with the others


async def test_parameters_are_named_or_selected_and_may_not_be_missing() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        kind = {"apiVersion": "v1", "kind": "ConfigMap"}
        await admin.create(policy("p", "int(object.data.n) <= int(params.data.most)", paramKind=kind))
        reference = {"name": "limits", "namespace": "kube-system", "parameterNotFoundAction": "Deny"}
        await admin.create(binding("p", paramRef=reference))
        missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
        await denied(admin, config_map(n="1"), missing)
        # The parameters are ConfigMaps, too: they are stored before the policy is bound.
        await admin.delete(
            by_kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"), "", "p-everywhere"
        )
        await admin.create(config_map("limits", "kube-system", most="5"))
        await admin.create(binding("p", paramRef=reference))
        await admin.create(config_map(n="5"))
        await denied(admin, config_map("d", n="6"), "failed expression")
        await admin.create(policy("q", "params == null || params.data.no == ''", paramKind=kind))
        selected = {"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Allow"}
        await admin.create(binding("q", paramRef=selected))
        await admin.create(config_map("e", n="1"))


async def test_a_kind_of_parameters_that_nobody_serves_is_the_fault_of_the_policy() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        kind = {"apiVersion": "example.com/v1", "kind": "Limit"}
        await admin.create(policy("p", "true", paramKind=kind))
        await admin.create(binding("p", paramRef={"name": "x", "parameterNotFoundAction": "Allow"}))
        why = "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource"
        await denied(admin, config_map(), f"{why} referenced by paramKind: 'example.com/v1, Kind=Limit'")


async def test_a_selector_that_cannot_be_used_is_the_fault_of_who_has_it() -> None:
    """Validation refuses such a selector today; one that is stored may come from another server."""
    broken = {"objectSelector": {"matchLabels": {"no key": "a"}}}
    stored = {
        POLICIES: policy("p", "true", matchConstraints=broken),
        BINDINGS: binding("q", name="broken", matchResources=broken),
    }
    async with local_server(with_roles=False) as server:
        admin = server.client()
        await admin.create(binding("p"))
        await admin.create(policy("q", "object.metadata.name != 'd'"))
        await admin.create(binding("q"))
        for kind, obj in stored.items():
            await server.store.create(Key(kind.resource, "", obj.metadata.name), finish(obj))
        await denied(admin, config_map(), "Policy 'p' denied request: failed to configure policy: ")
        await admin.create(pod("p"))  # no rule is about pods, whatever selectors say
        await admin.delete(POLICIES, "", "p")
        await denied(
            admin, config_map(), "Policy 'q' with binding 'broken' denied request: failed to configure binding"
        )
        await admin.patch(POLICIES, "", "q", {"spec": {"failurePolicy": "Ignore"}})
        await admin.create(config_map())
        await denied(admin, config_map("d"), "Policy 'q' with binding 'q-everywhere' denied request: failed expression")


async def test_selectors_and_rules_say_what_a_policy_is_about() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        labels = {"kubernetes.io/metadata.name": "default"}
        await admin.create(
            policy(
                "p",
                "false",
                rules=({**CONFIG_MAPS, "resourceNames": ["named"]},),
                matchConstraints={"namespaceSelector": {"matchLabels": labels}},
            )
        )
        await admin.create(binding("p"))
        await admin.create(config_map("other"))
        await admin.create(config_map("named", "kube-system"))
        await denied(admin, config_map("named"))
        await admin.create(
            policy(
                "q",
                "false",
                matchConstraints={
                    "objectSelector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]},
                    "excludeResourceRules": [{**CONFIG_MAPS, "operations": ["UPDATE"]}],
                },
            )
        )
        await admin.create(binding("q"))
        labelled = typed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "l", "namespace": "default"}})
        await admin.create(labelled)
        await admin.patch(KIND, "default", "l", {"metadata": {"labels": {"x": "y"}}})


async def test_bindings_warn_and_note_instead_of_denying() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        notes = [
            {"key": "who", "valueExpression": "request.userInfo.username"},
            {"key": "none", "valueExpression": "null"},
        ]
        await admin.create(policy("p", {"expression": "false", "message": "no"}, auditAnnotations=notes))
        await admin.create(binding("p", "Warn", "Audit"))
        route = admin._call("create", KIND, "default")
        await writes.create(server.engine, route, config_map())
        said = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p-everywhere': no"
        assert route.warnings == [said]
        assert route.annotations["p/who"] == "admin"
        failure = route.annotations["validation.policy.admission.k8s.io/validation_failure"]
        assert failure == (
            '[{"message":"no","policy":"p","binding":"p-everywhere","expressionIndex":0,'
            '"validationActions":["Warn","Audit"]}]'
        )


async def test_an_expression_that_takes_long_holds_up_nobody_else() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        slow = "lists.range(150).all(x, lists.range(150).all(y, x + y >= 0 && object.metadata.name != ''))"
        await admin.create(policy("p", slow, "authorizer.path('/healthz').check('get').allowed()"))
        await admin.create(binding("p"))
        await admin.create(config_map())  # what a first request waits for is made now
        turns = LoopTurns(asyncio.get_running_loop())
        await admin.create(config_map("other"))
    assert turns.longest < 0.02


async def test_what_is_posted_to_a_subresource_is_asked_about() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        rules = ({**EVERYTHING, "resources": ["pods/binding", "pods/eviction", "deployments/scale"]},)
        first = "request.subResource != 'binding' || (object.kind == 'Binding' && object.target.name == 'good')"
        second = "request.kind.kind != 'Scale' || object.spec.replicas < 3"
        third = "request.kind.kind != 'Eviction' || request.name != 'p'"
        await admin.create(policy("p", first, second, third, rules=rules))
        await admin.create(binding("p"))
        await admin.create(pod("p"))
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "bad"}}
        with pytest.raises(ApiError, match=r"pods .p. is forbidden: Validating.*binding"):
            await admin.post(PODS, "default", "p", "binding", body)
        await admin.post(PODS, "default", "p", "binding", body | {"target": {"name": "good"}})
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        with pytest.raises(ApiError, match=r"denied request.*Eviction"):
            await admin.post(PODS, "default", "p", "eviction", eviction)
        await admin.create(deployment("d"))
        await admin.patch(DEPLOYMENTS, "default", "d", {"spec": {"replicas": 2}}, subresource="scale")
        with pytest.raises(ApiError, match="denied request"):
            await admin.patch(DEPLOYMENTS, "default", "d", {"spec": {"replicas": 3}}, subresource="scale")


APPS = ({**EVERYTHING, "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]},)


async def test_types_are_checked_into_the_status() -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        wrong = {"expression": "object.spec.replicas > '1'", "messageExpression": "'got ' + object.spec.replicas"}
        variables = [{"name": "name", "expression": "object.metadata.name"}]
        right = "object.spec.replicas > 1 && variables.name != '' && object.spec.template.spec.containers[0].name != ''"
        await admin.create(policy("right", right, rules=APPS, variables=variables))
        await admin.create(policy("wrong", wrong, "object.spec.replica == 1", rules=APPS))
        await admin.create(policy("anything", "object.x == 1", rules=(EVERYTHING,)))
        await check_policies(server.engine)
        for name in ("right", "anything"):
            found: Any = await admin.get(POLICIES, "", name)
            assert found.status.type_checking.expression_warnings == ()
            assert found.status.observed_generation == 1
        told: Any = await admin.get(POLICIES, "", "wrong")
        warnings = told.status.type_checking.expression_warnings
        assert [warning.field_ref for warning in warnings] == [
            "spec.validations[0].expression",
            "spec.validations[0].messageExpression",
            "spec.validations[1].expression",
        ]
        assert "apps/v1, Kind=Deployment: " in warnings[0].warning
        assert "found no matching overload for '_>_' applied to '(int, string)'" in warnings[0].warning
        assert "found no matching overload for '_+_' applied to '(string, int)'" in warnings[1].warning
        assert "undefined field 'replica'" in warnings[2].warning


async def test_a_policy_is_not_told_what_was_found_of_another_that_had_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checking, replaced = threading.Event(), threading.Event()

    def slowly(checked: Any, kinds: Any, params: Any) -> Any:
        checking.set()
        replaced.wait()
        return expression_warnings(checked, kinds, params)

    monkeypatch.setattr(policy_type_checks, "expression_warnings", slowly)
    async with local_server() as server:
        admin = server.client()
        await admin.create(policy("p", "object.dataa == {}", rules=(CONFIG_MAPS,)))
        first = asyncio.create_task(check_policies(server.engine))
        await asyncio.to_thread(checking.wait)
        await admin.delete(POLICIES, "", "p")
        await admin.create(policy("p", "object.data == {}", rules=(CONFIG_MAPS,)))
        replaced.set()
        await first
        found: Any = await admin.get(POLICIES, "", "p")
        assert found.status.type_checking is None
        await check_policies(server.engine)
        found = await admin.get(POLICIES, "", "p")
        assert found.status.type_checking.expression_warnings == ()


async def test_however_many_wait_for_expressions_that_take_long_nobody_is_refused_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluated = Mock(wraps=within_time)
    monkeypatch.setattr(policy_runner, "within_time", evaluated)
    async with local_server() as server:
        admin = server.client()
        slow = "lists.range(30).all(x, lists.range(30).all(y, x + y >= 0 && object.metadata.name != ''))"
        await admin.create(policy("p", slow))
        await admin.create(binding("p"))
        made = await asyncio.gather(*(admin.create(config_map(f"c-{number}")) for number in range(70)))
        assert len(made) == 70
        assert evaluated.call_count == 70, "they did not take long"


@pytest.mark.parametrize(("data", "said"), [({"a": "3"}, "found 3"), ({"b": "3"}, "found none")])
async def test_a_variable_may_hold_a_value_that_may_be_missing(data: dict[str, str], said: str) -> None:
    async with local_server(with_roles=False) as server:
        admin = server.client()
        rule = {
            "expression": "!variables.found.hasValue() && false",
            "messageExpression": "'found ' + variables.found.optMap(x, string(x)).orValue('none')",
        }
        variables = [{"name": "found", "expression": "object.data[?'a']"}]
        await admin.create(policy("p", rule, variables=variables))
        await admin.create(binding("p"))
        await denied(admin, config_map(**data), said)

"""The rules for the spec of ResourceClaims and ResourceClaimTemplates, and for DeviceClasses."""

from __future__ import annotations

from typing import Any

import pytest

import builders
from dray import validation
from dray.api.times import Time
from dray.cel.derived import derived_cost

EXACTLY = "spec.devices.requests[0].exactly"


def a_claim(*requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    return builders.claim("claim", *requests, **devices)


def request(name: str = "gpu", **exactly: Any) -> dict[str, Any]:
    return builders.request(name, **{"deviceClassName": "gpu.example.com", **exactly})


def selector(expression: str) -> dict[str, Any]:
    return {"cel": {"expression": expression}}


def subrequest(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "deviceClassName": "gpu.example.com", **more}


@pytest.mark.req("4381-40", "4381-96")
def test_a_claim_may_ask_for_nothing(verdict: Any) -> None:
    assert verdict(a_claim()) == set()


@pytest.mark.req("4381-41")
def test_how_many_requests_constraints_and_configs(verdict: Any) -> None:
    config = {"opaque": {"driver": "gpu.example.com", "parameters": {}}}
    constraint = {"matchAttribute": "example.com/numa"}
    requests = [request(f"r{number}") for number in range(33)]
    assert verdict(a_claim(*requests[:32])) == set()
    assert verdict(a_claim(*requests)) == {("TooMany", "spec.devices.requests")}
    assert verdict(a_claim(config=[config] * 32, constraints=[constraint] * 32)) == set()
    assert verdict(a_claim(config=[config] * 33)) == {("TooMany", "spec.devices.config")}
    assert verdict(a_claim(constraints=[constraint] * 33)) == {("TooMany", "spec.devices.constraints")}


@pytest.mark.req("4381-42")
def test_request_names(verdict: Any) -> None:
    assert verdict(a_claim(request("GPU"))) == {("Invalid", "spec.devices.requests[0].name")}
    assert verdict(a_claim(request("a.b"))) == {("Invalid", "spec.devices.requests[0].name")}
    assert verdict(a_claim(request("a"), request("a"))) == {("Duplicate", "spec.devices.requests[1]")}


@pytest.mark.req("SVS-41")
def test_exactly_or_first_available(verdict: Any) -> None:
    path = "spec.devices.requests[0]"
    assert verdict(a_claim({"name": "a"})) == {("Required", path)}
    both = {**request("a"), "firstAvailable": [subrequest("s")]}
    assert verdict(a_claim(both)) == {("Invalid", path)}
    assert verdict(a_claim({"name": "a", "firstAvailable": [subrequest("s"), subrequest("s")]})) == {
        ("Duplicate", f"{path}.firstAvailable[1]")
    }
    many = [subrequest(f"s{number}") for number in range(9)]
    assert verdict(a_claim({"name": "a", "firstAvailable": many})) == {("TooMany", f"{path}.firstAvailable")}


@pytest.mark.req("SVS-41")
def test_who_says_two_things_still_has_to_spell_them_right(verdict: Any) -> None:
    """Which one is meant decides on the rest of the rules."""
    path = "spec.devices.requests[0]"
    wrong = {"allocationMode": "Some", "tolerations": [{"key": "a b", "operator": "Some", "effect": "Some"}]}
    many = [selector("1")] * 33

    def judge(exactly: dict[str, Any], *subrequests: dict[str, Any]) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = verdict(a_claim({**request("a", **exactly), "firstAvailable": list(subrequests)}))
        return found - {("Invalid", path)}

    for place, found in (
        ("exactly", judge(wrong, subrequest("s"))),
        ("firstAvailable[0]", judge({}, subrequest("s", **wrong))),
    ):
        assert found == {
            ("NotSupported", f"{path}.{place}.allocationMode"),
            ("Invalid", f"{path}.{place}.tolerations[0].key"),
            ("NotSupported", f"{path}.{place}.tolerations[0].operator"),
            ("NotSupported", f"{path}.{place}.tolerations[0].effect"),
        }
    assert judge({"selectors": many}, subrequest("s")) == {("TooMany", f"{path}.exactly.selectors")}
    assert judge({}, subrequest("s", deviceClassName="A_")) == {
        ("Invalid", f"{path}.firstAvailable[0].deviceClassName")
    }
    assert judge({}, *[subrequest("s")] * 9) == {("TooMany", f"{path}.firstAvailable")}
    assert judge({"deviceClassName": "A_", "count": -1}, subrequest("S", count=-1)) == set()


@pytest.mark.req("4381-43")
def test_the_class_is_required(verdict: Any, edit: Any) -> None:
    assert verdict(edit(a_claim(request()), {f"{EXACTLY}.deviceClassName": None})) == {
        ("Required", f"{EXACTLY}.deviceClassName")
    }
    assert verdict(a_claim(request(deviceClassName="A B"))) == {("Invalid", f"{EXACTLY}.deviceClassName")}


@pytest.mark.req("4381-44", "4381-49", "4381-50", "4381-51", "4381-83")
def test_selectors(verdict: Any) -> None:
    path = f"{EXACTLY}.selectors"
    good = selector('device.driver == "x"')
    assert verdict(a_claim(request(selectors=[good] * 32))) == set()
    assert verdict(a_claim(request(selectors=[good] * 33))) == {("TooMany", path)}
    assert verdict(a_claim(request(selectors=[{}]))) == {("Required", f"{path}[0].cel")}
    assert verdict(a_claim(request(selectors=[selector("device.driver")]))) == {
        ("Invalid", f"{path}[0].cel.expression")
    }
    assert verdict(a_claim(request(selectors=[selector("device.")]))) == {("Invalid", f"{path}[0].cel.expression")}
    fits, too_long = ("true" + " " * (size - 4) for size in (10 * 1024, 10 * 1024 + 1))
    assert verdict(a_claim(request(selectors=[selector(fits)]))) == set()
    assert verdict(a_claim(request(selectors=[selector(too_long)]))) == {("TooLong", f"{path}[0].cel.expression")}


EXPRESSIONS = [
    'device.driver == "gpu.example.com"',
    'device.attributes["gpu.example.com"].model == "H100"',
    'device.attributes["ext.example.com"].family == "x" && "a" in device.attributes["unknown.example.com"] == false',
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("4G"))',
    'cel.bind(d, device.attributes["gpu.example.com"], d.a && d.b)',
    'device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.2.3"))',
    'has(device.attributes["gpu.example.com"].model) && device.attributes["gpu.example.com"].model == "H100"',
]


@pytest.mark.req("4381-81", "4381-82", "4381-84", "4381-85", "4381-86", "4381-88")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_of_the_documentation_are_accepted(verdict: Any, expression: str) -> None:
    assert verdict(a_claim(request(selectors=[selector(expression)]))) == set()


@pytest.mark.req("4381-51", "4381-87")
def test_an_expression_must_be_cheap(verdict: Any) -> None:
    inner = "true"
    for variable in "abcdef":
        inner = f"[1,2,3,4,5,6,7,8,9,10].all({variable}, {inner})"
    assert verdict(a_claim(request(selectors=[selector(inner)]))) == {
        ("Forbidden", f"{EXACTLY}.selectors[0].cel.expression")
    }


MODES = [
    ({}, set(), ("ExactCount", 1)),
    ({"count": 2}, set(), ("ExactCount", 2)),
    ({"count": 0}, set(), ("ExactCount", 1)),
    ({"count": -1}, {("Invalid", "count")}, ("ExactCount", -1)),
    ({"allocationMode": "All"}, set(), ("All", None)),
    ({"allocationMode": "All", "count": 1}, {("Invalid", "count")}, ("All", 1)),
    ({"allocationMode": "all"}, {("NotSupported", "allocationMode")}, ("all", None)),
    ({"allocationMode": "Some"}, {("NotSupported", "allocationMode")}, ("Some", None)),
]


@pytest.mark.req("4381-45", "4381-46", "4381-47", "4381-250", "4381-263")
@pytest.mark.parametrize(("fields", "expected", "stored"), MODES)
def test_how_many_devices(
    verdict: Any, fields: dict[str, Any], expected: set[tuple[str, str]], stored: tuple[str, int | None]
) -> None:
    claim = a_claim(request(**fields))
    assert verdict(claim) == {(reason, f"{EXACTLY}.{field}") for reason, field in expected}
    exactly = validation.default(claim)["spec"]["devices"]["requests"][0]["exactly"]
    assert (exactly["allocationMode"], exactly.get("count")) == stored


TOLERATIONS = [
    ({"key": "a", "operator": "Exists"}, set()),
    ({"operator": "Exists"}, set()),
    ({"operator": "Equal"}, {("Invalid", "operator")}),
    ({}, {("Invalid", "operator")}),
    ({"key": "a"}, set()),
    ({"key": "a b"}, {("Invalid", "key")}),
    ({"key": "a", "operator": "In"}, {("NotSupported", "operator")}),
    ({"key": "a", "operator": "Exists", "value": "v"}, {("Invalid", "value")}),
    ({"key": "a", "value": "v v"}, {("Invalid", "value")}),
    ({"key": "a", "effect": "NoSchedule"}, set()),
    ({"key": "a", "effect": "NoExecute", "tolerationSeconds": 60}, set()),
    ({"key": "a", "effect": "NoExecute", "tolerationSeconds": 0}, set()),
    ({"key": "a", "effect": "NoExecute", "tolerationSeconds": -1}, set()),
    ({"key": "a", "effect": "None"}, set()),
    ({"key": "a", "effect": "PreferNoSchedule"}, {("NotSupported", "effect")}),
]


@pytest.mark.req(
    "5055-20",
    "5055-23",
    "5055-24",
    "5055-25",
    "5055-26",
    "5055-27",
    "5055-28",
    "5055-49",
    "5055-142",
    "SVS-18",
    "SVS-19",
)
@pytest.mark.parametrize(("toleration", "expected"), TOLERATIONS)
def test_tolerations(verdict: Any, toleration: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    exact = a_claim(request(tolerations=[toleration]))
    assert verdict(exact) == {(reason, f"{EXACTLY}.tolerations[0].{field}") for reason, field in expected}
    sub = a_claim({"name": "a", "firstAvailable": [subrequest("s", tolerations=[toleration])]})
    path = "spec.devices.requests[0].firstAvailable[0].tolerations[0]"
    assert verdict(sub) == {(reason, f"{path}.{field}") for reason, field in expected}


@pytest.mark.req("5055-21", "5055-22", "SVS-15", "SVS-17")
def test_how_many_tolerations(verdict: Any, edit: Any) -> None:
    toleration = {"key": "a", "operator": "Exists"}
    assert verdict(a_claim(request(tolerations=[toleration] * 16))) == set()
    assert verdict(a_claim(request(tolerations=[toleration] * 17))) == {("TooMany", f"{EXACTLY}.tolerations")}
    assert verdict(a_template(request(tolerations=[toleration]))) == set()
    template = a_template(request(tolerations=[toleration] * 17))
    assert verdict(template) == {("TooMany", "spec.spec.devices.requests[0].exactly.tolerations")}
    stored = a_claim(request(tolerations=[toleration] * 17))
    assert verdict(edit(stored, {"metadata.labels": {"a": "b"}}), stored) == set()


@pytest.mark.req("5055-39", "5055-25")
def test_a_toleration_without_operator_compares_values() -> None:
    for obj, path in (
        (a_claim(request(tolerations=[{"key": "a"}])), ()),
        (a_template(request(tolerations=[{"key": "a"}])), ("spec",)),
    ):
        spec = validation.default(obj)["spec"]
        for step in path:
            spec = spec[step]
        assert spec["devices"]["requests"][0]["exactly"]["tolerations"] == [{"key": "a", "operator": "Equal"}]


CONSTRAINTS = [
    ({"matchAttribute": "example.com/numa"}, set()),
    ({"distinctAttribute": "example.com/numa"}, set()),
    ({"requests": ["gpu"], "matchAttribute": "example.com/numa"}, set()),
    ({"requests": ["gpu"]}, {("Required", "")}),
    ({"matchAttribute": "numa"}, {("Invalid", ".matchAttribute")}),
    ({"matchAttribute": "example.com/1"}, {("Invalid", ".matchAttribute")}),
    ({"matchAttribute": "Example.com/numa"}, {("Invalid", ".matchAttribute")}),
    ({"matchAttribute": f"example.com/{'a' * 33}"}, {("TooLong", ".matchAttribute")}),
    ({"requests": ["other"], "matchAttribute": "example.com/numa"}, {("Invalid", ".requests[0]")}),
    ({"requests": ["gpu", "gpu"], "matchAttribute": "example.com/numa"}, {("Duplicate", ".requests[1]")}),
]


@pytest.mark.req("4381-30", "4381-53", "4381-54", "SVS-47")
@pytest.mark.parametrize(("constraint", "expected"), CONSTRAINTS)
def test_constraints(verdict: Any, constraint: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    found = verdict(a_claim(request(), constraints=[constraint]))
    assert found == {(reason, f"spec.devices.constraints[0]{field}") for reason, field in expected}


def test_references_to_subrequests(verdict: Any) -> None:
    requests = {"name": "a", "firstAvailable": [subrequest("s")]}

    def judge(name: str) -> set[str]:
        constraint = {"requests": [name], "matchAttribute": "example.com/numa"}
        return {reason for reason, _ in verdict(a_claim(requests, constraints=[constraint]))}

    assert judge("a") == judge("a/s") == set()
    assert judge("a/t") == judge("a/s/t") == judge("b/s") == {"Invalid"}


CONFIGS = [
    ({"opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}, set()),
    ({"requests": ["gpu"], "opaque": {"driver": "gpu.example.com", "parameters": {}}}, set()),
    ({"requests": ["x"], "opaque": {"driver": "gpu.example.com", "parameters": {}}}, {("Invalid", ".requests[0]")}),
    ({}, {("Required", ".opaque")}),
    ({"opaque": {"driver": "", "parameters": {}}}, {("Required", ".opaque.driver")}),
    ({"opaque": {"driver": "a" * 64, "parameters": {}}}, {("TooLong", ".opaque.driver")}),
    ({"opaque": {"driver": "gpu.example.com"}}, {("Required", ".opaque.parameters")}),
    ({"opaque": {"driver": "gpu.example.com", "parameters": [1]}}, {("Invalid", ".opaque.parameters")}),
    ({"opaque": {"driver": "gpu.example.com", "parameters": {"a": "b" * 10_232}}}, set()),
    ({"opaque": {"driver": "gpu.example.com", "parameters": {"a": "b" * 10_233}}}, {("TooLong", ".opaque.parameters")}),
]


@pytest.mark.req("4381-56", "4381-57", "4381-99", "SVS-45")
@pytest.mark.parametrize(("config", "expected"), CONFIGS)
def test_configuration(verdict: Any, config: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    found = verdict(a_claim(request(), config=[config]))
    assert found == {(reason, f"spec.devices.config[0]{field}") for reason, field in expected}


@pytest.mark.req("4381-37")
def test_the_spec_of_a_claim_never_changes(verdict: Any, edit: Any) -> None:
    claim = a_claim(request())
    assert verdict(edit(claim, {f"{EXACTLY}.count": 2}), claim) == {("Invalid", "spec")}
    assert verdict(edit(claim, {"metadata.labels": {"a": "b"}}), claim) == set()


@pytest.mark.req("4381-38")
def test_a_status_given_at_creation_is_dropped() -> None:
    claim = a_claim(request())
    claim["status"] = {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}
    assert validation.validate(claim) == []
    given: Any = validation.documents.read(claim)[2]
    kept = validation.rules_for(given).prepare_create(given, validation.Context(now=Time("2026-06-01T12:00:00Z")))
    assert (len(given.status.reserved_for), len(kept.status.reserved_for)) == (1, 0)


def admin_errors(namespaced_labels: dict[str, str] | None) -> list[str]:
    hub = validation.documents.read(a_claim(request(adminAccess=True)))[2]
    ctx = validation.Context(now=Time("2026-06-01T12:00:00Z"), namespace_labels=namespaced_labels)
    hub = validation.default_object(hub, ctx.now)
    return [error.field for error in validation.validate_create(hub, ctx)]


@pytest.mark.req("4381-48", "SVS-42")
def test_admin_access_needs_a_marked_namespace() -> None:
    assert admin_errors({}) == ["spec.devices.requests[0].adminAccess"]
    assert admin_errors({"resource.kubernetes.io/admin-access": "yes"}) == ["spec.devices.requests[0].adminAccess"]
    assert admin_errors({"resource.kubernetes.io/admin-access": "true"}) == []
    assert admin_errors(None) == []


@pytest.mark.req("5055-148")
def test_seconds_that_do_not_count_are_warned_about() -> None:
    tolerations = [
        {"key": "a", "operator": "Exists", "tolerationSeconds": 5},
        {"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5},
        {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
    ]
    claim = validation.documents.read(a_claim(request(tolerations=tolerations)))[2]
    found = validation.warnings(claim)
    assert [warning.split(":")[0] for warning in found] == [
        f"{EXACTLY}.tolerations[0].tolerationSeconds",
        f"{EXACTLY}.tolerations[1].tolerationSeconds",
    ]
    assert all("NoExecute" in warning for warning in found)


def a_template(*requests: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return builders.claim_template("template", *requests, meta=metadata)


@pytest.mark.req("4381-69", "4381-70", "4381-71")
def test_templates(verdict: Any, edit: Any) -> None:
    assert verdict(a_template(request(), labels={"a": "b"}, annotations={"c": "d"})) == set()
    assert verdict(a_template(request(), name="x")) == {("Forbidden", "spec.metadata.name")}
    assert verdict(a_template(request(), uid="x")) == {("Forbidden", "spec.metadata.uID")}  # as Kubernetes spells it
    assert verdict(a_template(request(), finalizers=["a/b"])) == {("Forbidden", "spec.metadata.finalizers")}
    assert verdict(a_template(request(), labels={"a b": ""})) == {("Invalid", "spec.metadata.labels")}
    assert verdict(a_template({"name": "a"})) == {("Required", "spec.spec.devices.requests[0]")}
    template = a_template(request())
    changed = edit(template, {"spec.spec.devices.requests[0].exactly.count": 2})
    assert verdict(changed, template) == {("Invalid", "spec")}


def a_class(**spec: Any) -> dict[str, Any]:
    return builders.device_class("gpu.example.com", **spec)


@pytest.mark.req("4381-62", "4381-63", "4381-97")
def test_classes(verdict: Any) -> None:
    config = {"opaque": {"driver": "gpu.example.com", "parameters": {}}}
    assert verdict(a_class()) == set()
    assert verdict(a_class(selectors=[selector("true")], config=[config] * 32)) == set()
    assert verdict(a_class(selectors=[selector("true")] * 33)) == {("TooMany", "spec.selectors")}
    assert verdict(a_class(config=[config] * 33)) == {("TooMany", "spec.config")}
    assert verdict(a_class(config=[{}])) == {("Required", "spec.config[0].opaque")}
    assert verdict(a_class(extendedResourceName="gpu")) == {("Invalid", "spec.extendedResourceName")}
    assert verdict(a_class(extendedResourceName="example.com/gpu")) == set()


@pytest.mark.req("4381-52", "4381-62")
def test_a_stored_expression_is_not_judged_again(verdict: Any, edit: Any) -> None:
    """What an older server accepted must not stand in the way of an unrelated change."""
    stored = a_class(selectors=[selector("no longer an expression")])
    assert verdict(edit(stored, {"metadata.labels": {"a": "b"}}), stored) == set()
    reordered = a_class(selectors=[selector("true"), selector("no longer an expression")])
    assert verdict(reordered, stored) == {("Invalid", "spec.selectors[1].cel.expression")}


@pytest.mark.req("X-09", "SVS-33")
def test_v1beta1_requests_are_flat(verdict: Any) -> None:
    flat = a_claim({"name": "a", "deviceClassName": "A", "tolerations": [{"key": "a b"}], "selectors": [{}]})
    flat["apiVersion"] = "resource.k8s.io/v1beta1"
    assert verdict(flat) == {
        ("Invalid", f"{EXACTLY}.deviceClassName"),
        ("Required", f"{EXACTLY}.selectors[0].cel"),
        ("Invalid", "spec.devices.requests[0].tolerations[0].key"),
    }


def derived(*expressions: str, name: str = "gpu.example.com/x") -> dict[str, Any]:
    requests = [
        request(f"r{index}", derivedAttributes=[{"name": name, "expression": each}])
        for index, each in enumerate(expressions)
    ]
    return a_claim(*requests, constraints=[{"matchAttribute": "gpu.example.com/x"}])


@pytest.mark.parametrize(
    "expression",
    [
        "device.driver",
        "true",
        "1",
        '["a"]',
        "[]",
        'semver("1.0.0")',
        '[semver("1.0.0")]',
        "dyn(1)",
        'device.attributes["a.example.com"].model',
        'device.attributes["a.example.com"].?model.orValue("")',
    ],
)
def test_derived_attributes_are_what_constraints_compare(verdict: Any, expression: str) -> None:
    assert verdict(derived(expression)) == set()


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("device.driver ==", "Invalid"),
        ("nothing", "Invalid"),
        ("device", "Invalid"),
        ('device.attributes["a.example.com"]', "Invalid"),
        ('device.attributes["a.example.com"].?model', "Invalid"),
        ('device.capacity["a.example.com"].memory', "Invalid"),
        ('[quantity("1")]', "Invalid"),
        ("[[1]]", "Invalid"),
        ("1.5", "Invalid"),
        ("1u", "Invalid"),
        ('b"x"', "Invalid"),
        ("null", "Invalid"),
        ("(" * 300 + "1" + ")" * 300, "Invalid"),
        ('"' + "x" * 10 * 1024 + '"', "TooLong"),
        (
            f"{list(range(40))}.map(a, {list(range(40))}.map(b, {list(range(40))}.map(c, a * b * c)))[0][0][0]",
            "Forbidden",
        ),
    ],
)
def test_derived_attributes_that_nobody_could_derive(verdict: Any, expression: str, reason: str) -> None:
    """Recorded from Kubernetes 1.37, which compiles them as it does selectors."""
    assert verdict(derived(expression)) == {(reason, f"{EXACTLY}.derivedAttributes[0].expression")}
    sub = subrequest("s", derivedAttributes=[{"name": "gpu.example.com/x", "expression": expression}])
    constraints = [{"matchAttribute": "gpu.example.com/x"}]
    path = "spec.devices.requests[0].firstAvailable[0].derivedAttributes[0].expression"
    assert verdict(a_claim({"name": "r", "firstAvailable": [sub]}, constraints=constraints)) == {(reason, path)}


def test_all_derived_attributes_of_a_claim_cost_no_more_than_one_selector(verdict: Any) -> None:
    one = f"{list(range(100))}.map(a, {list(range(100))}.map(b, a * b))[0][0]"
    many = derived_cost(one) * 20 // 1_000_000
    assert 1 <= many < 20
    assert verdict(derived(one)) == set()
    assert verdict(derived(*[one] * 20)) == {("Forbidden", "spec.devices")}

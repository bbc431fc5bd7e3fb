"""What is wrong with a definition: Kubernetes' reasons at Kubernetes' paths."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dray.api import codec
from dray.api.generated.apiextensions import CustomResourceDefinition
from dray.api.times import Time
from dray.custom.definition_rules import rules
from dray.custom.kinds import version_order
from dray.validation import Context

NOW = Time.parse("2026-01-01T00:00:00Z")
CONTEXT = Context(now=NOW, more=lambda: 1_000_000)
GOOD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
                    }
                },
            }
        ],
    },
}
RULES = rules(lambda: ())
VERSION = "spec.versions[0]"
SPEC = "spec.validation.openAPIV3Schema.properties[spec]"
A = f"{SPEC}.properties[a]"


def changed(path: str, value: Any) -> dict[str, Any]:
    """The good definition with another value at a path: names and indexes with slashes between them."""
    document = copy.deepcopy(GOOD)
    place: Any = document
    *steps, last = path.split("/")
    for step in steps:
        place = place[int(step)] if step.isdigit() else place.setdefault(step, {})
    place[last] = value
    return document


def typed(document: dict[str, Any]) -> CustomResourceDefinition:
    reading = codec.read(document, CustomResourceDefinition)
    assert reading.obj is not None, reading.errors
    return reading.obj


def prepared(document: dict[str, Any]) -> Any:
    """As the server would store it; nobody has given it a revision, which is the first that updates complain of."""
    return RULES.prepare_create(RULES.default(typed(document), NOW), CONTEXT)


def wrong(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(error.reason, error.field) for error in RULES.validate_create(prepared(document), CONTEXT)]


def test_a_good_definition_is_completed() -> None:
    found = prepared(GOOD)
    assert wrong(GOOD) == []
    assert (found.spec.names.singular, found.spec.names.list_kind) == ("widget", "WidgetList")
    assert found.spec.conversion.strategy == "None"
    assert found.status.stored_versions == ("v1",)


V, S, F = (
    "spec/versions/0",
    "spec/versions/0/schema/openAPIV3Schema",
    "spec/versions/0/schema/openAPIV3Schema/properties",
)


@pytest.mark.parametrize(
    ("path", "value", "reason", "field"),
    [
        ("metadata/name", "gadgets.example.com", "Invalid", "metadata.name"),
        ("spec/scope", "World", "NotSupported", "spec.scope"),
        ("spec/names/kind", "Wid get", "Invalid", "spec.names.kind"),
        ("spec/names/listKind", "Widget", "Invalid", "spec.names.listKind"),
        ("spec/names/shortNames", ["UP"], "Invalid", "spec.names.shortNames[0]"),
        ("spec/preserveUnknownFields", True, "Invalid", "spec.preserveUnknownFields"),
        (f"{V}/storage", False, "Invalid", "spec.versions"),
        (f"{V}/name", "V1", "Invalid", f"{VERSION}.name"),
        (f"{V}/schema", {}, "Required", f"{VERSION}.schema.openAPIV3Schema"),
        (f"{V}/deprecationWarning", "old", "Invalid", f"{VERSION}.deprecationWarning"),
        (
            f"{V}/subresources",
            {"scale": {"specReplicasPath": ".status.a", "statusReplicasPath": ".status.b"}},
            "Invalid",
            "spec.subresources.scale.specReplicasPath",
        ),
        (
            f"{V}/additionalPrinterColumns",
            [{"name": "A", "type": "text", "jsonPath": ".a"}],
            "Invalid",
            "spec.additionalPrinterColumns[0].type",
        ),
        (f"{V}/selectableFields", [{"jsonPath": ".spec.b"}], "Invalid", "spec.selectableFields[0].jsonPath"),
        ("spec/conversion", {"strategy": "Magic"}, "NotSupported", "spec.conversion.strategy"),
        (f"{S}/type", "string", "Invalid", "spec.validation.openAPIV3Schema.type"),
        (f"{S}/additionalProperties", True, "Forbidden", "spec.validation.openAPIV3Schema.additionalProperties"),
        (f"{S}/nullable", True, "Forbidden", "spec.validation.openAPIV3Schema.nullable"),
        (
            f"{F}/metadata",
            {"type": "object", "properties": {"labels": {"type": "object"}}},
            "Forbidden",
            "spec.validation.openAPIV3Schema.properties[metadata]",
        ),
        (f"{F}/spec/properties/a", {"type": "text"}, "NotSupported", f"{A}.type"),
        (f"{F}/spec/properties/a", {}, "Required", f"{A}.type"),
        (f"{F}/spec/properties/a", {"type": "array"}, "Required", f"{A}.items"),
        (f"{F}/spec/properties/a", {"type": "string", "pattern": "("}, "Invalid", f"{A}.pattern"),
        (f"{F}/spec/properties/a", {"type": "string", "$ref": "#/x"}, "Forbidden", f"{A}.$ref"),
        (f"{F}/spec/properties/a", {"type": "string", "default": 1}, "TypeInvalid", f"{A}.default"),
        (
            f"{F}/spec/properties/a",
            {"type": "string", "anyOf": [{"type": "string"}]},
            "Forbidden",
            f"{A}.anyOf[0].type",
        ),
        (
            f"{F}/spec/properties/a",
            {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
            "Forbidden",
            f"{A}.uniqueItems",
        ),
        (
            f"{F}/spec/properties/a",
            {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}},
            "Forbidden",
            f"{A}.additionalProperties",
        ),
        (
            f"{F}/spec/properties/a",
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}}},
            },
            "Required",
            f"{A}.items.properties[k].default",
        ),
        (
            f"{F}/spec/properties/a",
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            "Invalid",
            f"{A}.x-kubernetes-preserve-unknown-fields",
        ),
    ],
)
def test_what_is_wrong_is_told_where_it_is(path: str, value: Any, reason: str, field: str) -> None:
    assert (f"FieldValue{reason}", field) in wrong(changed(path, value))


def test_selectable_fields_need_a_schema() -> None:
    document = copy.deepcopy(GOOD)
    document["spec"]["versions"][0] |= {"schema": {}, "selectableFields": [{"jsonPath": ".spec.a"}]}
    assert ("FieldValueInvalid", "spec.selectableFields") in wrong(document)


def test_what_all_versions_say_alike_is_told_once_and_of_the_spec() -> None:
    document = changed(f"{F}/spec/properties/a", {"type": "text"})
    document["spec"]["versions"].append(
        {**copy.deepcopy(document["spec"]["versions"][0]), "name": "v2", "storage": False}
    )
    assert wrong(document) == [("FieldValueNotSupported", f"{A}.type")]
    document["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["description"] = "another"
    inner = "schema.openAPIV3Schema.properties[spec].properties[a].type"
    assert wrong(document) == [("FieldValueNotSupported", f"spec.versions[{index}].{inner}") for index in (0, 1)]


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"type": "string", "enum": ["x"], "default": "y"}, [("NotSupported", "")]),
        (
            {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"], "default": {}},
            [("Required", ".b")],
        ),
        ({"type": "string", "default": "y", "x-kubernetes-validations": [{"rule": "self == 'x'"}]}, [("Invalid", "")]),
        ({"type": "string", "default": "x", "x-kubernetes-validations": [{"rule": "self == 'x'"}]}, []),
    ],
)
def test_a_default_is_judged_as_a_value(schema: dict[str, Any], found: list[tuple[str, str]]) -> None:
    told = wrong(changed(f"{F}/spec/properties/a", schema))
    assert told == [(f"FieldValue{reason}", f"{A}.default{place}") for reason, place in found]


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ([{"rule": "self.a == 1"}], [("Invalid", 0, "rule")]),
        ([{"rule": "self.a == 1"}, {"rule": " "}], [("Required", 1, "rule")]),
        ([{"rule": "true", "fieldPath": ".b"}], [("Invalid", 0, "fieldPath")]),
        ([{"rule": "true", "fieldPath": "a"}], [("Invalid", 0, "fieldPath")]),
        ([{"rule": "true", "fieldPath": ".a"}, {"rule": "true", "fieldPath": "['a']"}], []),
        ([{"rule": "self.namespace == 'x' && self.__namespace__ == 'x'"}], []),
    ],
)
def test_rules_are_compiled_where_all_that_is_written_makes_sense(
    rules: list[dict[str, Any]], found: list[tuple[str, int, str]]
) -> None:
    part = {"a": {"type": "string"}, "namespace": {"type": "string"}}
    schema = {"type": "object", "properties": part, "x-kubernetes-validations": rules}
    told = wrong(changed(f"{F}/spec", schema))
    place = f"{SPEC}.x-kubernetes-validations"
    assert told == [(f"FieldValue{reason}", f"{place}[{index}].{field}") for reason, index, field in found]


def test_groups_of_kubernetes_need_an_approval() -> None:
    document = changed("spec/group", "things.k8s.io")
    document["metadata"]["name"] = "widgets.things.k8s.io"
    assert wrong(document) == [("FieldValueRequired", "metadata.annotations[api-approved.kubernetes.io]")]
    document["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
    assert wrong(document) == []


def test_what_is_served_keeps_its_kind_and_scope() -> None:
    old = prepared(GOOD)
    new = RULES.default(typed(changed("spec/names/kind", "Gadget")), NOW)
    found = RULES.validate_update(RULES.prepare_update(new, old, CONTEXT), old, CONTEXT)
    assert [(error.reason, error.field) for error in found[1:]] == [("FieldValueInvalid", "spec.names.kind")]


def test_a_version_in_which_objects_may_be_stored_stays() -> None:
    old = prepared(GOOD)
    new = RULES.default(typed(changed("spec/versions/0/name", "v2")), NOW)
    found = RULES.validate_update(RULES.prepare_update(new, old, CONTEXT), old, CONTEXT)
    assert [(error.reason, error.field) for error in found[1:]] == [("FieldValueInvalid", "status.storedVersions[0]")]


def test_versions_are_preferred_as_in_kubernetes() -> None:
    names = ["foo1", "v1alpha1", "v10beta3", "v11alpha2", "v2", "v11beta2", "v3beta1", "v10", "v1", "foo10"]
    wanted = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v11alpha2", "v1alpha1", "foo1", "foo10"]
    assert sorted(names, key=version_order) == wanted


def test_patterns_that_take_long_to_compile_are_refused_alone_and_together() -> None:
    large = {"type": "string", "pattern": r"\pL{20}"}
    assert wrong(changed(f"{F}/spec/properties/a", large)) == []
    huge = changed(f"{F}/spec/properties/a", {"type": "string", "pattern": r"\pL{1000}"})
    assert [field for _, field in wrong(huge)] == [f"{A}.pattern"]
    many = wrong(changed(f"{F}/spec/properties", {f"f{number}": large for number in range(30)}))
    assert [field for _, field in many][:1] == [f"{SPEC}.properties[f24].pattern"]

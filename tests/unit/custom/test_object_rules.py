"""What is wrong with custom objects: the causes that kube-apiserver gives, as they were compared with it."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api import codec
from dray.api.custom import CustomObject
from dray.api.generated.apiextensions import CustomResourceSubresourceScale, JSONSchemaProps
from dray.api.times import Time
from dray.custom.definition import Version
from dray.custom.object_rules import CustomRules
from dray.validation import Context, names
from dray.validation.metadata import NameRule

CONTEXT = Context(now=Time.parse("2026-01-01T00:00:00Z"), more=lambda: 1_000_000)
UNCHECKED = ("FieldValueInvalid", "<nil>")
INNER = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
PARTS: dict[str, Any] = {
    "mode": {"type": "string", "enum": ["A", "B"]},
    "either": {"type": "object", "properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "maybe": {"type": "string", "nullable": True, "enum": ["A"]},
    "text": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
    "whole": {"type": "integer"},
    "inner": INNER,
    "inners": {"type": "object", "additionalProperties": INNER},
    "few": {"type": "array", "maxItems": 1, "items": {"type": "string"}},
    "tenths": {"type": "number", "multipleOf": 0.1},
    "needs": {"type": "object", "properties": {"a": {}}, "required": ["a"], "anyOf": [{"required": ["a"]}]},
}


def rules(parts: dict[str, Any], rule: str = "true") -> CustomRules:
    document = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": parts}},
        "x-kubernetes-validations": [{"rule": rule}],
    }
    reading = codec.read(document, JSONSchemaProps)
    assert reading.obj is not None
    scale = CustomResourceSubresourceScale(spec_replicas_path=".spec.replicas", status_replicas_path=".status.replicas")
    version = Version(
        name="v1", schema=reading.obj, columns=(), selectable=(), has_status=False, scale=scale, warning=""
    )
    return CustomRules(namespaced=True, name=NameRule(names.dns_subdomain, None), version=version)


def widget(spec: dict[str, Any], **more: Any) -> CustomObject:
    meta = {"name": "one", "namespace": "default", "resourceVersion": "1"}
    reading = codec.read({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta}, CustomObject)
    assert reading.obj is not None
    return CustomObject(
        api_version="example.com/v1", kind="Widget", metadata=reading.obj.metadata, content={"spec": spec, **more}
    )


def wrong(spec: dict[str, Any], made: CustomRules | None = None, **more: Any) -> list[tuple[str, str]]:
    found = (made or rules(PARTS)).validate_create(widget(spec, **more), CONTEXT)
    return [(error.reason, error.field) for error in found]


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"mode": "C"}, [("FieldValueNotSupported", "spec.mode"), UNCHECKED]),
        ({"mode": 1}, [("FieldValueTypeInvalid", "spec.mode"), ("FieldValueNotSupported", "spec.mode"), UNCHECKED]),
        ({"either": 1}, [("FieldValueTypeInvalid", "spec.either"), UNCHECKED, UNCHECKED]),
        ({"maybe": None}, [("FieldValueNotSupported", "spec.maybe"), UNCHECKED]),
        ({"text": ""}, [("FieldValueInvalid", "spec.text")]),
        ({"text": "12345"}, [("FieldValueTooLong", "spec.text"), UNCHECKED]),
        ({"whole": 3.0}, []),
        ({"whole": 1e30}, [("FieldValueTypeInvalid", "spec.whole"), UNCHECKED]),
        ({"inner": {"apiVersion": "v1"}}, [("FieldValueRequired", "spec.inner.kind"), UNCHECKED]),
        ({"inner": {"apiVersion": "v1", "kind": ""}}, [("FieldValueInvalid", "spec.inner.kind")]),
        (
            {"inner": {"apiVersion": "a/b/c", "kind": "Two Words"}},
            [
                ("FieldValueInvalid", "spec.inner.apiVersion"),
                ("FieldValueInvalid", "spec.inner.kind"),
            ],
        ),
        (
            {"inner": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a/b", "labels": {"-": ""}}}},
            [
                ("FieldValueInvalid", "spec.inner.metadata.name"),
                ("FieldValueInvalid", "spec.inner.metadata.labels"),
            ],
        ),
        ({"inners": {"x y": {"apiVersion": "v1"}}}, [("FieldValueRequired", "spec.inners[x y].kind"), UNCHECKED]),
        (
            {"few": ["a", 1]},
            [
                ("FieldValueTypeInvalid", "spec.few[1]"),
                ("FieldValueTooMany", "spec.few"),
                UNCHECKED,
            ],
        ),
        ({"tenths": 0.3}, []),
        ({"tenths": 0.35}, [("FieldValueInvalid", "spec.tenths")]),
        ({"tenths": 1e30}, [("FieldValueInvalid", "spec.tenths")]),
        ({"needs": {}}, [UNCHECKED, ("FieldValueRequired", "spec.needs.a"), UNCHECKED]),
    ],
)
def test_a_value_is_judged_by_all_that_its_schema_says(spec: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert wrong(spec) == found


def test_a_rule_of_the_whole_object_is_told_of_nowhere() -> None:
    assert wrong({}, rules({}, "self.metadata.name == 'two'")) == [("FieldValueInvalid", "<nil>")]


@pytest.mark.parametrize("number", [-1, 2**31, "three", 1.5])
def test_numbers_of_replicas_are_numbers_that_can_be(number: Any) -> None:
    free = rules({"replicas": {"x-kubernetes-preserve-unknown-fields": True}})
    assert wrong({"replicas": number}, free) == [("FieldValueInvalid", ".spec.replicas")]
    assert wrong({"replicas": 3}, free, status={"replicas": number})[-1] == ("FieldValueInvalid", ".status.replicas")


def test_names_and_metadata_of_embedded_objects_are_judged_although_they_were_so_before() -> None:
    made = rules(PARTS)
    inner = {"apiVersion": "v1", "kind": "Two Words"}
    old = widget({"inner": inner, "text": "old"})
    found = made.validate_update(widget({"inner": inner, "text": "new"}), old, CONTEXT)
    assert found[-1].field == "spec.inner.kind"


BEFORE: dict[str, Any] = {"text": "was here", "mode": "C", "few": ["a", "b"], "needs": {}, "whole": "x"}
"""Wrong in every way that keeps rules from being asked: stored before the schema said so."""


@pytest.mark.parametrize("old", [{name: BEFORE[name]} for name in BEFORE])
def test_what_was_wrong_before_keeps_no_update_from_being_judged(old: dict[str, Any]) -> None:
    made = rules({**PARTS, "n": {"type": "integer"}}, "!has(self.spec.n) || self.spec.n < 3")

    def changed(n: int) -> list[tuple[str, str]]:
        found = made.validate_update(widget({**old, "n": n}), widget({**old, "n": 1}), CONTEXT)
        return [(error.reason, error.field) for error in found]

    assert changed(2) == []
    assert changed(3) == [("FieldValueInvalid", "<nil>")]


def test_what_an_update_brings_keeps_rules_from_being_asked() -> None:
    made = rules(PARTS, "false")
    found = made.validate_update(widget({"mode": "C", "few": []}), widget({"mode": "A"}), CONTEXT)
    assert [(error.reason, error.field) for error in found] == [("FieldValueNotSupported", "spec.mode"), UNCHECKED]


def test_a_list_that_had_something_twice_may_grow() -> None:
    made = rules({"tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}})
    twice, thrice = widget({"tags": ["a", "a"]}), widget({"tags": ["a", "a", "b"]})
    assert made.validate_update(thrice, twice, CONTEXT) == []
    found = made.validate_update(twice, widget({"tags": ["a"]}), CONTEXT)
    assert [(error.reason, error.field) for error in found] == [("FieldValueDuplicate", "spec.tags[1]")]

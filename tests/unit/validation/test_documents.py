"""The public functions: dicts in, verdicts and dicts out, whatever the input."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray import validation
from dray.api import resource
from dray.api.field import FieldError
from dray.api.meta import ObjectMeta

CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}}


def test_typed_objects_are_taken_too() -> None:
    typed = resource.DeviceClass(kind="DeviceClass", api_version="resource.k8s.io/v1", metadata=ObjectMeta(name="c"))
    assert validation.validate(typed) == []
    assert validation.default(typed) == CLASS


BROKEN: list[tuple[Any, str]] = [
    (None, ""),
    ([], ""),
    ("text", ""),
    ({}, "apiVersion"),
    ({"apiVersion": "v1"}, "kind"),
    ({"apiVersion": 1, "kind": "Pod"}, "apiVersion"),
    ({"apiVersion": "v1", "kind": "Nothing"}, "kind"),
    ({"apiVersion": "v9", "kind": "Pod"}, "kind"),
    ({**CLASS, "spec": []}, "spec"),
    ({**CLASS, "spec": {"selectors": {}}}, "spec.selectors"),
    ({**CLASS, "metadata": {"labels": {"a": 1}}}, "metadata.labels[a]"),
]


@pytest.mark.parametrize(("obj", "field"), BROKEN)
def test_what_cannot_be_read_is_an_error_with_its_place(obj: Any, field: str) -> None:
    errors = validation.validate(obj)
    assert field in {error.field for error in errors}
    with pytest.raises(validation.InvalidObjectError):
        validation.default(obj)


@pytest.mark.req("5055-19")
def test_unknown_fields_are_dropped_not_judged() -> None:
    assert validation.validate({**CLASS, "spec": {"no-such-field": 1}}) == []
    assert validation.default({**CLASS, "spec": {"no-such-field": 1}}) == CLASS


def test_input_is_left_alone() -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    copy = {**obj, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    validation.validate(obj)
    validation.default(obj)
    assert obj == copy


def test_defaulting_twice_changes_nothing_more() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}]},
    }
    once = validation.default(pod)
    assert validation.default(once) == once


def test_lone_surrogates_are_an_error_and_no_crash() -> None:
    errors = validation.validate({**CLASS, "metadata": {"name": "a\ud800"}})
    assert errors
    assert all(isinstance(error, FieldError) for error in errors)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(
            st.sampled_from(["devices", "requests", "name", "taints", "exactly", "pool", "attributes", "x", "cel"]),
            children,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(
    st.sampled_from(["ResourceSlice", "ResourceClaim", "DeviceClass", "DeviceTaintRule", "ResourceClaimTemplate"]),
    st.sampled_from(["v1", "v1beta2", "v1beta1"]),
    json_values,
    json_values,
)
def test_any_json_gets_a_verdict(kind: str, version: str, spec: Any, metadata: Any) -> None:
    obj = {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "spec": spec, "metadata": metadata}
    for error in validation.validate(obj):
        assert error.message

"""What has too many parts is refused before they are made, in whatever form it comes."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest

from dray.api import codec, registry
from dray.api.field import FieldError, Reason
from dray.api.generated.apiextensions import CustomResourceDefinition
from dray.api.generated.core import PodSpec
from dray.api.kinds import PODS, WITH_TEMPLATES_OF_PODS
from dray.custom.kinds import CustomKind, kinds_of
from dray.server import errors
from dray.server.bodies import body, parts
from dray.server.bodies.options import WriteOptions
from dray.server.errors import ApiError
from dray.server.routes import Route

CONFIG_MAPS = registry.by_kind("v1", "ConfigMap")


def _pod(count: int) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{}] * (count - 3)}}


def test_as_many_objects_as_may_be_are_taken() -> None:
    most = _pod(parts.MOST_OBJECTS_OF_PODS)
    parts.check(most, PODS)
    parts.check_json(json.dumps(most).encode(), PODS)


@pytest.mark.parametrize("indent", [None, 1])
def test_one_object_more_is_refused(indent: int | None) -> None:
    more = _pod(parts.MOST_OBJECTS_OF_PODS + 1)
    with pytest.raises(ApiError, match="more than 3000 objects") as refused:
        parts.check(more, PODS)
    assert refused.value.code == 413
    with pytest.raises(ApiError, match="more than 3000 objects"):
        parts.check_json(json.dumps(more, indent=indent).encode(), PODS)


def test_values_are_bounded_too() -> None:
    many = json.dumps({"data": {f"k{number}": "" for number in range(parts.MOST_VALUES)}}).encode()
    with pytest.raises(ApiError, match="more than 200000 values"):
        parts.check_json(many, CONFIG_MAPS)


def test_text_that_looks_like_objects_is_text() -> None:
    parts.check_json(json.dumps({"data": {"a": "{,}" * 300_000}}).encode(), CONFIG_MAPS)


def _owned(count: int) -> dict[str, Any]:
    """An object of which so many values are said to be somebody's."""
    entry: dict[str, Any] = {"fieldsV1": {f"f:{number}": {} for number in range(count - 2)}}
    return {"metadata": {"managedFields": [entry]}}


def test_who_set_the_fields_counts_apart() -> None:
    parts.check(_owned(parts.MOST_OWNED), PODS)
    with pytest.raises(ApiError, match=r"more than 100000 values in metadata\.managedFields") as refused:
        parts.check(_owned(parts.MOST_OWNED + 1), PODS)
    assert refused.value.code == 413
    with pytest.raises(ApiError, match=r"more than 100000 values in metadata\.managedFields"):
        parts.check_json(json.dumps(_owned(parts.MOST_VALUES)).encode(), CONFIG_MAPS)


@pytest.mark.parametrize("one", ["fieldsV1", "more"])
@pytest.mark.parametrize("part", [{}, []])
def test_who_set_the_fields_counts_in_whatever_shape(one: str, part: Any) -> None:
    many: list[Any] = [part] * parts.MOST_OWNED
    for managed in ([{one: many}], [many], [part, *many], {one: many}):
        with pytest.raises(ApiError, match=r"metadata\.managedFields"):
            parts.check({"metadata": {"managedFields": managed}}, CONFIG_MAPS)


@pytest.mark.parametrize("path", ["spec", "template", "metadata"])
def test_what_is_named_like_it_elsewhere_counts_like_anything_else(path: str) -> None:
    many: dict[str, Any] = {"managedFields": [{}] * parts.MOST_OBJECTS}
    with pytest.raises(ApiError, match="more than 50000 objects"):
        parts.check({"spec": {path: many}}, CONFIG_MAPS)


_PATCHES = [
    ("application/json-patch+json", b'[{"op":"add","path":"/data","value":[%b]}]'),
    ("application/json-patch+json", b"[%b]"),
    ("application/merge-patch+json", b'{"data":[%b]}'),
    ("application/merge-patch+json", b'{"metadata":{"managedFields":[%b]}}'),
    ("application/strategic-merge-patch+json", b'{"data":[%b]}'),
    ("application/apply-patch+yaml", b'{"data":[%b]}'),
]


@pytest.mark.parametrize(("content_type", "form"), _PATCHES)
def test_patches_are_bounded_where_they_are_read(content_type: str, form: bytes) -> None:
    data = form % b",".join([b"{}"] * (parts.MOST_OWNED + 1))
    with pytest.raises(ApiError) as refused:
        body.read_patch(data, content_type)
    assert refused.value.code == 413


@pytest.mark.parametrize("content_type", ["application/json", "application/yaml"])
def test_whatever_else_is_read_is_bounded_too(content_type: str) -> None:
    """Such as options of a delete, or the part of an object that a subresource is."""
    with pytest.raises(ApiError) as refused:
        body.parse(b'{"spec":[%b]}' % b",".join([b"{}"] * parts.MOST_OBJECTS), content_type)
    assert refused.value.code == 413


@pytest.mark.parametrize("kind", ["ReplicaSet", "Deployment", "DaemonSet", "StatefulSet"])
def test_templates_are_bounded_like_pods(kind: str) -> None:
    assert parts.most_objects(registry.by_kind("apps/v1", kind)) == parts.MOST_OBJECTS_OF_PODS


def test_every_kind_with_a_template_of_a_pod_is_named() -> None:
    assert {kind.kind for kind in registry.kinds() if _holds_pods(kind.type_of(kind.versions[0]), set())} == {
        "Pod",
        *WITH_TEMPLATES_OF_PODS,
    }


def _holds_pods(part: Any, seen: set[type]) -> bool:
    """Whether there is a spec of a pod anywhere in a type."""
    if part is PodSpec:
        return True
    if get_args(part):
        return any(_holds_pods(one, seen) for one in get_args(part))
    if not (isinstance(part, type) and issubclass(part, msgspec.Struct)) or part in seen:
        return False
    seen.add(part)
    return any(_holds_pods(field.type, seen) for field in msgspec.structs.fields(part))


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (b'{"metadata":{"finalizers":[%b]}}' % b",".join([b'""'] * 600), "application/json"),
        (b"metadata: {finalizers: [%b]}" % b",".join([b'""'] * 600), "application/yaml"),
        (b'{"a":' * 600, "application/merge-patch+json"),
        (b"k8s\0" + b"\x12\x00" * 2_100, "application/vnd.kubernetes.protobuf"),
    ],
)
def test_short_bodies_with_many_parts_are_large(data: bytes, content_type: str) -> None:
    assert body.is_large(data, content_type, CONFIG_MAPS)


def test_of_many_problems_the_first_thousand_are_told() -> None:
    problems = [FieldError(Reason.REQUIRED, f"spec.a[{number}]", "Required value") for number in range(2_500)]
    status = errors.invalid(PODS, "p", problems).status
    assert status.details is not None
    assert len(status.details.causes) == errors.MOST_TOLD
    assert status.message.endswith("spec.a[999]: Required value, and 1500 more]")


def _widgets() -> CustomKind:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "x.io", "scope": "Namespaced", "names": names, "versions": [version]}
    document = {"metadata": {"name": "widgets.x.io"}, "spec": spec, "status": {"acceptedNames": names}}
    definition = codec.read(document, CustomResourceDefinition).obj
    assert definition is not None
    return kinds_of(definition)[0]


@pytest.mark.parametrize("content_type", ["application/json", "application/yaml"])
def test_custom_objects_are_bounded_like_built_in_ones(content_type: str) -> None:
    route = Route("create", _widgets(), "v1", "default")

    def decode(count: int) -> Any:
        data = b'{"metadata":{"name":"w"},"spec":[%b]}' % b",".join([b"{}"] * count)
        return body.decode(data, content_type, route, WriteOptions(), [])

    assert decode(100).content["spec"] == [{}] * 100
    with pytest.raises(ApiError, match="more than 50000 objects"):
        decode(parts.MOST_OBJECTS)

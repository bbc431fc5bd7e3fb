"""Strategic merge patches, by the facts of the kinds that we serve."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dray.api import schema
from dray.server.patch import strategic
from dray.server.patch.errors import PatchError

POD = schema.for_kind("", "v1", "Pod")
CLAIM = schema.for_kind("resource.k8s.io", "v1", "ResourceClaim")
RULE = schema.for_kind("resource.k8s.io", "v1", "DeviceTaintRule")
SLICE = schema.for_kind("resource.k8s.io", "v1", "ResourceSlice")


def patched(definition: schema.Definition, document: dict[str, Any], patch: Any) -> dict[str, Any]:
    before = copy.deepcopy((document, patch))
    result = strategic.apply(document, patch, definition)
    assert (document, patch) == before
    return result


def spec(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(containers)}}


def named(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names]


TCP = {"containerPort": 80, "protocol": "TCP"}
UDP = {"containerPort": 80, "protocol": "UDP"}


@pytest.mark.parametrize(
    ("containers", "patch", "expected"),
    [
        pytest.param(named("a", image="1"), named("a", image="2"), named("a", image="2"), id="merged"),
        pytest.param(named("a"), named("b"), named("b", "a"), id="the-patch-goes-first"),
        pytest.param(named("a", "b", "c"), named("c"), named("a", "b", "c"), id="others-keep-their-place"),
        pytest.param(named("a", "b"), named("b", "a"), named("b", "a"), id="in-the-order-of-the-patch"),
        pytest.param(named("a", "b"), [{"name": "a", "$patch": "delete"}], named("b"), id="deleted"),
        pytest.param(named("a"), [{"name": "x", "$patch": "delete"}], named("a"), id="deleting-nothing"),
        pytest.param(named("a", "b"), [{"$patch": "replace"}, *named("c")], named("c"), id="replaced"),
        pytest.param(named("a", image="1", tty=True), named("a", tty=None), named("a", image="1"), id="null-deletes"),
        pytest.param(
            named("a"),
            named("b", tty=None, ports=[{"containerPort": 1, "$patch": "delete"}]),
            [*named("b", ports=[]), *named("a")],
            id="new-elements-are-plain",
        ),
        pytest.param(
            named("a", env=[{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]),
            named("a", env=[{"name": "Y", "value": "3"}]),
            named("a", env=[{"name": "X", "value": "1"}, {"name": "Y", "value": "3"}]),
            id="nested-lists",
        ),
        pytest.param(
            named("a", ports=[TCP, UDP]),
            named("a", ports=[{"containerPort": 80, "hostPort": 1}]),
            named("a", ports=[{**TCP, "hostPort": 1}, UDP]),
            id="the-first-of-several-with-one-key",
        ),
        pytest.param(
            named("a", command=["x", "y"]),
            named("a", command=["z"]),
            named("a", command=["z"]),
            id="atomic-lists-are-replaced",
        ),
    ],
)
def test_lists_of_containers(containers: list[Any], patch: list[Any], expected: list[Any]) -> None:
    assert patched(POD, spec(*containers), spec(*patch)) == spec(*expected)


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"labels": {"a": "1"}}, {"labels": {"b": "2", "a": None}}, {"labels": {"b": "2"}}),
        ({"labels": {"a": "1"}}, {"labels": {"$patch": "replace", "b": "2"}}, {"labels": {"b": "2"}}),
        ({"labels": {"a": "1"}}, {"labels": {"$patch": "delete"}}, {"labels": {}}),
        ({}, {"labels": {"$patch": "replace", "b": "2"}}, {}),
        ({}, {"labels": {"a": None, "b": "2"}}, {"labels": {"b": "2"}}),
        ({"labels": {"a": "1"}}, {"labels": None}, {}),
        ({"finalizers": ["a", "b"]}, {"finalizers": ["c", "a"]}, {"finalizers": ["c", "a", "b"]}),
        ({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a", "x"]}, {"finalizers": ["b"]}),
        ({}, {"$deleteFromPrimitiveList/finalizers": ["a"]}, {}),
        (
            {"finalizers": ["a", "b", "c"]},
            {"$setElementOrder/finalizers": ["c", "d", "a"], "finalizers": ["d"]},
            {"finalizers": ["b", "c", "d", "a"]},
        ),
        (
            {"ownerReferences": [{"uid": "1", "name": "x"}]},
            {"ownerReferences": [{"uid": "1", "controller": True}]},
            {"ownerReferences": [{"uid": "1", "name": "x", "controller": True}]},
        ),
    ],
)
def test_metadata(document: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]) -> None:
    assert patched(POD, {"metadata": document}, {"metadata": patch}) == {"metadata": expected}


@pytest.mark.parametrize(
    ("containers", "order", "given", "expected"),
    [
        (named("a", "b", "c"), named("c", "a", "b"), None, named("c", "a", "b")),
        (named("a", "b", "c"), named("c", "a"), None, named("b", "c", "a")),
        (named("a", "x", "b"), named("n", "b", "a"), named("n"), named("n", "x", "b", "a")),
        (None, named("b", "a"), named("b", "a"), named("b", "a")),
        (named("a", "b"), named("b"), [{"name": "a", "$patch": "delete"}], named("b")),
    ],
)
def test_an_order_of_elements(containers: Any, order: list[Any], given: Any, expected: list[Any]) -> None:
    document = {"spec": {} if containers is None else {"containers": containers}}
    patch = {"spec": {"$setElementOrder/containers": order} | ({} if given is None else {"containers": given})}
    assert patched(POD, document, patch) == {"spec": {"containers": expected}}


def test_retained_keys() -> None:
    document = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    volume = {"name": "v", "hostPath": {"path": "/x"}, "$retainKeys": ["name", "hostPath"]}
    expected = {"name": "v", "hostPath": {"path": "/x"}}
    assert patched(POD, document, {"spec": {"volumes": [volume]}}) == {"spec": {"volumes": [expected]}}


@pytest.mark.req("4381-59")
def test_reservations_of_a_claim_merge_by_uid() -> None:
    reserved = [{"resource": "pods", "name": "p1", "uid": "u1"}, {"resource": "pods", "name": "p2", "uid": "u2"}]
    document = {"status": {"reservedFor": reserved}}
    removed = patched(CLAIM, document, {"status": {"reservedFor": [{"uid": "u1", "$patch": "delete"}]}})
    assert removed == {"status": {"reservedFor": reserved[1:]}}
    third = {"resource": "pods", "name": "p3", "uid": "u3"}
    added = patched(CLAIM, document, {"status": {"reservedFor": [third]}})
    assert added == {"status": {"reservedFor": [third, *reserved]}}


@pytest.mark.req("5055-34")
def test_conditions_of_a_taint_rule_merge_by_type() -> None:
    document = {"status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}}
    patch = {"status": {"conditions": [{"type": "A", "status": "False"}]}}
    expected = {"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "B", "status": "True"}]}}
    assert patched(RULE, document, patch) == expected


@pytest.mark.req("4381-18", "5055-01")
@pytest.mark.parametrize("field", ["devices", "taints", "sharedCounters"])
def test_lists_of_a_slice_are_replaced(field: str) -> None:
    document = {"spec": {field: [{"name": "a"}, {"name": "b"}]}}
    assert patched(SLICE, document, {"spec": {field: [{"name": "c"}]}}) == {"spec": {field: [{"name": "c"}]}}


def test_free_form_objects_may_have_names_like_directives() -> None:
    parameters = {"$schema": "x", "a": 1}
    patch = {"spec": {"devices": {"config": [{"opaque": {"driver": "d", "parameters": parameters}}]}}}
    assert patched(CLAIM, {"spec": {"devices": {}}}, patch) == patch


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ([], 400, "must be an object"),
        (spec({"image": "x"}), 422, "map: map[image:x] does not contain declared merge key: name"),
        (spec({"$patch": "delete"}), 422, "does not contain declared merge key: name"),
        (spec({"name": "a", "$patch": "merge"}), 422, "merging lists cannot yet be specified in the patch"),
        (spec({"name": "a", "$patch": "bogus"}), 422, "unknown patch type: bogus in map: map[$patch:bogus name:a]"),
        ({"spec": {"$patch": "bogus"}}, 422, "unknown patch type: bogus"),
        ({"spec": {"containers": [["a"]]}}, 422, "lists of lists are not supported"),
        ({"spec": {"containers": ["a"]}}, 422, "list element types are not identical"),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}, 400, "invalid patch format of primitive list"),
        ({"metadata": {"$deleteFromPrimitiveList": ["a"]}}, 400, "invalid patch format of primitive list"),
        ({"spec": {"$setElementOrder/containers": "a"}}, 400, "invalid patch format of setElementOrder list"),
        ({"spec": {"$setElementOrder": []}}, 400, "invalid patch format of setElementOrder list"),
        ({"spec": {"$setElementOrder/bogus": []}}, 422, 'unable to find api field "bogus"'),
        ({"spec": {"$setElementOrder/containers": ["a"]}}, 422, "merge key name"),
        ({"spec": {"$retainKeys": "a"}}, 400, "invalid patch format of retainKeys"),
        ({"spec": {"$retainKeys": ["a"], "hostname": "b"}}, 400, "invalid patch format of retainKeys"),
        (
            {"spec": {"$setElementOrder/containers": named("a", "b"), "containers": named("b", "a")}},
            422,
            "doesn't match $setElementOrder list",
        ),
    ],
)
def test_failures(patch: Any, code: int, message: str) -> None:
    with pytest.raises(PatchError) as failure:
        strategic.apply({"metadata": {}, **spec({"name": "a"}, {"name": "z"})}, patch, POD)
    assert failure.value.code == code
    assert message in failure.value.message


@pytest.mark.parametrize(
    "patch",
    [
        spec({"image": "x" * 100_000}),
        spec({f"f{number}": {"a": [number]} for number in range(10_000)}),
        spec({"name": "a", "$patch": "b" * 100_000}),
        {"spec": {"containers": ["a" * 100_000]}},
        {"spec": {"containers": ["a"] * 100_000}},
        {"spec": {"$setElementOrder/containers": ["a" * 100_000]}},
        {"spec": {"$setElementOrder/" + "b" * 100_000: []}},
        {
            "spec": {
                "$setElementOrder/containers": [{"name": str(number)} for number in range(10_000)],
                "containers": [{"name": str(number)} for number in reversed(range(10_000))],
            }
        },
    ],
)
def test_a_patch_that_is_wrong_is_its_senders_mistake_and_is_not_sent_back(patch: Any) -> None:
    """A 500 would count as ours, and what somebody sends would be repeated in answers, logs and audit entries."""
    with pytest.raises(PatchError) as failure:
        strategic.apply({"metadata": {}, **spec({"name": "a"}, {"name": "z"})}, patch, POD)
    assert failure.value.code in (400, 422)
    assert len(failure.value.message) < 2_000


def test_a_patch_may_name_an_element_a_few_times_only() -> None:
    """Each time the element is merged with all that it holds: ten thousand times would stop the server."""
    assert patched(POD, spec({"name": "a"}), spec(*named("a", image="x") * 50)) == spec({"name": "a", "image": "x"})
    with pytest.raises(PatchError, match="names the element name=a more than 50 times") as caught:
        patched(POD, spec({"name": "a"}), spec(*named("a", image="x") * 51))
    assert caught.value.code == 400

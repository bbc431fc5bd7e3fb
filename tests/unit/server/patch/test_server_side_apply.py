"""Server-side apply: merging, ownership, conflicts, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dray.api import schema
from dray.server.patch.apply import apply
from dray.server.patch.errors import ConflictsError, PatchError
from dray.server.patch.fields import FieldSet
from dray.server.patch.managed import Write, track_update

POD = schema.for_kind("", "v1", "Pod")
RULE = schema.for_kind("resource.k8s.io", "v1", "DeviceTaintRule")
SLICE = schema.for_kind("resource.k8s.io", "v1", "ResourceSlice")
CLAIM = schema.for_kind("resource.k8s.io", "v1", "ResourceClaim")

Document = dict[str, Any]


def of_kind(definition: schema.Definition, metadata: Document | None = None, **parts: Any) -> Document:
    gvk = definition.kinds[0]
    api_version = f"{gvk.group}/{gvk.version}" if gvk.group else gvk.version
    return {"apiVersion": api_version, "kind": gvk.kind, "metadata": {"name": "x", **(metadata or {})}, **parts}


class Stored:
    """An object and the managers that write it, one after the other; the clock moves with every write."""

    def __init__(self, definition: schema.Definition, document: Document | None = None) -> None:
        self.definition = definition
        self.document = document
        self._minute = 0

    def _write(self, manager: str, subresource: str) -> Write:
        self._minute += 1
        return Write(self.definition, manager, f"2026-06-01T12:{self._minute:02}:00Z", subresource)

    def apply(self, manager: str, applied: Document, *, force: bool = False, subresource: str = "") -> Stored:
        before = copy.deepcopy((self.document, applied))
        new, managed = apply(self.document, applied, self._write(manager, subresource), force=force)
        assert (self.document, applied) == before
        return self._store(new, managed)

    def update(self, manager: str, new: Document, subresource: str = "") -> Stored:
        return self._store(new, track_update(self.document, new, self._write(manager, subresource)))

    def _store(self, new: Document, managed: list[Document]) -> Stored:
        metadata = {**new["metadata"]} | ({"managedFields": managed} if managed else {})
        self.document = {**new, "metadata": metadata}
        return self

    @property
    def plain(self) -> Document:
        assert self.document is not None
        metadata = {name: value for name, value in self.document["metadata"].items() if name != "managedFields"}
        return {**self.document, "metadata": metadata}

    @property
    def managed(self) -> list[Document]:
        assert self.document is not None
        found: list[Document] = self.document["metadata"].get("managedFields", [])
        return found

    def owned(self, manager: str) -> FieldSet:
        """What the entries of a manager hold; there must be just one."""
        (found,) = (entry["fieldsV1"] for entry in self.managed if entry["manager"] == manager)
        return dict(found)


def labelled(**labels: str) -> Document:
    return of_kind(RULE, {"labels": labels} if labels else {})


TAINT = {"taint": {"key": "example.com/bad", "effect": "NoSchedule"}}


def owns_labels(*names: str) -> FieldSet:
    return {"f:metadata": {"f:labels": {f"f:{name}": {} for name in names}}}


def test_a_rule_through_its_managers() -> None:
    """Created by one manager, contested, taken over by force, and given up."""
    stored = Stored(RULE).apply("m1", labelled(a="1") | {"spec": TAINT})
    assert stored.plain == labelled(a="1") | {"spec": TAINT}
    assert stored.managed == [
        {
            "manager": "m1",
            "operation": "Apply",
            "apiVersion": "resource.k8s.io/v1",
            "time": "2026-06-01T12:01:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": owns_labels("a") | {"f:spec": {"f:taint": {"f:key": {}, "f:effect": {}}}},
        }
    ]
    with pytest.raises(ConflictsError) as failure:
        stored.apply("m2", labelled(a="2"))
    assert failure.value.message == 'Apply failed with 1 conflict: conflict with "m1": .metadata.labels.a'
    assert [(conflict.message, conflict.field) for conflict in failure.value.conflicts] == [
        ('conflict with "m1"', ".metadata.labels.a")
    ]
    stored.apply("m2", labelled(a="2"), force=True)
    assert stored.plain == labelled(a="2") | {"spec": TAINT}
    assert stored.owned("m2") == owns_labels("a")
    assert stored.owned("m1") == {"f:spec": {"f:taint": {"f:key": {}, "f:effect": {}}}}
    stored.apply("m2", labelled())
    assert stored.plain == labelled() | {"spec": TAINT}
    assert [entry["manager"] for entry in stored.managed] == ["m1"]


def test_equal_values_are_shared_and_stay_until_nobody_wants_them() -> None:
    stored = Stored(RULE).apply("m1", labelled(a="1")).apply("m2", labelled(a="1"))
    assert stored.owned("m1") == stored.owned("m2") == owns_labels("a")
    stored.apply("m1", labelled())
    assert stored.plain == labelled(a="1")
    stored.apply("m2", labelled())
    assert stored.plain == labelled()
    assert stored.managed == []


def test_what_somebody_updated_conflicts_too() -> None:
    stored = Stored(RULE).update("m1", labelled(a="1"))
    with pytest.raises(ConflictsError) as failure:
        stored.apply("m2", labelled(a="2"))
    assert failure.value.conflicts[0].message == 'conflict with "m1" using resource.k8s.io/v1'


def test_a_field_that_an_update_took_over_is_not_removed() -> None:
    stored = Stored(RULE).apply("m1", labelled(a="1")).update("m2", labelled(a="2"))
    stored.apply("m1", labelled())
    assert stored.plain == labelled(a="2")


def test_several_conflicts_are_told_by_manager() -> None:
    stored = Stored(RULE).apply("m1", labelled(a="1", b="1")).apply("m3", labelled(c="1"))
    with pytest.raises(ConflictsError) as failure:
        stored.apply("m2", labelled(a="2", b="2", c="2"))
    assert failure.value.code == 409
    assert failure.value.message == (
        'Apply failed with 3 conflicts: conflicts with "m1":\n- .metadata.labels.a\n- .metadata.labels.b\n'
        'conflicts with "m3":\n- .metadata.labels.c'
    )


def test_the_time_moves_only_with_a_change() -> None:
    stored = Stored(RULE).apply("m1", labelled(a="1"))
    first = stored.managed
    assert stored.apply("m1", labelled(a="1")).managed == first
    stored.apply("m1", labelled(a="2"))
    assert stored.managed[0]["time"] == "2026-06-01T12:03:00Z"


def test_an_object_that_nobody_tracked() -> None:
    stored = Stored(RULE, labelled(a="1") | {"spec": TAINT})
    with pytest.raises(ConflictsError) as failure:
        stored.apply("m1", labelled(a="2"))
    assert failure.value.message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using resource.k8s.io/v1: .metadata.labels.a'
    )
    stored.apply("m1", labelled(b="2"))
    assert stored.plain == labelled(a="1", b="2") | {"spec": TAINT}
    assert stored.owned("m1") == owns_labels("b")
    assert stored.owned("before-first-apply") == {
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {"f:taint": {"f:key": {}, "f:effect": {}}},
    }


def containers(*elements: Document) -> Document:
    return of_kind(POD, spec={"containers": list(elements)})


class TestContainers:
    """Lists whose elements merge by key."""

    def test_managers_have_elements_of_their_own(self) -> None:
        stored = Stored(POD).apply("m1", containers({"name": "a", "image": "1"}))
        stored.apply("m2", containers({"name": "b", "image": "2"}))
        assert stored.plain == containers({"name": "a", "image": "1"}, {"name": "b", "image": "2"})
        stored.apply("m1", of_kind(POD))
        assert stored.plain == containers({"name": "b", "image": "2"})

    def test_a_conflict_names_the_element(self) -> None:
        stored = Stored(POD).apply("m1", containers({"name": "a", "image": "1"}))
        with pytest.raises(ConflictsError) as failure:
            stored.apply("m2", containers({"name": "a", "image": "2"}))
        assert failure.value.conflicts == (('"m1"', '.spec.containers[name="a"].image'),)

    def test_fields_of_one_element_have_several_owners(self) -> None:
        stored = Stored(POD).apply("m1", containers({"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}))
        stored.apply("m2", containers({"name": "a", "env": [{"name": "Y", "value": "2"}]}))
        env = [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]
        assert stored.plain == containers({"name": "a", "image": "1", "env": env})
        stored.apply("m1", containers({"name": "a", "image": "1"}))
        assert stored.plain == containers({"name": "a", "image": "1", "env": env[1:]})

    def test_an_absent_key_has_its_default(self) -> None:
        stored = Stored(POD).apply("m1", containers({"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}))
        stored.apply("m2", containers({"name": "a", "ports": [{"containerPort": 80, "hostPort": 8}]}))
        ports = [{"containerPort": 80, "protocol": "TCP", "hostPort": 8}]
        assert stored.plain == containers({"name": "a", "ports": ports})

    def test_an_element_goes_with_what_was_defaulted_in_it(self) -> None:
        stored = Stored(POD).apply("m1", containers({"name": "a"}, {"name": "b"}))
        assert stored.document is not None
        stored.document["spec"]["containers"][0]["imagePullPolicy"] = "Always"
        stored.apply("m1", containers({"name": "b"}))
        assert stored.plain == containers({"name": "b"})

    @pytest.mark.parametrize(
        ("live", "applied", "expected"),
        [
            ("abc", "c", "abc"),
            ("ab", "ba", "ba"),
            ("axb", "bna", "xbna"),
            ("xab", "anb", "xanb"),
            ("abx", "nab", "nabx"),
            ("", "ab", "ab"),
            ("xyz", "n", "xyzn"),
        ],
    )
    def test_order(self, live: str, applied: str, expected: str) -> None:
        stored = Stored(POD, containers(*({"name": name} for name in live)))
        stored.apply("m1", containers(*({"name": name} for name in applied)))
        assert [element["name"] for element in stored.plain["spec"]["containers"]] == list(expected)


@pytest.mark.req("4381-18", "5055-01")
@pytest.mark.parametrize("field", ["devices", "taints"])
def test_a_list_of_a_slice_is_one_value(field: str) -> None:
    first: dict[str, list[Document]] = {"devices": [{"name": "a"}], "taints": [{"device": "a", "taint": {"key": "k"}}]}
    stored = Stored(SLICE).apply("m1", of_kind(SLICE, spec={field: first[field]}))
    second = of_kind(SLICE, spec={field: [*first[field], *first[field]]})
    with pytest.raises(ConflictsError) as failure:
        stored.apply("m2", second)
    assert failure.value.conflicts == (('"m1"', f".spec.{field}"),)
    assert stored.apply("m2", second, force=True).plain == second
    assert [entry["manager"] for entry in stored.managed] == ["m2"]


@pytest.mark.req("4381-59")
def test_reservations_of_a_claim_have_owners_each() -> None:
    def reserved(*uids: str) -> Document:
        consumers = [{"resource": "pods", "name": f"p{uid}", "uid": uid} for uid in uids]
        return of_kind(CLAIM, status={"reservedFor": consumers})

    stored = Stored(CLAIM, of_kind(CLAIM)).apply("m1", reserved("1"), subresource="status")
    stored.apply("m2", reserved("2"), subresource="status")
    assert stored.plain == reserved("1", "2")
    assert {entry["subresource"] for entry in stored.managed} == {"status"}
    stored.apply("m1", of_kind(CLAIM), subresource="status")
    assert stored.plain == reserved("2")


@pytest.mark.req("5055-34")
def test_conditions_of_a_rule_have_owners_each() -> None:
    def conditions(**statuses: str) -> Document:
        return of_kind(RULE, status={"conditions": [{"type": t, "status": s} for t, s in statuses.items()]})

    stored = Stored(RULE, of_kind(RULE)).apply("m1", conditions(A="True"), subresource="status")
    stored.apply("m2", conditions(B="True"), subresource="status")
    assert stored.plain == conditions(A="True", B="True")
    with pytest.raises(ConflictsError) as failure:
        stored.apply("m2", conditions(A="False"), subresource="status")
    assert failure.value.conflicts[0] == ('"m1" with subresource "status"', '.status.conditions[type="A"].status')


def test_status_is_not_owned_through_the_object_itself() -> None:
    applied = of_kind(RULE, {"labels": {"a": "1"}}, status={"conditions": [{"type": "A", "status": "True"}]})
    assert Stored(RULE).apply("m1", applied).owned("m1") == owns_labels("a")


def test_finalizers_are_a_set() -> None:
    stored = Stored(RULE).apply("m1", of_kind(RULE, {"finalizers": ["x/a"]}))
    stored.apply("m2", of_kind(RULE, {"finalizers": ["x/b"]}))
    assert stored.plain["metadata"]["finalizers"] == ["x/a", "x/b"]
    stored.apply("m1", of_kind(RULE))
    assert stored.plain["metadata"]["finalizers"] == ["x/b"]


@pytest.mark.parametrize(
    ("applied", "code", "message"),
    [
        ([], 400, "must be an object"),
        (labelled() | {"kind": "Foo"}, 400, "invalid object type: resource.k8s.io/v1, Kind=Foo"),
        (labelled() | {"apiVersion": "v1"}, 400, "invalid object type: /v1, Kind=DeviceTaintRule"),
        ({}, 400, "invalid object type: /, Kind="),
        (of_kind(RULE, {"managedFields": []}), 400, "metadata.managedFields must be nil"),
        (
            labelled() | {"bogus": 1},
            500,
            "typed patch object (/x; resource.k8s.io/v1, Kind=DeviceTaintRule): .bogus: field not declared in schema",
        ),
        (
            of_kind(RULE, {"namespace": 1}, spec={"taint": 2}),
            500,
            "errors:\n  .metadata.namespace: expected string, got 1\n  .spec.taint: expected map, got 2",
        ),
    ],
)
def test_what_is_refused(applied: Any, code: int, message: str) -> None:
    with pytest.raises(PatchError) as failure:
        apply(None, applied, Write(RULE, "m1", "2026-06-01T12:00:00Z"))
    assert failure.value.code == code
    assert message in failure.value.message


def test_no_managed_fields_may_be_said() -> None:
    assert Stored(RULE).apply("m1", of_kind(RULE, {"managedFields": None})).managed == []


def test_an_object_that_is_applied_empty_stays() -> None:
    def volume(**source: Any) -> Document:
        return of_kind(POD, spec={"volumes": [{"name": "v", "emptyDir": source}]})

    stored = Stored(POD).apply("m1", volume(medium="Memory")).apply("m1", volume())
    assert stored.plain == volume()


def test_null_where_there_are_parts_applies_nothing() -> None:
    """Templates leave keys without a value behind: that must not take from others what they have below."""
    containers = [{"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}]}]
    stored = Stored(POD).update("other", of_kind(POD, {"labels": {"a": "b"}}, spec={"containers": containers}))
    before = stored.plain
    stored.apply("me", of_kind(POD, {"labels": None}, spec={"containers": None}))
    stored.apply("me", of_kind(POD, spec={"containers": [{"name": "c", "env": None}]}))
    assert stored.plain == before
    stored.apply("me", of_kind(POD, spec=None))
    assert stored.plain == before
    with pytest.raises(ConflictsError):  # a value is another matter
        stored.apply("me", of_kind(POD, spec={"containers": [{"name": "c", "image": None}]}))

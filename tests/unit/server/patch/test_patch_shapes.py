"""Sets of fields of whole objects: as they are created, and as they are applied."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api import schema
from dray.server.patch import check, shape
from dray.server.patch.fields import FieldSet

POD = schema.for_kind("", "v1", "Pod")
CLAIM = schema.for_kind("resource.k8s.io", "v1", "ResourceClaim")
CLASS = schema.for_kind("resource.k8s.io", "v1", "DeviceClass")
RULE = schema.for_kind("resource.k8s.io", "v1", "DeviceTaintRule")
SLICE = schema.for_kind("resource.k8s.io", "v1", "ResourceSlice")


@pytest.mark.parametrize(
    ("definition", "document", "created", "applied"),
    [
        pytest.param(
            POD,
            {"metadata": {"labels": {"a": "1"}, "finalizers": ["x/y"]}},
            {
                "f:metadata": {
                    ".": {},
                    "f:labels": {".": {}, "f:a": {}},
                    "f:finalizers": {".": {}, 'v:"x/y"': {}},
                }
            },
            {"f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {'v:"x/y"': {}}}},
            id="maps-and-sets",
        ),
        pytest.param(
            POD,
            {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}], "env": [{"name": "X"}]}]}},
            {
                "f:spec": {
                    ".": {},
                    "f:containers": {
                        ".": {},
                        'k:{"name":"a"}': {
                            ".": {},
                            "f:name": {},
                            "f:ports": {
                                ".": {},
                                'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}},
                            },
                            "f:env": {".": {}, 'k:{"name":"X"}': {".": {}, "f:name": {}}},
                        },
                    },
                }
            },
            {
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"a"}': {
                            ".": {},
                            "f:name": {},
                            "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                            "f:env": {'k:{"name":"X"}': {".": {}, "f:name": {}}},
                        }
                    }
                }
            },
            id="lists-by-key-with-a-default",
        ),
        pytest.param(
            POD,
            {"spec": {"tolerations": [{"key": "a"}], "nodeSelector": {"a": "b"}, "securityContext": {}, "volumes": []}},
            {
                "f:spec": {
                    ".": {},
                    "f:tolerations": {},
                    "f:nodeSelector": {},
                    "f:securityContext": {},
                    "f:volumes": {},
                }
            },
            {"f:spec": {"f:tolerations": {}, "f:nodeSelector": {}, "f:securityContext": {}}},
            id="atomic-and-empty",
        ),
        pytest.param(
            SLICE,
            {"spec": {"driver": "d", "devices": [{"name": "a"}], "taints": [{"key": "k"}]}},
            {"f:spec": {".": {}, "f:driver": {}, "f:devices": {}, "f:taints": {}}},
            {"f:spec": {"f:driver": {}, "f:devices": {}, "f:taints": {}}},
            marks=pytest.mark.req("4381-18", "5055-01"),
            id="lists-of-a-slice",
        ),
        pytest.param(
            CLAIM,
            {"status": {"reservedFor": [{"uid": "u", "name": "p"}]}},
            {"f:status": {".": {}, "f:reservedFor": {".": {}, 'k:{"uid":"u"}': {".": {}, "f:uid": {}, "f:name": {}}}}},
            {"f:status": {"f:reservedFor": {'k:{"uid":"u"}': {".": {}, "f:uid": {}, "f:name": {}}}}},
            marks=pytest.mark.req("4381-59"),
            id="reservations-by-uid",
        ),
        pytest.param(
            RULE,
            {"status": {"conditions": [{"type": "T"}]}},
            {"f:status": {".": {}, "f:conditions": {".": {}, 'k:{"type":"T"}': {".": {}, "f:type": {}}}}},
            {"f:status": {"f:conditions": {'k:{"type":"T"}': {".": {}, "f:type": {}}}}},
            marks=pytest.mark.req("5055-34"),
            id="conditions-by-type",
        ),
        pytest.param(
            POD,
            {"spec": {"containers": [{"name": "a", "tty": True}, {"name": "a", "tty": False}]}},
            {"f:spec": {".": {}, "f:containers": {".": {}, 'k:{"name":"a"}': {}}}},
            None,
            id="elements-with-one-key-are-one-value",
        ),
        pytest.param(
            POD,
            {"spec": {"hostname": None, "affinity": None, "volumes": None}},
            {"f:spec": {".": {}, "f:hostname": {}, "f:affinity": {}, "f:volumes": {}}},
            {"f:spec": {"f:hostname": {}, "f:affinity": {}, "f:volumes": {}}},
            id="nulls",
        ),
    ],
)
def test_sets_of_objects(
    definition: schema.Definition, document: dict[str, Any], created: FieldSet, applied: FieldSet | None
) -> None:
    of_kind = shape.of(definition)
    assert of_kind.all_fields(document) == {".": {}, **created}
    if applied is not None:
        assert of_kind.applied_fields(document) == applied


def test_free_form_objects_merge_key_by_key() -> None:
    free = shape.FREE_FORM
    assert free.all_fields({"a": {"b": [1], "c": 2}}) == {".": {}, "f:a": {".": {}, "f:b": {}, "f:c": {}}}
    assert free.all_fields("text") == {}


@pytest.mark.parametrize(
    ("definition", "zero"),
    [
        (POD, {"metadata": {}, "spec": {"containers": None}, "status": {}}),
        (CLASS, {"metadata": {}, "spec": {}}),
        (RULE, {"metadata": {}, "spec": {"taint": {"key": "", "effect": ""}}, "status": {}}),
        (schema.for_kind("cluster.open-cluster-management.io", "v1", "ManagedCluster"), {}),
    ],
)
def test_objects_before_anybody_set_a_field(definition: schema.Definition, zero: dict[str, Any]) -> None:
    assert shape.zero(definition) == zero


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"spec": {"containers": [{"name": "a", "image": "b"}], "nodeSelector": {"a": "b"}}}, []),
        ({"bogus": 1}, [".bogus: field not declared in schema"]),
        ({"spec": {"bogus": 1, "other": 2}}, [".spec.bogus: field not declared in schema"]),
        ({"spec": {"hostname": 1}}, [".spec.hostname: expected string, got 1"]),
        ({"spec": {"priority": "1"}}, ['.spec.priority: expected numeric (int or float), got "1"']),
        ({"spec": {"priority": True}}, [".spec.priority: expected numeric (int or float), got true"]),
        ({"spec": {"hostPID": "yes"}}, ['.spec.hostPID: expected boolean, got "yes"']),
        ({"spec": {"containers": {}}}, [".spec.containers: expected list, got {}"]),
        ({"spec": []}, [".spec: expected map, got []"]),
        ({"spec": {"overhead": {"cpu": []}}}, [".spec.overhead.cpu: expected any scalar, got []"]),
        (
            {"spec": {"containers": [{"name": "a"}, {"name": "b", "bogus": 1}]}},
            ['.spec.containers[name="b"].bogus: field not declared in schema'],
        ),
        (
            {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}},
            ['.spec.containers: duplicate entries for key [name="a"]'],
        ),
        (
            {"spec": {"containers": [None]}},
            [".spec.containers: element 0: associative list with keys may not have a null element"],
        ),
        (
            {"spec": {"containers": ["a"]}},
            [".spec.containers: element 0: associative list with keys may not have non-map elements"],
        ),
        (
            {"metadata": {"finalizers": [{}]}},
            [".metadata.finalizers: element 0: associative list without keys has an element that's a map type"],
        ),
        ({"spec": {"tolerations": [{"bogus": 1}]}}, [".spec.tolerations[0].bogus: field not declared in schema"]),
        ({"spec": {"hostname": None, "containers": None}}, []),
    ],
)
def test_what_is_wrong_with_an_object(document: dict[str, Any], expected: list[str]) -> None:
    assert list(check.problems(shape.of(POD), document)) == expected

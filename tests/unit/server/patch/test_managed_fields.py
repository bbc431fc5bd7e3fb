"""Who owns what after creates, updates and patches."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from dray.api import schema
from dray.server.patch.fields import FieldSet
from dray.server.patch.managed import Write, track_update
from work import growing_faster, lines_run

POD = schema.for_kind("", "v1", "Pod")
RULE = schema.for_kind("resource.k8s.io", "v1", "DeviceTaintRule")
THEN, NOW = "2026-06-01T12:00:00Z", "2026-06-01T13:00:00Z"


def rule(managed: list[dict[str, Any]] | None = None, **labels: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": "r",
        "uid": "u",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": THEN,
    }
    if labels:
        metadata["labels"] = labels
    if managed is not None:
        metadata["managedFields"] = managed
    taint = {"key": "example.com/bad", "effect": "NoSchedule"}
    return {"metadata": metadata, "spec": {"taint": taint}, "status": {}}


def entry(manager: str, fields: dict[str, Any], time: str | None = THEN, **more: str) -> dict[str, Any]:
    made: dict[str, Any] = {"manager": manager, "operation": "Update", "apiVersion": "resource.k8s.io/v1"}
    if time:
        made["time"] = time
    return made | {"fieldsType": "FieldsV1", "fieldsV1": fields} | more


def labels(*names: str, whole: bool = False) -> dict[str, Any]:
    return {"f:metadata": {"f:labels": ({".": {}} if whole else {}) | {f"f:{name}": {} for name in names}}}


def tracked(
    live: dict[str, Any] | None, new: dict[str, Any], manager: str = "m2", subresource: str = ""
) -> list[dict[str, Any]]:
    before = copy.deepcopy((live, new))
    managed = track_update(live, new, Write(RULE, manager, NOW, subresource))
    assert (live, new) == before
    return managed


SPEC: FieldSet = {"f:spec": {"f:taint": {"f:key": {}, "f:effect": {}}}}


def test_a_create_owns_what_it_sets() -> None:
    assert tracked(None, rule(a="1"), "m1") == [entry("m1", labels("a", whole=True) | SPEC, NOW)]


def test_status_is_not_owned_through_the_object_itself() -> None:
    created = rule() | {"status": {"conditions": [{"type": "A"}]}}
    assert tracked(None, created, "m1") == [entry("m1", SPEC, NOW)]


def test_a_pod_as_it_is_created() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "default", "ownerReferences": [{"uid": "u1", "name": "o"}]},
        "spec": {"containers": [{"name": "c", "resources": {}}], "schedulerName": "s", "securityContext": {}},
        "status": {},
    }
    assert track_update(None, pod, Write(POD, "", NOW)) == [
        {
            "manager": "unknown",
            "operation": "Update",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:ownerReferences": {".": {}, 'k:{"uid":"u1"}': {}}},
                "f:spec": {
                    "f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:resources": {}}},
                    "f:schedulerName": {},
                    "f:securityContext": {},
                },
            },
        }
    ]


def test_a_changed_field_changes_hands() -> None:
    live = rule([entry("m1", labels("a", "b", whole=True) | SPEC)], a="1", b="1")
    assert tracked(live, rule(a="2", b="1")) == [
        entry("m1", labels("b", whole=True) | SPEC),
        entry("m2", labels("a"), NOW),
    ]


def test_a_removed_field_is_nobodys() -> None:
    live = rule([entry("m1", labels("a", "b", whole=True))], a="1", b="1")
    assert tracked(live, rule(b="1")) == [entry("m1", labels("b", whole=True))]


def test_an_entry_with_nothing_left_goes() -> None:
    live = rule([entry("m1", labels("a", whole=True))], a="1")
    assert tracked(live, rule()) == []


def test_nothing_changes_nothing() -> None:
    managed = [entry("m1", labels("a", whole=True))]
    assert tracked(rule(managed, a="1"), rule(managed, a="1")) == managed


def test_what_the_server_sets_is_nobodys() -> None:
    managed = [entry("m1", SPEC)]
    new = rule(managed)
    new["metadata"] |= {"resourceVersion": "2", "generation": 2, "selfLink": "/x"}
    assert tracked(rule(managed), new) == managed


def test_a_manager_adds_to_its_entry_and_the_time_moves() -> None:
    live = rule([entry("m1", labels("a", whole=True))], a="1")
    assert tracked(live, rule(a="1", b="2"), "m1") == [entry("m1", labels("b", "a", whole=True), NOW)]


def test_an_applier_has_an_entry_of_its_own() -> None:
    applied = entry("m1", labels("a")) | {"operation": "Apply"}
    live = rule([applied], a="1")
    assert tracked(live, rule(a="1", b="2"), "m1") == [applied, entry("m1", labels("b"), NOW)]


def test_status_has_an_entry_of_its_own() -> None:
    live = rule([entry("m1", SPEC)])
    new = rule(a="ignored") | {"status": {"conditions": [{"type": "A", "status": "True"}]}}
    condition: FieldSet = {".": {}, "f:type": {}, "f:status": {}}
    owned = {"f:status": {"f:conditions": {".": {}, 'k:{"type":"A"}': condition}}}
    assert tracked(live, new, "m1", "status") == [
        entry("m1", SPEC),
        entry("m1", owned, NOW, subresource="status"),
    ]


def test_the_status_of_a_pod_may_bring_labels() -> None:
    live = {"metadata": {"managedFields": [entry("m1", {"f:spec": {"f:x": {}}})]}, "spec": {}, "status": {}}
    new = {
        "metadata": {"labels": {"a": "1"}, "ownerReferences": [{"uid": "u"}]},
        "spec": {"hostname": "h"},
        "status": {},
    }
    written = track_update(live, new, Write(POD, "kubelet", NOW, "status"))[1]
    assert written["fieldsV1"] == labels("a", whole=True)


@pytest.mark.req("5055-34")
def test_a_condition_changes_hands_alone() -> None:
    owned: FieldSet = {'k:{"type":"A"}': {".": {}, "f:status": {}}, 'k:{"type":"B"}': {}}
    live = rule([entry("m1", {"f:status": {"f:conditions": owned}}, subresource="status")])
    live["status"] = {"conditions": [{"type": "A", "status": "True"}, {"type": "B"}]}
    new = rule() | {"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "B"}]}}
    mine, theirs = tracked(live, new, "m2", "status")
    assert mine["fieldsV1"] == {"f:status": {"f:conditions": {'k:{"type":"A"}': {}, 'k:{"type":"B"}': {}}}}
    assert theirs["fieldsV1"] == {"f:status": {"f:conditions": {'k:{"type":"A"}': {"f:status": {}}}}}


def test_an_untracked_object_stays_untracked() -> None:
    assert tracked(rule(), rule(a="1")) == []


@pytest.mark.parametrize("reset", [[], [{}]])
def test_a_write_may_forget_everything(reset: list[Any]) -> None:
    live = rule([entry("m1", labels("a"))], a="1")
    assert tracked(live, rule(reset, a="2")) == []


def test_a_write_may_bring_entries() -> None:
    live = rule([entry("m1", labels("a"))], a="1")
    brought = [entry("m3", {"f:metadata": {"f:labels": {".": {}, "f:a": {".": {}}}}})]
    assert tracked(live, rule(brought, a="1")) == [entry("m3", labels("a", whole=True))]


@pytest.mark.parametrize(
    "wrong",
    [
        {"operation": "Steal"},
        {"apiVersion": ""},
        {"fieldsType": "FieldsV2"},
        {"fieldsV1": {"x": {}}},
        {"fieldsV1": []},
    ],
)
def test_entries_without_sense_count_as_none(wrong: dict[str, Any]) -> None:
    live = rule([entry("m1", labels("a"))], a="1")
    assert tracked(live, rule([entry("m3", {}) | wrong], a="1")) == [entry("m1", labels("a"))]


def test_entries_cannot_be_brought_through_a_subresource() -> None:
    live = rule([entry("m1", labels("a"))], a="1")
    assert tracked(live, rule([], a="1"), "m2", "status") == [entry("m1", labels("a"))]


def test_the_oldest_updates_are_merged() -> None:
    managed = [entry(f"m{number}", labels(f"l{number}"), f"2026-06-01T12:00:{number:02}Z") for number in range(10)]
    values = {f"l{number}": "1" for number in range(10)}
    changed = tracked(rule(managed, **values), rule(None, **values, new="1"), "new")
    assert [found["manager"] for found in changed] == [
        "ancient-changes",
        *(f"m{number}" for number in range(2, 10)),
        "new",
    ]
    assert changed[0]["fieldsV1"] == labels("l1", "l0")
    assert changed[0]["time"] == "2026-06-01T12:00:01Z"


def test_appliers_come_first_and_then_the_oldest() -> None:
    managed = [
        entry("m1", labels("a"), "2026-06-01T12:00:02Z"),
        entry("m2", labels("b"), "2026-06-01T12:00:01Z"),
        entry("m3", labels("c")) | {"operation": "Apply"},
    ]
    changed = tracked(rule(managed, a="1", b="1", c="1"), rule(a="1", b="1", c="1", d="1"), "m4")
    assert [found["manager"] for found in changed] == ["m3", "m2", "m1", "m4"]


def test_a_bucket_of_old_updates_that_is_not_the_oldest_stays_the_bucket() -> None:
    old = [entry(name, labels(name), f"2026-05-{day:02}T00:00:00Z") for day, name in enumerate("abcdefghijk", 1)]
    managed = [*old, entry("ancient-changes", labels("z"), "2026-05-01T12:00:00Z")]
    live = rule(managed, **dict.fromkeys("abcdefghijkz", "1"))
    kept = {
        one["manager"]: one["fieldsV1"] for one in tracked(live, rule(managed, **dict.fromkeys("abcdefghijkz", "2")))
    }
    assert kept == {"m2": labels(*"abcdefghijkz")}
    same = rule(managed, **dict.fromkeys("abcdefghijkz", "1"), q="1")
    kept = {one["manager"]: one["fieldsV1"] for one in tracked(live, same)}
    assert len(kept) == 10
    assert kept["ancient-changes"] == labels("b", "c", "d", "z")
    assert kept["a"] == labels("a")


def test_many_managers_are_merged_in_linear_time() -> None:
    def work(size: int) -> Callable[[], object]:
        names = [f"n{number}" for number in range(size)]
        managed = [entry(name, labels(name)) for name in names]
        new = rule(managed, **dict.fromkeys(names, "1"))
        return lambda: track_update(rule([], **dict.fromkeys(names, "1")), new, Write(RULE, "m2", NOW))

    assert growing_faster(lines_run(work(100)), lines_run(work(200))) == {}


def test_what_only_its_reader_understands_is_owned_as_a_whole() -> None:
    """A driver's data, a revision's content: nobody else knows what their parts mean, so they never merge."""
    claim = schema.for_kind("resource.k8s.io", "v1", "ResourceClaim")
    device = {"driver": "d", "pool": "p", "device": "x", "data": {"a": {"b": 1}, "c": [1]}}
    written = track_update(
        {"metadata": {"managedFields": [entry("m", SPEC)]}},
        {"status": {"devices": [device]}},
        Write(claim, "driver", NOW, "status"),
    )
    fields = written[-1]["fieldsV1"]["f:status"]["f:devices"]
    (key,) = (step for step in fields if step.startswith("k:"))
    assert fields[key]["f:data"] == {}
    revision = schema.for_kind("apps", "v1", "ControllerRevision")
    (made,) = track_update(None, {"data": {"spec": {"a": 1}}, "revision": 1}, Write(revision, "m", NOW))
    assert made["fieldsV1"] == {"f:data": {}, "f:revision": {}}

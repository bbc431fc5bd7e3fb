"""What waits and why, what happened when, what is out of service."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import builders
import dray
from dray.api.generated.core import Event, Node, Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.resource import DeviceTaintRule, ResourceClaim
from dray.live import documents
from dray.snapshot import Snapshot
from dray.views import service, timeline, waiting
from dray.views.explanation import Picture, claim_picture
from snapshot_objects import claim, device, device_class, held, node, resource_slice, rule

NOW = datetime(2026, 6, 1, 13, 0, tzinfo=UTC)


def _pod(name: str, node: str = "", **status: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "x"}], **({"nodeName": node} if node else {})}
    meta = {"name": name, "namespace": "ml", "creationTimestamp": "2026-06-01T12:00:00Z"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def test_who_waits_comes_first_with_why() -> None:
    told = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}]
    snapshot = dray.load(
        _pod("runs", "node-1", phase="Running"),
        _pod("waits", phase="Pending", conditions=told),
        _pod("done", "node-1", phase="Succeeded"),
        held(claim("train", 2), "node-1", "gpu-0"),
        claim("other", 3),
    )
    rows = waiting.pod_rows(snapshot.objects(Pod))
    assert [(row.name, row.state, row.message) for row in rows] == [("ml/waits", "pending", "no room")]
    claims = waiting.claim_rows(snapshot.objects(ResourceClaim))
    assert [(row.name, row.state, row.asks) for row in claims] == [
        ("ml/other", "pending", "3 × gpu"),
        ("ml/train", "allocated", "2 × gpu"),
    ]


def _cluster(*more: dict[str, Any]) -> Snapshot:
    gpus = [device(f"gpu-{number}") for number in range(3)]
    slices = (resource_slice("node-1", *gpus), resource_slice("node-2", *gpus))
    return dray.load(*slices, device_class(), *more)


def _explained(snapshot: Snapshot) -> Picture:
    return claim_picture("ml/big", snapshot.explain("ml/big"), NOW)


def test_a_picture_shows_what_is_in_the_way_and_what_would_help() -> None:
    picture = _explained(
        _cluster(claim("big", 3), held(claim("small"), "node-1", "gpu-1"), rule("bad", "NoSchedule", pool="node-2"))
    )
    assert picture.status == "pending"
    request = picture.claims[0].requests[0]
    assert (request.wish, request.closest) == ("class gpu, 3 devices", "node-1")
    nodes = {node.node: node for node in request.nodes}
    assert [cell.check for cell in nodes["node-1"].devices] == ["", "inUse", ""]
    assert [cell.check for cell in nodes["node-2"].devices] == ["taint"] * 3
    assert (nodes["node-1"].missing, nodes["node-2"].missing) == (1, 3)
    assert "ml/small" in nodes["node-1"].blocked_by
    assert any("ml/small" in text for text in request.remedies)


def test_a_picture_of_what_fits_says_where() -> None:
    picture = _explained(_cluster(claim("big", 3)))
    assert (picture.status, picture.node) == ("fits", "node-1")
    assert picture.claims[0].requests[0].closest is None


def test_the_timeline_is_read_off_what_is_there_and_what_was_seen() -> None:
    train = held(claim("train"), "node-1", "gpu-0")
    train["status"]["allocation"]["allocationTimestamp"] = "2026-06-01T12:30:00Z"
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-06-01T12:10:00Z"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}, "status": {"conditions": [ready]}}
    evicted = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "one", "namespace": "ml"},
        "involvedObject": {"kind": "Pod", "namespace": "ml", "name": "gone"},
        "reason": "DeviceTaintManagerEviction",
        "message": "Marking for deletion",
        "lastTimestamp": "2026-06-01T12:40:00Z",
    }
    snapshot = dray.load(train, rule("bad"), node)
    (before,) = snapshot.objects(ResourceClaim)
    log = timeline.Log()
    log.claim(before, None, lambda: "2026-06-01T12:50:00Z")
    log.claim(None, before, lambda: "2026-06-01T12:55:00Z")
    seen = timeline.Evidence(
        [before],
        list(snapshot.objects(DeviceTaintRule)),
        list(snapshot.objects(Node)),
        [_event(evicted)],
    )
    entries = timeline.timeline(log, seen, "2026-06-01T12:05:00Z", "2026-06-01T13:00:00Z")
    assert [(entry.time[11:16], entry.kind) for entry in entries] == [
        ("12:50", "release"),
        ("12:40", "eviction"),
        ("12:30", "allocation"),
        ("12:10", "node"),
    ]
    about = timeline.about_device(entries, "gpu.example.com/node-1/gpu-0", (), (), "")
    assert [entry.kind for entry in about] == ["release", "allocation"]


def test_what_others_wrote_into_an_event_is_told_to_some_length() -> None:
    long = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "one", "namespace": "ml"},
        "involvedObject": {"kind": "Pod", "namespace": "ml", "name": "gone"},
        "reason": "Evicted",
        "message": "x" * 1_000_000,
        "lastTimestamp": "2026-06-01T12:40:00Z",
    }
    seen = timeline.Evidence(events=[_event(long)])
    [entry] = timeline.timeline(timeline.Log(), seen, "2026-06-01T12:05:00Z", "2026-06-01T13:00:00Z")
    assert len(entry.text) == timeline.MOST_LETTERS


def test_a_page_shows_as_many_rows_as_somebody_can_load() -> None:
    """Rows have names that others chose."""
    asks = [builders.request(f"r{one}", deviceClassName="x" * 250) for one in range(32)]
    manifests = [builders.claim(f"c{number}", *asks, namespace="ml") for number in range(1500)]
    rows = waiting.claim_rows(dray.load(*manifests).objects(ResourceClaim))
    shown = documents.first_rows(rows)
    assert 0 < len(shown) < len(rows)
    assert len(msgspec.json.encode(shown)) <= documents.MOST_BYTES + len(shown) + 1


def _eviction(name: str, namespace: str, **times: str) -> Event:
    return _event(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": "2026-06-01T12:40:00Z"},
            "involvedObject": {"kind": "Pod", "namespace": namespace, "name": name},
            "reason": "Evicted",
            **times,
        }
    )


def test_a_time_that_is_still_to_come_is_not_believed() -> None:
    """Whoever writes events says when they were: those of the year 9999 would be first for ever (issue 14)."""
    later = _eviction("later", "mallory", lastTimestamp="9999-01-01T00:00:00Z", eventTime="9999-01-01T00:00:00.000000Z")
    earlier = _eviction("earlier", "ml", lastTimestamp="2026-06-01T12:50:00Z")
    seen = timeline.Evidence(events=[later, earlier])
    entries = timeline.timeline(timeline.Log(), seen, "2026-06-01T12:05:00Z", "2026-06-01T13:00:00Z")
    assert [(entry.time, entry.subject) for entry in entries] == [
        ("2026-06-01T12:50:00Z", "ml/earlier"),
        ("2026-06-01T12:40:00Z", "mallory/later"),
    ]


def test_events_of_one_namespace_hide_nothing_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_ENTRIES", 20)
    events = [_eviction(f"p-{n}", "mallory", lastTimestamp=f"2026-06-01T12:{n % 60:02}:30Z") for n in range(200)]
    events += [_eviction(f"q-{n}", "ml", lastTimestamp="2026-06-01T12:00:01Z") for n in range(5)]
    seen = timeline.Evidence(events=events)
    entries = timeline.timeline(timeline.Log(), seen, "2026-06-01T12:00:00Z", "2026-06-01T13:00:00Z")
    assert len(entries) == 20
    assert sum(entry.subject.startswith("ml/") for entry in entries) == 5
    assert [entry.time for entry in entries] == sorted((entry.time for entry in entries), reverse=True)


def test_claims_that_come_and_go_in_one_namespace_make_nobody_forget_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_ENTRIES", 20)
    (mine,) = dray.load(held(claim("train"), "node-1", "gpu-0")).objects(ResourceClaim)
    other = replace(mine, metadata=replace(mine.metadata, namespace="mallory"))
    log = timeline.Log()
    log.claim(mine, None, lambda: "2026-06-01T12:00:00Z")
    for number in range(1000):
        log.claim(other, None, lambda number=number: f"2026-06-01T12:{number // 60:02}:{number % 60:02}Z")  # type: ignore[misc]
    assert len(log.entries) < 40
    assert log.entries[0].subject == "ml/train"


def test_rows_of_one_namespace_hide_none_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by their number nor by their length (issue 14)."""
    monkeypatch.setattr(documents, "MOST_ROWS", 100)
    pods = [_pod(f"older-{number:03}") for number in range(300)]
    for one in pods:
        one["metadata"] |= {"namespace": "mallory", "creationTimestamp": "2026-06-01T11:00:00Z"}
    pods += [_pod("waits")]
    rows = waiting.pod_rows(dray.load(*pods).objects(Pod))
    shown = documents.first_rows(rows)
    assert [row.name for row in shown] == [*(f"mallory/older-{number:03}" for number in range(99)), "ml/waits"]
    monkeypatch.setattr(documents, "MOST_BYTES", 10_000)
    long = [msgspec.structs.replace(row, message="x" * 1000) for row in rows[:300]]
    shown = documents.first_rows([*long, rows[300]])
    assert shown[-1].name == "ml/waits"
    assert 1 < len(shown) < 12


def _event(document: dict[str, Any]) -> Event:
    from dray.api import codec

    found = codec.read(document, Event).obj
    assert found is not None
    return found


def _held_rule(**annotations: str) -> dict[str, Any]:
    waits = rule("waits")
    waits["metadata"] |= {"generation": 1, "annotations": annotations}
    waits["status"] = {
        "conditions": [
            {"type": "EvictionHeld", "status": "True", "reason": "TooManyPods", "message": "90 of 100 pods"},
            {"type": "EvictionInProgress", "status": "True", "reason": "PodsPendingEviction", "message": "90 pods"},
        ]
    }
    return waits


def _rule_rows(*rules: dict[str, Any]) -> list[service.RuleRow]:
    return service.rule_rows(dray.load(*rules).objects(DeviceTaintRule), lambda _name: service.Reach(3, 1))


def _node_rows(*nodes: dict[str, Any]) -> list[tuple[str, tuple[str, ...], int, str]]:
    pods = [_pod(f"on-{one['metadata']['name']}", one["metadata"]["name"], phase="Running") for one in nodes]
    seen = dray.load(*nodes, *pods)
    rows = service.node_rows(list(seen.objects(Node)), list(seen.objects(Pod)))
    return [(row.name, row.taints, row.pods, row.held) for row in rows]


def _tainted(name: str, effect: str, *conditions: dict[str, Any], **annotations: str) -> dict[str, Any]:
    found = node(name, spec={"taints": [{"key": "bad", "effect": effect}]})
    found["metadata"]["annotations"] = {f"dray.dev/{key.replace('_', '-')}": said for key, said in annotations.items()}
    found["status"]["conditions"] += conditions
    return found


def test_nodes_that_pods_have_to_leave_are_told_the_held_ones_first() -> None:
    told = {"type": "EvictionHeld", "status": "True", "message": "9 pods"}
    assert _node_rows(
        node("well"),
        _tainted("kept-free", "NoSchedule"),
        _tainted("drained", "NoSchedule", drain="bad:NoSchedule"),
        _tainted("evicting", "NoExecute"),
        _tainted("confirmed", "NoExecute", told, confirm_evictions="bad"),
        _tainted("held", "NoExecute", told),
    ) == [
        ("held", ("bad:NoExecute",), 1, "9 pods"),
        ("confirmed", ("bad:NoExecute",), 1, ""),
        ("drained", ("bad:NoSchedule",), 1, ""),
        ("evicting", ("bad:NoExecute",), 1, ""),
    ]


@pytest.mark.parametrize(
    ("effect", "annotations", "told"),
    [
        ("NoSchedule", {"drain": "bad:NoSchedule"}, "1 pod waits for disruption budget ml/api."),
        (
            "NoSchedule",
            {"drain": "bad:NoSchedule", "drain_paused": "true"},
            "The drain is paused until `dray drain resume node/n`.",
        ),
        ("NoExecute", {}, ""),
    ],
)
def test_a_node_says_what_its_drain_waits_for(effect: str, annotations: dict[str, str], told: str) -> None:
    budget = builders.manifest("policy/v1", "PodDisruptionBudget", "api", "ml")
    budget["spec"] = {"minAvailable": 1, "selector": {}}
    budget["status"] = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 1, "expectedPods": 1}
    seen = dray.load(_tainted("n", effect, **annotations), _pod("on-n", "n", phase="Running"), budget)
    rows = service.node_rows(seen.objects(Node), seen.objects(Pod), seen.objects(PodDisruptionBudget))
    assert [row.progress for row in rows] == [told]


def test_rules_that_are_held_come_first() -> None:
    rows = _rule_rows(rule("a", "NoSchedule"), _held_rule())
    assert [(row.name, row.held, row.in_progress, row.devices, row.in_use) for row in rows] == [
        ("waits", "90 of 100 pods", True, 3, 1),
        ("a", "", False, 3, 1),
    ]


def test_what_was_confirmed_is_not_held_though_its_status_still_says_so() -> None:
    """Controllers write the status every ten seconds: until then nobody is asked to confirm once more."""
    confirm = "dray.dev/confirm-evictions"
    assert [(row.held, row.progress) for row in _rule_rows(_held_rule(**{confirm: "1"}))] == [
        ("", "Confirmed: its pods leave.")
    ]
    assert [(row.held, row.progress) for row in _rule_rows(_held_rule(**{confirm: "2"}))] == [
        ("90 of 100 pods", "90 pods")
    ]


def test_a_picture_says_when_nothing_would_help() -> None:
    """Nodes have three devices, and four are wanted: whoever waits for a holder to go waits for ever."""
    request = _explained(_cluster(claim("big", 4))).claims[0].requests[0]
    assert request.remedies == ()
    assert (
        request.hopeless
        == "Nothing that was tried makes it fit: no node that was looked at has more than 3 devices that match."
    )
    helped = _explained(_cluster(claim("big", 3), *(held(claim(f"s{n}"), f"node-{n}", "gpu-0") for n in (1, 2))))
    assert helped.claims[0].requests[0].hopeless == ""


def test_a_rule_says_that_its_devices_are_drained_or_that_this_is_paused() -> None:
    """Nothing else did: the rule of a drain looked like any other that evicts nobody."""
    key = rule("plain", "NoSchedule")["spec"]["taint"]["key"]
    rules = [rule(name, "NoSchedule") for name in ("drained", "paused", "plain")]
    for one in rules[:2]:
        one["metadata"]["annotations"] = {"dray.dev/drain": f"{key}:NoSchedule"}
    rules[1]["metadata"]["annotations"]["dray.dev/drain-paused"] = "true"
    assert [(row.name, row.drained, row.progress) for row in _rule_rows(*rules)] == [
        ("drained", True, "Drained: pods leave as budgets allow."),
        ("paused", True, "The drain is paused until `dray drain resume rule/paused`."),
        ("plain", False, ""),
    ]

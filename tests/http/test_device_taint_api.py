"""Device taints and tolerations as the API takes them, over HTTP: what is stored, what is refused, and where."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from live_server import LiveServer

GROUP = "/apis/resource.k8s.io/v1"
SLICES = f"{GROUP}/resourceslices"
RULES = f"{GROUP}/devicetaintrules"
DRY_RUN = "?dryRun=All"

Document = dict[str, Any]
Causes = set[tuple[str, str]]


def taint(**more: Any) -> Document:
    """A taint; what is None is left out."""
    return {
        key: value for key, value in {"key": "example.com/k", "effect": "None", **more}.items() if value is not None
    }


def slice_of(**spec: Any) -> Document:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"generateName": "taints-"},
        "spec": {"driver": "gpu.example.com", "nodeName": "n", "pool": pool, **spec},
    }


def slice_with(*taints: Document, device: str = "gpu-0") -> Document:
    return slice_of(taints=[{"device": device, "taint": one} for one in taints])


def rule_with(one: Document | None, **spec: Any) -> Document:
    return {"metadata": {"generateName": "rule-"}, "spec": {**({} if one is None else {"taint": one}), **spec}}


def claim_with(*tolerations: Document) -> Document:
    exactly = {"deviceClassName": "gpu", "tolerations": list(tolerations)}
    return {
        "metadata": {"generateName": "claim-"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }


def stored(server: LiveServer, path: str, document: Document, **options: str) -> Any:
    """What the server would store."""
    answer = server.request("POST", path + DRY_RUN, document, **options)
    assert answer.code == 201, answer.body
    return answer.json


def refused(server: LiveServer, path: str, document: Document) -> Causes:
    """Where the server says that it is wrong."""
    answer = server.request("POST", path + DRY_RUN, document)
    assert answer.code == 422, answer.body
    causes: Causes = answer.causes
    return causes


@pytest.mark.req("5055-02", "5055-03", "5055-04", "5055-05", "5055-06", "5055-07", "5055-08", "5055-144")
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, None),
        ({"taints": [{"device": "gpu-0", "taint": taint()}] * 32}, None),
        ({"taints": [{"device": "nobody-has-this-name", "taint": taint()}]}, None),
        ({"devices": [{"name": f"gpu-{number}"} for number in range(128)]}, None),
        ({"devices": [{"name": "gpu-0", "taints": [taint(effect="NoSchedule")]}]}, None),
        ({"taints": [{"device": "gpu-0", "taint": taint()}] * 33}, "spec.taints"),
        ({"devices": [{"name": f"gpu-{number}"} for number in range(129)]}, "spec.devices"),
        ({"devices": [{"name": "gpu-0"}], "taints": [{"device": "gpu-0", "taint": taint()}]}, "spec"),
        ({"taints": [{"taint": taint()}]}, "spec.taints[0].device"),
        ({"taints": [{"device": "", "taint": taint()}]}, "spec.taints[0].device"),
    ],
)
def test_a_slice_has_devices_or_taints_or_neither(server: LiveServer, spec: Document, field: str | None) -> None:
    if field is None:
        assert stored(server, SLICES, slice_of(**spec))["spec"].keys() >= spec.keys()
    else:
        assert field in {at for _, at in refused(server, SLICES, slice_of(**spec))}


@pytest.mark.req(
    "5055-10", "5055-11", "5055-12", "5055-13", "5055-14", "5055-16", "5055-17", "5055-18", "5055-41", "5055-42",
    "5055-43", "5055-141", "5055-146", "SVS-05", "SVS-06", "SVS-07", "implied-9",
)  # fmt: skip
@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"effect": "NoSchedule"}, None),
        ({"effect": "NoExecute"}, None),
        ({"key": "kubernetes.io/reserved-but-not-refused"}, None),
        ({"key": "nobodys-domain"}, None),
        ({"value": "x" * 63}, None),
        ({"value": ""}, None),
        ({"data": "x" * (10 * 1024 - 2)}, None),
        ({"data": {"any": ["json", 1]}, "description": "x" * 1024}, None),
        ({"evictionsPerSecond": 1}, None),
        ({"evictionsPerSecond": 2**63 - 1}, None),
        ({"key": None}, "key"),
        ({"key": "a b"}, "key"),
        ({"key": "x" * 64}, "key"),
        ({"value": "x" * 64}, "value"),
        ({"value": "a b"}, "value"),
        ({"effect": None}, "effect"),
        ({"effect": "PreferNoSchedule"}, "effect"),
        ({"data": "x" * (10 * 1024 - 1)}, "data"),
        ({"description": "x" * 1025}, "description"),
        ({"evictionsPerSecond": 0}, "evictionsPerSecond"),
        ({"evictionsPerSecond": -1}, "evictionsPerSecond"),
    ],
)
def test_taints_of_slices_and_rules_have_the_same_rules(server: LiveServer, more: Document, field: str | None) -> None:
    one = taint(**more)
    if field is None:
        told = {key: value for key, value in one.items() if value != ""}
        assert told.items() <= stored(server, RULES, rule_with(one))["spec"]["taint"].items()
        in_slice = stored(server, SLICES, slice_with(one))["spec"]["taints"][0]["taint"]
        assert told.items() <= in_slice.items()
    else:
        assert {at for _, at in refused(server, RULES, rule_with(one))} == {f"spec.taint.{field}"}
        assert {at for _, at in refused(server, SLICES, slice_with(one))} == {f"spec.taints[0].taint.{field}"}


@pytest.mark.req("5055-37", "5055-38", "5055-151", "5055-15")
def test_taints_need_not_differ_and_all_get_a_time(server: LiveServer) -> None:
    given = [taint(effect=effect) for effect in ("NoSchedule", "NoExecute", "None", "None")]
    given.append(taint(timeAdded="2020-01-01T00:00:00Z"))
    *new, old = [one["taint"] for one in stored(server, SLICES, slice_with(*given))["spec"]["taints"]]
    assert old["timeAdded"] == "2020-01-01T00:00:00Z"
    assert len({one["timeAdded"] for one in new}) == 1
    assert re.fullmatch(r"20[0-9-]{8}T[0-9:]{8}Z", new[0]["timeAdded"])


@pytest.mark.req("5055-40")
def test_on_update_only_the_taint_without_a_time_gets_the_current_one(server: LiveServer) -> None:
    made = server.request("POST", SLICES, slice_with(taint(timeAdded="2020-01-01T00:00:00Z")))
    assert made.code == 201, made.body
    path = f"{SLICES}/{made.json['metadata']['name']}"
    try:
        document = made.json
        document["spec"]["taints"].append({"device": "gpu-1", "taint": taint()})
        changed = server.request("PUT", path, document)
        assert changed.code == 200, changed.body
        first, second = (one["taint"]["timeAdded"] for one in changed.json["spec"]["taints"])
        assert first == "2020-01-01T00:00:00Z"
        assert second > "2021"
    finally:
        assert server.request("DELETE", path).code == 200


@pytest.mark.req("5055-29", "5055-32", "5055-33", "5055-59")
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"taint": taint()}, None),
        ({"taint": taint(), "deviceSelector": {}}, None),
        ({"taint": taint(), "deviceSelector": {"device": "gpu-0"}}, None),
        (
            {"taint": taint(), "deviceSelector": {"driver": "d", "pool": "p", "device": "x", "deviceClassName": "c"}},
            None,
        ),
        ({"taint": taint(), "deviceSelector": {"selectors": [{"cel": {"expression": "true"}}]}}, None),
        ({}, "spec.taint.effect"),
        (
            {"taint": taint(), "deviceSelector": {"selectors": [{"cel": {"expression": "device."}}]}},
            "spec.deviceSelector.selectors[0].cel.expression",
        ),
    ],
)
def test_a_rule_needs_a_taint_and_may_select_by_anything(server: LiveServer, spec: Document, field: str | None) -> None:
    kinds = server.request("GET", GROUP).json["resources"]
    assert [one["namespaced"] for one in kinds if one["name"] == "devicetaintrules"] == [False]
    if field is None:
        kept = stored(server, RULES, rule_with(None, **spec))["spec"]
        assert kept.get("deviceSelector") == spec.get("deviceSelector")
    else:
        assert field in {at for _, at in refused(server, RULES, rule_with(None, **spec))}


@pytest.mark.req("5055-19")
def test_a_field_that_a_taint_does_not_have_is_dropped_or_refused(server: LiveServer) -> None:
    odd = rule_with(taint(likelihood=5))
    assert "likelihood" not in stored(server, RULES, odd)["spec"]["taint"]
    answer = server.request("POST", f"{RULES}{DRY_RUN}&fieldValidation=Strict", odd)
    assert answer.code == 400
    assert 'unknown field "spec.taint.likelihood"' in answer.json["message"]


@pytest.mark.req(
    "5055-20", "5055-21", "5055-22", "5055-23", "5055-24", "5055-25", "5055-26", "5055-27", "5055-28", "5055-39",
    "5055-49", "5055-142",
)  # fmt: skip
@pytest.mark.parametrize(
    ("tolerations", "field"),
    [
        ([{"key": "k", "value": "v"}], None),
        ([{"operator": "Exists"}], None),
        ([{"key": "k", "operator": "Exists", "effect": "None"}], None),
        ([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], None),
        ([{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -1}], None),
        ([{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}], None),
        ([{"key": "k", "operator": "Exists"}] * 16, None),
        ([{"key": "k", "operator": "Exists"}] * 17, ""),
        ([{"key": "a b", "operator": "Exists"}], "[0].key"),
        ([{"value": "v"}], "[0].operator"),
        ([{"key": "k", "operator": "In"}], "[0].operator"),
        ([{"key": "k", "operator": "Exists", "value": "v"}], "[0].value"),
        ([{"key": "k", "value": "a b"}], "[0].value"),
        ([{"key": "k", "operator": "Exists", "effect": "Sometimes"}], "[0].effect"),
    ],
)
def test_tolerations_of_claims_and_templates(
    server: LiveServer, namespace: str, tolerations: list[Document], field: str | None
) -> None:
    claims = f"{GROUP}/namespaces/{namespace}/resourceclaims"
    templates = f"{GROUP}/namespaces/{namespace}/resourceclaimtemplates"
    claim = claim_with(*tolerations)
    template = {"metadata": claim["metadata"], "spec": {"spec": claim["spec"]}}
    where = "spec.devices.requests[0].exactly.tolerations"
    if field is None:
        wanted = [{"operator": "Equal", **one} for one in tolerations]
        for found in (stored(server, claims, claim)["spec"], stored(server, templates, template)["spec"]["spec"]):
            assert found["devices"]["requests"][0]["exactly"]["tolerations"] == wanted
    else:
        assert {at for _, at in refused(server, claims, claim)} == {f"{where}{field}"}
        assert {at for _, at in refused(server, templates, template)} == {f"spec.{where}{field}"}


@pytest.mark.req("5055-01")
def test_a_second_manager_must_force_its_list_of_taints(server: LiveServer) -> None:
    def apply(manager: str, key: str, *, force: bool = False) -> int:
        document = {**slice_with(taint(key=key)), "metadata": {"name": "applied"}}
        document |= {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
        path = f"{SLICES}/applied?fieldManager={manager}&force={json.dumps(force)}"
        return server.request("PATCH", path, document, "application/apply-patch+yaml").code

    try:
        assert apply("driver", "example.com/a") == 201
        assert apply("other", "example.com/b") == 409
        assert apply("other", "example.com/b", force=True) == 200
        taints = server.request("GET", f"{SLICES}/applied").json["spec"]["taints"]
        assert [one["taint"]["key"] for one in taints] == ["example.com/b"]
    finally:
        server.request("DELETE", f"{SLICES}/applied")

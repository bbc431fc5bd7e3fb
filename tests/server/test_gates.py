"""Feature gates over the live server: what is there survives, what is new is dropped and said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import builders
from live_server import LiveServer
from server_process import server_on_thread

RESOURCE = "/apis/resource.k8s.io/v1"
CLAIMS = f"{RESOURCE}/namespaces/default/resourceclaims"
TAINT = {"key": "example.com/broken", "effect": "NoSchedule"}
TOLERATION = {"key": "example.com/broken", "operator": "Exists"}


def request(**more: Any) -> dict[str, Any]:
    return builders.request("gpu", **more)


def slice_of(device: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": builders.resource_slice("node-1", builders.device("gpu-0", **device), **spec)["spec"]}


class Feature(msgspec.Struct):
    """A gate, where its objects are, an object that uses it, and the path of the field that belongs to it."""

    gate: str
    collection: str
    body: dict[str, Any]
    path: str


FEATURES = [
    Feature("DRADeviceTaints", f"{RESOURCE}/resourceslices", slice_of({"taints": [TAINT]}), "spec.devices[0].taints"),
    Feature(
        "DRADeviceTaints",
        CLAIMS,
        {"spec": {"devices": {"requests": [request(tolerations=[TOLERATION])]}}},
        "spec.devices.requests[0].exactly.tolerations",
    ),
    Feature(
        "DRADeviceTaints",
        f"{RESOURCE}/namespaces/default/resourceclaimtemplates",
        {"spec": {"spec": {"devices": {"requests": [request(tolerations=[TOLERATION])]}}}},
        "spec.spec.devices.requests[0].exactly.tolerations",
    ),
    Feature(
        "DRAConsumableCapacity",
        f"{RESOURCE}/resourceslices",
        slice_of({"allowMultipleAllocations": True}),
        "spec.devices[0].allowMultipleAllocations",
    ),
    Feature(
        "DRAExtendedResource",
        f"{RESOURCE}/deviceclasses",
        {"spec": {"extendedResourceName": "example.com/gpu"}},
        "spec.extendedResourceName",
    ),
    Feature(
        "DRAAdminControlledDeviceAttributes",
        "/apis/resource.k8s.io/v1alpha3/resourceslicepatches",
        {"spec": {"devices": {"attributes": {"gpu.example.com/rack": {"string": "r1"}}}}},
        "spec.devices.attributes",
    ),
    Feature(
        "DynamicResourceAllocation",
        "/api/v1/namespaces/default/pods",
        {
            "spec": {
                "containers": [{"name": "main", "image": "pause"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}],
            }
        },
        "spec.resourceClaims",
    ),
]
BY_NAME = pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: f"{feature.gate}-{feature.path}")


def find(document: Any, path: str) -> Any:
    """What is at a path such as `spec.devices[0].taints`; None if nothing is."""
    for step in path.replace("[", ".").replace("]", "").split("."):
        if isinstance(document, list):
            document = document[int(step)]
        elif document is not None:
            document = document.get(step)
    return document


def create(server: LiveServer, feature: Feature, name: str = "one") -> tuple[dict[str, Any], str]:
    """The stored object, and what the server warned of."""
    made = server.request("POST", feature.collection, {"metadata": {"name": name}, **feature.body})
    assert made.code == 201, made.body
    return made.json, " ".join(made.headers.get_all("Warning") or ())


@pytest.mark.req("5055-110", "5027-42", "4381-79", "5055-108", "4381-205")
@BY_NAME
def test_new_fields_of_a_gate_that_is_off_are_dropped_with_a_warning(tmp_path: Path, feature: Feature) -> None:
    with server_on_thread(tmp_path / "state", disabled_gates=frozenset({feature.gate})) as (server, _):
        stored, warning = create(server, feature)
        assert not find(stored, feature.path)
        assert f"{feature.path}: dropped, feature gate {feature.gate} is off" in warning


@pytest.mark.req("5055-111", "5055-115", "5055-116", "5055-118", "5027-47", "4381-207")
@BY_NAME
def test_stored_fields_survive_updates_while_the_gate_is_off(tmp_path: Path, feature: Feature) -> None:
    directory = tmp_path / "state"
    with server_on_thread(directory) as (server, _):
        stored, warning = create(server, feature)
        assert find(stored, feature.path)
        assert "feature gate" not in warning
    path = f"{feature.collection}/one"
    with server_on_thread(directory, disabled_gates=frozenset({feature.gate})) as (server, _):
        assert server.request("GET", path).json == stored  # turning a gate off changes nothing by itself
        changed = {**stored, "metadata": {**stored["metadata"], "annotations": {"touched": "yes"}}}
        put = server.request("PUT", path, changed)
        assert put.code == 200, put.body
        assert find(put.json, feature.path) == find(stored, feature.path)
        assert "feature gate" not in put.headers.get("Warning", "")
    with server_on_thread(directory) as (server, _):
        assert find(server.request("GET", path).json, feature.path) == find(stored, feature.path)


@pytest.mark.req("5055-110")
def test_an_update_cannot_add_the_fields_of_a_gate_that_is_off(tmp_path: Path) -> None:
    with server_on_thread(tmp_path / "state", disabled_gates=frozenset({"DRADeviceTaints"})) as (server, _):
        made = server.request("POST", f"{RESOURCE}/resourceslices", {"metadata": {"name": "one"}, **slice_of({})}).json
        made["spec"]["devices"][0]["taints"] = [TAINT]
        put = server.request("PUT", f"{RESOURCE}/resourceslices/one", made)
        assert put.code == 200
        assert "taints" not in put.json["spec"]["devices"][0]
        assert "spec.devices[0].taints" in put.headers["Warning"]


@pytest.mark.req("5055-112", "5055-149", "5027-45", "5027-02")
@pytest.mark.parametrize(
    ("gate", "collection", "spec"),
    [
        ("DRADeviceTaints", f"{RESOURCE}/devicetaintrules", {"taint": TAINT}),
        (
            "DRAAdminControlledDeviceAttributes",
            "/apis/resource.k8s.io/v1alpha3/resourceslicepatches",
            {"devices": {"attributes": {"gpu.example.com/rack": {"string": "r1"}}}},
        ),
    ],
)
def test_rules_and_patches_can_be_cleaned_up_while_their_gate_is_off(
    tmp_path: Path, gate: str, collection: str, spec: dict[str, Any]
) -> None:
    directory = tmp_path / "state"
    with server_on_thread(directory) as (server, _):
        assert server.request("POST", collection, {"metadata": {"name": "one"}, "spec": spec}).code == 201
    with server_on_thread(directory, disabled_gates=frozenset({gate})) as (server, _):
        assert [item["metadata"]["name"] for item in server.request("GET", collection).json["items"]] == ["one"]
        assert server.request("DELETE", f"{collection}/one").code == 200
        assert server.request("GET", f"{collection}/one").code == 404


@pytest.mark.req("5055-117", "5055-119", "5027-44", "5027-47")
def test_a_gate_changes_nothing_for_objects_that_do_not_use_it(tmp_path: Path) -> None:
    plain = {
        f"{RESOURCE}/resourceslices": slice_of({"attributes": {"model": {"string": "H100"}}}),
        CLAIMS: {"spec": {"devices": {"requests": [request()]}}},
    }
    stored: list[list[Any]] = []
    for off in (frozenset[str](), frozenset({"DRADeviceTaints", "DRADeviceTaintRules"})):
        with server_on_thread(tmp_path / f"state-{len(off)}", disabled_gates=off) as (server, _):
            answers = [server.request("POST", at, {"metadata": {"name": "one"}, **it}) for at, it in plain.items()]
            assert not any("Warning" in answer.headers for answer in answers)
            stored.append([answer.json["spec"] for answer in answers])
    assert stored[0] == stored[1]


@pytest.mark.req("5055-119", "5027-44")
def test_fields_of_a_gate_that_is_on_are_taken_without_warnings(tmp_path: Path) -> None:
    with server_on_thread(tmp_path / "state") as (server, _):
        for number, feature in enumerate(FEATURES):
            _, warning = create(server, feature, f"object-{number}")
            assert "dropped" not in warning

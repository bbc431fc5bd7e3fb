"""Stock kubectl knows every kind that is served: lists, describes and explains it, in every form of output."""

from __future__ import annotations

import json

import pytest

from live_server import Kubectl, LiveServer

OWN = (
    "resourceclaims",
    "resourceclaimtemplates",
    "resourceslices",
    "deviceclasses",
    "devicetaintrules",
    "resourceslicepatches",
    "managedclusters",
    "placements",
    "placementdecisions",
)


@pytest.fixture(scope="module")
def listable(kubectl: Kubectl) -> str:
    """All resources that can be listed, as one argument of kubectl."""
    return ",".join(kubectl("api-resources", "--verbs=list", "-o", "name").split())


@pytest.mark.req("implied-1")
@pytest.mark.parametrize("form", ["wide", "json", "yaml", "name"])
def test_every_kind_is_listed_in_every_form(kubectl: Kubectl, listable: str, form: str) -> None:
    listed = kubectl("get", listable, "-A", "-o", form)
    assert "kube-system" in listed
    if form == "json":
        kinds = {item["kind"] for item in json.loads(listed)["items"]}
        assert {"Namespace", "ClusterRole", "ConfigMap"} <= kinds


@pytest.mark.req("implied-1")
def test_every_kind_is_described(kubectl: Kubectl, listable: str) -> None:
    without_roles = ",".join(name for name in listable.split(",") if "role" not in name)  # hundreds of them
    assert "kube-system" in kubectl("describe", without_roles, "-A")


@pytest.mark.req("implied-1")
@pytest.mark.parametrize("resource", OWN)
def test_kinds_of_devices_and_clusters_are_explained(kubectl: Kubectl, resource: str) -> None:
    explained = kubectl("explain", resource)
    assert "KIND:" in explained
    assert "spec" in explained or "status" in explained


@pytest.mark.req("implied-1")
def test_the_state_of_a_claim_is_a_column(kubectl: Kubectl, server: LiveServer, namespace: str) -> None:
    path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
    spec = {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}}
    assert server.request("POST", path, {"metadata": {"name": "claim"}, "spec": spec}).code == 201

    def state() -> str:
        return kubectl("get", "resourceclaim", "claim", "-n", namespace, "--no-headers").split()[1]

    def become(**status: object) -> None:
        patch = {"status": status}
        assert server.request("PATCH", f"{path}/claim/status", patch, "application/merge-patch+json").code == 200

    assert state() == "pending"
    become(allocation={"devices": {"results": []}})
    assert state() == "allocated"
    become(reservedFor=[{"resource": "pods", "name": "p", "uid": "u"}])
    assert state() == "allocated,reserved"

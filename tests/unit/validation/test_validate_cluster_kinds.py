"""Managed clusters, their sets, and placements (Open Cluster Management)."""

from __future__ import annotations

from typing import Any

import pytest

from dray import validation
from dray.api.cluster.managed_cluster import TAINT_UNAVAILABLE, TAINT_UNREACHABLE
from dray.api.times import Time

NOW = Time("2026-06-01T12:00:00Z")
GROUP = "cluster.open-cluster-management.io"


def a_cluster(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "ManagedCluster", "metadata": {"name": "cluster1"}, "spec": spec}


def a_placement(version: str = "v1beta1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Placement",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": spec,
    }


TAINTS = [
    ({"key": "gpu", "effect": "NoSelect"}, set()),
    ({"key": "foo.example.com/bar", "effect": "NoSelectIfNew", "value": "v"}, set()),
    ({"key": TAINT_UNAVAILABLE, "effect": "NoSelect"}, set()),
    ({"key": TAINT_UNREACHABLE, "effect": "PreferNoSelect"}, set()),
    ({"key": "gpu", "effect": "NoSelect", "timeAdded": "2021-11-05T14:00:00+08:00"}, set()),
    ({"key": "gpu", "effect": "NoSelect", "timeAdded": None}, set()),
    ({"effect": "NoSelect"}, {("Required", "key")}),
    ({"key": "-x", "effect": "NoSelect"}, {("Invalid", "key")}),
    ({"key": "a" * 316, "effect": "NoSelect"}, set()),
    ({"key": "a" * 317, "effect": "NoSelect"}, {("TooLong", "key")}),
    ({"key": "a", "effect": "NoSelect", "value": "v" * 1024}, set()),
    ({"key": "a", "effect": "NoSelect", "value": "v" * 1025}, {("TooLong", "value")}),
    ({"key": "a"}, {("Required", "effect")}),
    ({"key": "a", "effect": "NoSchedule"}, {("NotSupported", "effect")}),
]


@pytest.mark.req("OCM-01", "OCM-02", "OCM-03", "OCM-04", "OCM-05", "OCM-06")
@pytest.mark.parametrize(("taint", "expected"), TAINTS)
def test_taints_of_clusters(verdict: Any, taint: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    cluster = a_cluster(taints=[taint], hubAcceptsClient=True, leaseDurationSeconds=60)
    assert verdict(cluster) == {(reason, f"spec.taints[0].{field}") for reason, field in expected}


@pytest.mark.req("OCM-05", "OCM-43", "SVS-73")
def test_the_server_fills_in_when_a_taint_was_added() -> None:
    given = {"key": "a", "effect": "NoSelect", "timeAdded": "2021-01-01T00:00:00Z"}
    spec = validation.default(a_cluster(taints=[{"key": "b", "effect": "NoSelect"}, given]), now=NOW)["spec"]
    assert [taint["timeAdded"] for taint in spec["taints"]] == [NOW, "2021-01-01T00:00:00Z"]
    assert spec["leaseDurationSeconds"] == 60


TOLERATIONS = [
    ({"key": "gpu", "operator": "Exists"}, set()),
    ({"operator": "Exists"}, set()),
    ({"operator": "Equal"}, set()),  # SVS-77: the condition PlacementMisconfigured says so
    ({"key": "-x", "operator": "Exists"}, {("Invalid", "key")}),
    ({"key": "a" * 317, "operator": "Exists"}, {("TooLong", "key")}),
    ({"key": "a", "operator": "In"}, {("NotSupported", "operator")}),
    ({"key": "a", "value": "v" * 1025}, {("TooLong", "value")}),
    ({"key": "a", "operator": "Exists", "effect": "NoSelect", "tolerationSeconds": 90}, set()),
    ({"key": "a", "operator": "Exists", "effect": "NoSelectIfNew"}, set()),
    ({"key": "a", "operator": "Exists", "effect": "NoExecute"}, {("NotSupported", "effect")}),
]


@pytest.mark.req("OCM-07", "OCM-08", "OCM-10", "OCM-11", "OCM-12", "OCM-13", "OCM-40", "SVS-77")
@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
@pytest.mark.parametrize(("toleration", "expected"), TOLERATIONS)
def test_tolerations(verdict: Any, version: str, toleration: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    found = verdict(a_placement(version, tolerations=[toleration]))
    assert found == {(reason, f"spec.tolerations[0].{field}") for reason, field in expected}


@pytest.mark.req("OCM-09")
def test_tolerations_compare_values_by_default() -> None:
    spec = validation.default(a_placement(tolerations=[{"key": "a", "value": "b"}]))["spec"]
    assert spec["tolerations"] == [{"key": "a", "operator": "Equal", "value": "b"}]


@pytest.mark.req("OCM-14", "OCM-46", "SVS-72", "SVS-81")
@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
def test_a_null_spec_is_an_empty_one(verdict: Any, version: str) -> None:
    placement = a_placement(version)
    placement["spec"] = None
    assert verdict(placement) == set()
    assert validation.default(placement)["spec"] == {}


@pytest.mark.req("OCM-07")
def test_other_fields_of_placements(verdict: Any) -> None:
    config = {"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "r", "scoreName": "s"}}, "weight": 11}
    assert verdict(a_placement(numberOfClusters=-1)) == {("Invalid", "spec.numberOfClusters")}
    assert verdict(a_placement(clusterSets=["a"], numberOfClusters=3)) == set()
    path = "spec.prioritizerPolicy"
    assert verdict(a_placement(prioritizerPolicy={"mode": "X"})) == {("NotSupported", f"{path}.mode")}
    assert verdict(a_placement(prioritizerPolicy={"configurations": [config]})) == {
        ("Invalid", f"{path}.configurations[0].weight")
    }


def test_sets_and_bindings(verdict: Any) -> None:
    cluster_set = {"apiVersion": f"{GROUP}/v1beta2", "kind": "ManagedClusterSet", "metadata": {"name": "s"}, "spec": {}}
    assert verdict(cluster_set) == set()
    binding = {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "s", "namespace": "default"},
        "spec": {"clusterSet": "s"},
    }
    assert verdict(binding) == set()
    assert verdict({**binding, "spec": {"clusterSet": "t"}}) == {("Invalid", "spec.clusterSet")}
    assert verdict({**binding, "spec": {}}) == {("Required", "spec.clusterSet")}


def test_cluster_names_are_namespace_names(verdict: Any, edit: Any) -> None:
    assert verdict(edit(a_cluster(), {"metadata.name": "a.b"})) == {("Invalid", "metadata.name")}

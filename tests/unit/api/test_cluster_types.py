"""The types of cluster.open-cluster-management.io: the seed's manifests, what is written and what is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from dray.api import cluster, codec
from dray.api.cluster import (
    AddOnPlacementScore,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    Placement,
    PlacementDecision,
)
from dray.api.cluster.managed_cluster import EFFECTS, TAINT_UNAVAILABLE, TAINT_UNREACHABLE
from dray.api.meta import Object
from dray.api.registry import CLUSTER_GROUP

CLUSTER = """
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata:
  name: cluster1
  labels:
    cluster.open-cluster-management.io/clusterset: clusterset1
spec:
  hubAcceptsClient: true
  taints:
    - key: gpu
      value: "true"
      effect: "NoSelectIfNew"
      timeAdded: "2021-07-06T15:00:00+08:00"
    - key: unreachable
      effect: NoSelect
      timeAdded: ~
"""

FULL: dict[type[Object], dict[str, Any]] = {
    ManagedCluster: {
        "metadata": {"name": "cluster1"},
        "spec": {
            "managedClusterClientConfigs": [{"url": "https://cluster1:6443", "caBundle": "Y2E="}],
            "hubAcceptsClient": True,
            "leaseDurationSeconds": 30,
            "taints": [{"key": "gpu", "value": "true", "effect": "NoSelect", "timeAdded": "2026-06-01T12:00:00Z"}],
        },
        "status": {
            "conditions": [
                {
                    "type": "ManagedClusterConditionAvailable",
                    "status": "True",
                    "lastTransitionTime": "2026-06-01T12:00:00Z",
                    "reason": "Ready",
                    "message": "",
                }
            ],
            "capacity": {"cpu": "8", "memory": "32Gi"},
            "allocatable": {"cpu": "7500m"},
            "version": {"kubernetes": "v1.37.0"},
            "clusterClaims": [{"name": "id.k8s.io", "value": "cluster1"}],
            "managedNamespaces": [{"name": "team", "clusterSet": "set1"}],
        },
    },
    ManagedClusterSet: {
        "metadata": {"name": "set1"},
        "spec": {
            "clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"a": "b"}}},
            "managedNamespaces": [{"name": "team"}],
        },
        "status": {},
    },
    ManagedClusterSetBinding: {
        "metadata": {"name": "set1", "namespace": "ns1"},
        "spec": {"clusterSet": "set1"},
        "status": {},
    },
    Placement: {
        "metadata": {"name": "placement1", "namespace": "ns1"},
        "spec": {
            "clusterSets": ["set1"],
            "numberOfClusters": 2,
            "predicates": [
                {
                    "requiredClusterSelector": {
                        "labelSelector": {"matchLabels": {"region": "eu"}},
                        "claimSelector": {"matchExpressions": [{"key": "platform", "operator": "Exists"}]},
                        "celSelector": {"celExpressions": ["true"]},
                    }
                }
            ],
            "prioritizerPolicy": {
                "mode": "Exact",
                "configurations": [
                    {
                        "scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "a"}},
                        "weight": 0,
                    }
                ],
            },
            "spreadPolicy": {
                "spreadConstraints": [
                    {
                        "topologyKey": "region",
                        "topologyKeyType": "Label",
                        "maxSkew": 1,
                        "whenUnsatisfiable": "ScheduleAnyway",
                    }
                ]
            },
            "tolerations": [
                {"key": "gpu", "operator": "Equal", "value": "true", "effect": "NoSelect", "tolerationSeconds": 0}
            ],
            "decisionStrategy": {
                "groupStrategy": {
                    "decisionGroups": [
                        {
                            "groupName": "canary",
                            "groupClusterSelector": {"labelSelector": {"matchLabels": {"canary": "true"}}},
                        }
                    ],
                    "clustersPerDecisionGroup": "20%",
                }
            },
            "sortBy": "Score",
            "scoreRateLimit": "1m",
        },
        "status": {
            "numberOfSelectedClusters": 1,
            "decisionGroups": [
                {
                    "decisionGroupIndex": 0,
                    "decisionGroupName": "",
                    "decisions": ["placement1-decision-1"],
                    "clusterCount": 1,
                }
            ],
            "lastScoreUpdateTime": "2026-06-01T12:00:00Z",
        },
    },
    PlacementDecision: {
        "metadata": {"name": "placement1-decision-1", "namespace": "ns1"},
        "status": {"decisions": [{"clusterName": "cluster1", "reason": "", "score": 100}]},
    },
    AddOnPlacementScore: {
        "metadata": {"name": "demo", "namespace": "cluster1"},
        "status": {"scores": [{"name": "a", "value": -5}], "validUntil": "2026-06-01T12:00:00Z"},
    },
}


@pytest.mark.parametrize("kind", FULL, ids=lambda kind: kind.__name__)
def test_every_field_survives_the_round_trip(kind: type[Object]) -> None:
    reading = codec.read(FULL[kind], kind)
    assert reading.obj is not None, reading.errors
    assert reading.unknown == ()
    assert json.loads(codec.encode(reading.obj)) == FULL[kind]
    assert codec.decode(codec.encode(reading.obj), kind) == reading.obj


@pytest.mark.req("OCM-01", "OCM-05")
def test_the_seed_cluster_has_taints_with_times_in_any_zone_or_none() -> None:
    read = codec.read(yaml.safe_load(CLUSTER), ManagedCluster).obj
    assert read is not None
    gpu, unreachable = read.spec.taints
    assert (gpu.key, gpu.value, gpu.effect, gpu.time_added) == ("gpu", "true", "NoSelectIfNew", "2021-07-06T07:00:00Z")
    assert unreachable.time_added is None


@pytest.mark.req("OCM-14", "OCM-46", "SVS-72", "SVS-81")
@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_a_null_spec_is_an_empty_one_in_either_version(version: str) -> None:
    document = {
        "apiVersion": f"{CLUSTER_GROUP}/{version}",
        "kind": "Placement",
        "metadata": {"name": "a"},
        "spec": None,
    }
    read = codec.read(document, Placement).obj
    assert read is not None
    assert read.spec == cluster.PlacementSpec()
    assert json.loads(codec.encode(read))["spec"] == {}


@pytest.mark.req("OCM-07", "OCM-12", "OCM-40")
def test_tolerations_have_all_five_fields_and_seconds_may_be_absent_or_zero() -> None:
    spec = {"tolerations": [{"operator": "Exists", "effect": "NoSelect"}, {"key": "a", "tolerationSeconds": 0}]}
    read = codec.read({"spec": spec}, Placement).obj
    assert read is not None
    assert [toleration.toleration_seconds for toleration in read.spec.tolerations] == [None, 0]
    assert json.loads(codec.encode(read.spec)) == spec


@pytest.mark.req("OCM-06", "OCM-42")
def test_the_keys_of_the_automatic_taints() -> None:
    assert TAINT_UNAVAILABLE == "cluster.open-cluster-management.io/unavailable"
    assert TAINT_UNREACHABLE == "cluster.open-cluster-management.io/unreachable"


@pytest.mark.req("X-07")
def test_clusters_unlike_devices_can_be_merely_avoided() -> None:
    assert "PreferNoSelect" in EFFECTS


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"prioritizerPolicy": {}},
        {"prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"builtIn": "Steady"}, "weight": 0}]}},
        {"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": 3}}},
        {"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "100%"}}},
        {"numberOfClusters": 0},
    ],
)
def test_what_was_not_given_is_not_written_and_zeros_that_were_are(spec: dict[str, Any]) -> None:
    read = codec.read({"spec": spec}, Placement).obj
    assert read is not None
    assert json.loads(codec.encode(read.spec)) == spec


def test_a_wrong_type_is_named_with_its_field() -> None:
    document = {"spec": {"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": [1]}}}}
    (error,) = codec.read(document, Placement).errors
    assert error.field == "spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup"

"""The clients that Python programs use, unchanged: `kubernetes` and `kr8s`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes as published
import pytest
from kubernetes.client.exceptions import ApiException

import builders
from live_server import LiveServer
from patience import PATIENCE

kubernetes: Any = published  # its annotations ask for model objects where plain values do


@pytest.fixture(scope="module")
def official(server: LiveServer) -> Iterator[Any]:
    """The official client as the admin."""
    with kubernetes.config.new_client_from_config(str(server.kubeconfig)) as client:
        yield client


def claim(name: str) -> dict[str, Any]:
    return builders.claim(name, builders.request("one"), namespace="")


def test_official_client_creates_reads_patches_and_deletes(official: Any, namespace: str) -> None:
    claims = kubernetes.client.ResourceV1Api(official)
    made = claims.create_namespaced_resource_claim(namespace, claim("a"))
    assert made.spec.devices.requests[0].exactly.count == 1
    patched = claims.patch_namespaced_resource_claim("a", namespace, {"metadata": {"labels": {"app": "x"}}})
    assert patched.metadata.labels == {"app": "x"}
    claims.create_namespaced_resource_claim(namespace, claim("b"))
    names = [item.metadata.name for item in claims.list_namespaced_resource_claim(namespace).items]
    assert names == ["a", "b"]
    selected = claims.list_namespaced_resource_claim(namespace, label_selector="app=x").items
    assert [item.metadata.name for item in selected] == ["a"]
    patched.metadata.labels = {"app": "y"}
    assert claims.replace_namespaced_resource_claim("a", namespace, patched).metadata.labels == {"app": "y"}
    with pytest.raises(ApiException) as stale:
        claims.replace_namespaced_resource_claim("a", namespace, patched)
    assert stale.value.status == 409
    claims.delete_namespaced_resource_claim("a", namespace)
    claims.delete_collection_namespaced_resource_claim(namespace)
    assert claims.list_namespaced_resource_claim(namespace).items == []


def test_official_client_watches(official: Any, namespace: str) -> None:
    core = kubernetes.client.CoreV1Api(official)
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    seen = []
    watch = kubernetes.watch.Watch()
    limits = {"field_selector": "metadata.name=a", "timeout_seconds": int(PATIENCE)}
    for event in watch.stream(core.list_namespaced_config_map, namespace, **limits):
        seen.append((event["type"], event["object"].data["k"]))
        if event["type"] == "ADDED":
            core.patch_namespaced_config_map("a", namespace, {"data": {"k": "2"}})
        elif event["type"] == "MODIFIED":
            core.delete_namespaced_config_map("a", namespace)
        else:
            watch.stop()
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


def test_official_dynamic_client_finds_every_kind(official: Any, namespace: str) -> None:
    dynamic = kubernetes.dynamic.DynamicClient(official)
    claims = dynamic.resources.get(api_version="resource.k8s.io/v1", kind="ResourceClaim")
    claims.server_side_apply(body=claim("applied"), namespace=namespace, field_manager="tests")
    assert claims.get(name="applied", namespace=namespace).metadata.managedFields[0].manager == "tests"
    placements = dynamic.resources.get(api_version="cluster.open-cluster-management.io/v1beta1", kind="Placement")
    assert placements.get(namespace=namespace).items == []


def test_kr8s_creates_reads_patches_watches_and_deletes(server: LiveServer, namespace: str) -> None:
    program = Path(__file__).with_name("kr8s_program.py")
    done = subprocess.run(
        [sys.executable, str(program), str(server.kubeconfig), namespace],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr

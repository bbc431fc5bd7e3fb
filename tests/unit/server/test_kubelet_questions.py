"""Which kubelet is asked what, from the pod, the node and the request alone."""

from __future__ import annotations

from typing import Any

import pytest

import builders
from dray.api.generated.core import Node, Pod
from dray.api.status import ApiError
from dray.server.kubelets.questions import container_of, kubelet_of, question


def pod(*containers: str, init: tuple[str, ...] = ()) -> Pod:
    listed, first = ([builders.container(name) for name in names] for names in (containers, init))
    return builders.typed(builders.pod(namespace="n", containers=listed, initContainers=first), Pod)


def node(*addresses: tuple[str, str], port: int = 0, **more: Any) -> Node:
    listed = [{"type": kind, "address": address} for kind, address in addresses]
    status = {"addresses": listed, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}, **more.pop("status", {})}
    return builders.typed(builders.manifest("v1", "Node", "node-1", meta=more, status=status), Node)


@pytest.mark.parametrize(
    ("what", "query", "asked"),
    [
        ("log", "follow=true&container=a&limitBytes=9", "/containerLogs/n/p/a?follow=true&limitBytes=9"),
        ("log", "unknown=1", "/containerLogs/n/p/a"),
        ("exec", "command=sh&command=a b&stdin=true&tty=true", "/exec/n/p/a?command=sh&command=a+b&input=1&tty=1"),
        ("exec", "command=ls&stdout=true&stdin=false", "/exec/n/p/a?command=ls&output=1"),
        ("attach", "stdin=1&stderr=1", "/attach/n/p/a?input=1&error=1"),
        ("portforward", "ports=80&ports=81,82", "/portForward/n/p?port=80&port=81%2C82"),
        ("portforward", "", "/portForward/n/p"),
    ],
)
def test_what_is_asked(what: str, query: str, asked: str) -> None:
    assert question(pod("a"), what, f"/x?{query}").uri == asked


@pytest.mark.parametrize(
    ("made", "name", "found"),
    [
        (pod("a"), "", "a"),
        (pod("a", "b"), "b", "b"),
        (pod("a", init=("i",)), "i", "i"),
        (pod("a", init=("i",)), "", "a"),
    ],
)
def test_which_container_is_meant(made: Pod, name: str, found: str) -> None:
    assert container_of(made, name) == found


def test_a_container_that_is_not_meant_is_asked_for() -> None:
    with pytest.raises(ApiError, match=r"choose one of: \[a b\] or one of the init containers: \[i\]"):
        container_of(pod("a", "b", init=("i",)), "")


def test_nodes_are_reached_by_addresses_before_their_own_name() -> None:
    found = kubelet_of(node(("Hostname", "node-1"), ("InternalIP", "10.0.0.1"), ("InternalIP", "10.0.0.2"), port=1234))
    assert (found.hosts, found.port, found.fingerprint, found.websockets) == (("10.0.0.1", "node-1"), 1234, "", False)
    other = kubelet_of(
        node(
            ("Hostname", "real.example.com"),
            ("InternalIP", "10.0.0.1"),
            annotations={"dray.dev/serving-certificate": "sha256:x"},
            status={"declaredFeatures": ["ExtendWebSocketsToKubelet"]},
        )
    )
    assert other.hosts == ("real.example.com", "10.0.0.1")
    assert (other.port, other.fingerprint, other.websockets) == (10250, "sha256:x", True)
    with pytest.raises(ApiError, match="no preferred addresses"):
        kubelet_of(node())

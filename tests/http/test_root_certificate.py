"""Every namespace has the certificate of the authority, whoever deletes or changes it."""

from __future__ import annotations

import time
from collections.abc import Callable

from live_server import LiveServer

NAME = "kube-root-ca.crt"


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether something happens soon; the server does it beside its requests."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def certificate(server: LiveServer, namespace: str) -> str:
    answer = server.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/{NAME}")
    return str(answer.json.get("data", {}).get("ca.crt", ""))


def test_it_is_there_and_comes_back(server: LiveServer, namespace: str) -> None:
    assert eventually(lambda: certificate(server, namespace) == certificate(server, "default") != "")
    right = certificate(server, namespace)
    assert right.startswith("-----BEGIN CERTIFICATE-----")
    path = f"/api/v1/namespaces/{namespace}/configmaps/{NAME}"
    server.request("DELETE", path)
    assert eventually(lambda: certificate(server, namespace) == right)
    forged = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": {"ca.crt": "forged"}}
    server.request("PUT", path, forged)
    assert eventually(lambda: certificate(server, namespace) == right)

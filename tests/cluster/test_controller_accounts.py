"""`dray controllers --use-service-account-credentials`: each controller has its own rights over HTTP, too."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dray_process import DrayProcess
from live_server import LiveServer, running_server
from patience import PATIENCE, eventually

MANAGER = "system:kube-controller-manager"
TOKEN = "the-token-of-the-manager"
ACCOUNT = "system:serviceaccount:kube-system:"


class Cluster:
    """A server with an audit log, and somebody with the rights of a controller manager and no more."""

    def __init__(self, server: LiveServer, audit: Path) -> None:
        self.server = server
        self._audit = audit
        config = server.kubeconfig.read_text()
        self.kubeconfig = audit.with_name("manager.kubeconfig")
        self.kubeconfig.write_text(re.sub(r"token: .*", f"token: {TOKEN}", config))

    @contextmanager
    def controllers(self, *options: str) -> Iterator[Path]:
        """The controllers while they lead; what they say."""
        log = self._audit.with_name("controllers.log")
        words = ("controllers", "--kubeconfig", str(self.kubeconfig), *options)
        with log.open("w") as sink, DrayProcess(*words, stdout=sink, stderr=subprocess.STDOUT) as process:
            try:
                eventually(lambda: "leading as" in log.read_text())
                yield log
            finally:
                process.terminate()
                assert process.wait(PATIENCE) == 0, log.read_text()

    def writes(self) -> list[dict[str, Any]]:
        """The audit events of all writes."""
        events = [json.loads(line) for line in self._audit.read_text().splitlines() if line.endswith("}")]
        return [event for event in events if event["verb"] not in ("get", "list", "watch")]

    def writers(self, resource: str) -> set[str]:
        """Who tried to write objects of a resource."""
        return {
            event["user"]["username"]
            for event in self.writes()
            if event.get("objectRef", {}).get("resource") == resource
        }

    def refused(self) -> set[str]:
        """Who tried to write what they may not."""
        return {event["user"]["username"] for event in self.writes() if event["responseStatus"]["code"] == 403}

    def pods(self, namespace: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.server.request("GET", f"/api/v1/namespaces/{namespace}/pods").json["items"]
        return found

    def deploy(self, namespace: str) -> None:
        labels = {"app": "web"}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "image"}]}}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod}
        body = {"metadata": {"name": "web"}, "spec": spec}
        made = self.server.request("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", body)
        assert made.code == 201, made.body


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    tokens, audit = tmp_path / "tokens.csv", tmp_path / "audit.jsonl"
    tokens.write_text(f"{TOKEN},{MANAGER},1\n")
    tokens.chmod(0o600)
    options = ("--token-file", str(tokens), "--audit-log", str(audit))
    with running_server(tmp_path / "state", *options) as server:
        yield Cluster(server, audit)


@pytest.mark.req("4381-143", "implied-16")
def test_each_controller_writes_as_its_own_account(cluster: Cluster) -> None:
    namespace = cluster.server.new_namespace()
    with cluster.controllers("--use-service-account-credentials"):
        cluster.deploy(namespace)
        eventually(lambda: len(cluster.pods(namespace)) == 2)
        # The audit log is written a few times a second.
        eventually(lambda: bool(cluster.writers("pods")) and bool(cluster.writers("replicasets")))
        accounts = cluster.server.request("GET", "/api/v1/namespaces/kube-system/serviceaccounts").json["items"]
    assert {"deployment-controller", "replicaset-controller"} <= {one["metadata"]["name"] for one in accounts}
    assert cluster.writers("replicasets") >= {f"{ACCOUNT}deployment-controller"}
    assert cluster.writers("pods") == {f"{ACCOUNT}replicaset-controller"}
    by_manager = {event["objectRef"]["resource"] for event in cluster.writes() if event["user"]["username"] == MANAGER}
    assert by_manager <= {"leases", "serviceaccounts"}


def test_a_controller_without_its_role_is_refused_and_the_others_go_on(cluster: Cluster) -> None:
    namespace = cluster.server.new_namespace()
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:controller:replicaset-controller"
    assert cluster.server.request("DELETE", binding).code == 200
    with cluster.controllers("--use-service-account-credentials") as log:
        cluster.deploy(namespace)
        eventually(lambda: "replicaset-controller" in log.read_text())
        eventually(lambda: bool(cluster.refused()))
    assert cluster.refused() == {f"{ACCOUNT}replicaset-controller"}
    assert cluster.pods(namespace) == []
    assert f'"{ACCOUNT}replicaset-controller" cannot ' in log.read_text()


def test_without_the_flag_the_identity_of_the_kubeconfig_is_all_there_is(cluster: Cluster) -> None:
    namespace = cluster.server.new_namespace()
    with cluster.controllers():
        cluster.deploy(namespace)
        eventually(lambda: MANAGER in cluster.writers("replicasets"))
    assert cluster.pods(namespace) == []
    assert not [event for event in cluster.writes() if event["user"]["username"].startswith(ACCOUNT)]

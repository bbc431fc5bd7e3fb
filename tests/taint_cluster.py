"""A `dray up` with simulated GPU nodes for tests of taints, and workloads whose pods hold a GPU each on some node."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from typer.testing import CliRunner

from dray.cli.main import app
from dray_process import run_dray
from live_server import Kubectl, LiveServer, running_server
from patience import eventually

NODES = 4
MERGE = "application/merge-patch+json"


class Done(NamedTuple):
    """How a command ended."""

    exit_code: int
    stdout: str
    stderr: str


class TaintCluster:
    """The cluster, and dray, kubectl and plain requests as its admin."""

    def __init__(self, server: LiveServer, home: Path) -> None:
        self.server = server
        self.kubectl = Kubectl(server, home)

    def dray(self, *arguments: str, stdin: str = "", kubeconfig: Path | None = None) -> Done:
        """A `dray` command, run to its end: in this process, or in its own if it waits, and so watches."""
        where = {"KUBECONFIG": str(kubeconfig or self.server.kubeconfig)}
        if "--wait" not in arguments:
            result = CliRunner().invoke(app, list(arguments), input=stdin, env=where)
            return Done(result.exit_code, result.stdout, result.stderr)
        done = run_dray(*arguments, stdin=stdin, env={**os.environ, **where})
        return Done(done.returncode, done.stdout, done.stderr)

    def get(self, path: str) -> Any:
        """What is there, by its path without `/api` or `/apis`: `v1/pods`, `resource.k8s.io/v1/devicetaintrules`."""
        answer = self.server.request("GET", f"/{_root(path)}/{path}")
        assert answer.code == 200, answer.body
        return answer.json

    def create(self, path: str, document: dict[str, Any]) -> Any:
        """Stores an object."""
        answer = self.server.request("POST", f"/{_root(path)}/{path}", document)
        assert answer.code == 201, answer.body
        return answer.json

    def patch(self, path: str, document: dict[str, Any]) -> Any:
        """Merges a patch into an object."""
        answer = self.server.request("PATCH", f"/{_root(path)}/{path}", document, MERGE)
        assert answer.code == 200, answer.body
        return answer.json

    def delete(self, path: str) -> None:
        """Deletes an object, or all of a collection."""
        answer = self.server.request("DELETE", f"/{_root(path)}/{path}")
        assert answer.code in (200, 202), answer.body

    def run_pods(self, workload: str, replicas: int, node: str, **claim: Any) -> list[str]:
        """A Deployment whose pods hold a GPU each, on this node until they have to leave; their names once all run.

        `claim` are further fields of the claim's request.
        """
        others = [f"node-{number}" for number in range(1, NODES + 1) if f"node-{number}" != node]
        for other in others:
            self.patch(f"v1/nodes/{other}", {"spec": {"unschedulable": True}})
        template, deployment = _workload(workload, replicas, claim)
        self.create("resource.k8s.io/v1/namespaces/default/resourceclaimtemplates", template)
        self.create("apps/v1/namespaces/default/deployments", deployment)
        eventually(lambda: len(self.running(workload)) == replicas)
        for other in others:
            self.patch(f"v1/nodes/{other}", {"spec": {"unschedulable": None}})
        eventually(lambda: not any(self.node_taints(other) for other in others))
        return self.pods(workload)

    def running(self, workload: str) -> list[dict[str, Any]]:
        """The pods of a workload that run and are not on their way out."""
        found = self.get(f"v1/namespaces/default/pods?labelSelector=app%3D{workload}")["items"]
        is_up = (
            one["status"].get("phase") == "Running" and "deletionTimestamp" not in one["metadata"] for one in found
        )
        return [one for one, is_running in zip(found, is_up, strict=True) if is_running]

    def pods(self, workload: str) -> list[str]:
        """The names of these."""
        return sorted(one["metadata"]["name"] for one in self.running(workload))

    def rules(self) -> list[dict[str, Any]]:
        """All rules."""
        found: list[dict[str, Any]] = self.get("resource.k8s.io/v1/devicetaintrules")["items"]
        return found

    def node_taints(self, node: str) -> list[dict[str, Any]]:
        """The taints of a node."""
        found: list[dict[str, Any]] = self.get(f"v1/nodes/{node}")["spec"].get("taints", [])
        return found

    def holders(self, node: str) -> list[str]:
        """The devices of a node that claims hold."""
        return sorted(
            result["device"]
            for claim in self.get("resource.k8s.io/v1/resourceclaims")["items"]
            for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
            if result["pool"] == node
        )

    def clean(self) -> None:
        """Takes away what a test left behind."""
        self.delete("resource.k8s.io/v1/devicetaintrules")
        self.delete("apps/v1/namespaces/default/deployments")
        self.delete("resource.k8s.io/v1/namespaces/default/resourceclaimtemplates")
        for number in range(1, NODES + 1):
            self.patch(f"v1/nodes/node-{number}", {"spec": {"taints": None, "unschedulable": None}})
        eventually(lambda: not self.get("v1/pods")["items"])


def _root(path: str) -> str:
    return "api" if path.startswith("v1/") else "apis"


def _workload(name: str, replicas: int, claim: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", **claim}}
    template = {"metadata": {"name": name}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    pod = {
        "containers": [{"name": "main", "image": "busybox", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": name}],
    }
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
    }
    return template, {"metadata": {"name": name}, "spec": spec}


@contextlib.contextmanager
def taint_cluster(directory: Path, *options: str) -> Iterator[TaintCluster]:
    """A running cluster of NODES nodes with eight GPUs each."""
    simulated = ("--nodes", str(NODES), "--profile", "gpu-8")
    with running_server(directory / "state", *simulated, *options, program="up") as server:
        cluster = TaintCluster(server, directory)
        eventually(lambda: len(cluster.get("resource.k8s.io/v1/resourceslices")["items"]) == NODES)
        yield cluster

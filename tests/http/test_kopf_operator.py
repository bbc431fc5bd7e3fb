"""A kopf operator works on a custom resource: it finds the kind, watches, patches, and lets go of what is deleted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from live_server import LiveServer
from patience import PATIENCE

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "greetings.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "greetings", "kind": "Greeting"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"whom": {"type": "string"}}},
                            "status": {"type": "object", "properties": {"said": {"type": "string"}}},
                        },
                    }
                },
            }
        ],
    },
}


def test_a_kopf_operator_runs_on_a_custom_resource(server: LiveServer, namespace: str, tmp_path: Path) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert server.request("POST", definitions, DEFINITION).code == 201
    path = f"/apis/example.org/v1/namespaces/{namespace}/greetings"
    environment = os.environ | {"KUBECONFIG": str(server.kubeconfig), "HOME": str(tmp_path)}
    program = Path(__file__).with_name("kopf_operator.py")
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace", namespace, str(program)]
    events = server.watch(f"{path}?watch=1")
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as operator:
        try:
            body = {"apiVersion": "example.org/v1", "kind": "Greeting", "metadata": {"name": "a"}}
            assert server.request("POST", path, {**body, "spec": {"whom": "world"}}).code == 201
            greeted = next(found for event in events if (found := event["object"]).get("status", {}).get("said"))
            assert greeted["status"] == {"said": "hello, world"}
            assert greeted["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
            server.request("DELETE", f"{path}/a")
            assert next(event for event in events if event["type"] == "DELETED")
        finally:
            operator.terminate()
            operator.communicate(timeout=PATIENCE)
    events.close()
    assert server.request("DELETE", f"{definitions}/greetings.example.org").code == 200

"""Stock kubectl about identities and rights, and what its typed clients create in protobuf."""

from __future__ import annotations

import base64
import json

import pytest

from live_server import Kubectl, LiveServer


def test_who_am_i(kubectl: Kubectl) -> None:
    if kubectl.knows("auth whoami"):
        said = kubectl("auth", "whoami", "-o", "json")
    else:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        said = kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(review))
    user = json.loads(said)["status"]["userInfo"]
    assert user["username"] == "kubernetes-admin"
    assert "system:masters" in user["groups"]


def test_can_i_follows_roles(kubectl: Kubectl, namespace: str) -> None:
    account = f"system:serviceaccount:{namespace}:reader"

    def may(*what: str) -> str:
        return kubectl.run("auth", "can-i", *what, "-n", namespace, "--as", account).stdout.strip()

    assert kubectl("auth", "can-i", "delete", "nodes") == "yes\n"
    assert may("get", "pods") == "no"
    kubectl("create", "serviceaccount", "reader", "-n", namespace)
    kubectl("create", "role", "read", "--verb=get,list", "--resource=pods", "-n", namespace)
    kubectl("create", "rolebinding", "read", "--role=read", f"--serviceaccount={namespace}:reader", "-n", namespace)
    assert may("get", "pods") == "yes"
    assert may("delete", "pods") == "no"
    assert "pods" in kubectl("auth", "can-i", "--list", "-n", namespace, "--as", account)


def test_a_token_lets_a_service_account_in(kubectl: Kubectl, server: LiveServer, namespace: str) -> None:
    kubectl("create", "serviceaccount", "robot", "-n", namespace)
    if kubectl.knows("create token"):
        token = kubectl("create", "token", "robot", "-n", namespace, "--duration=1h").strip()
    else:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/robot/token"
        token = server.request("POST", path, {"spec": {"expirationSeconds": 3600}}).json["status"]["token"]
    asked = server.request("GET", f"/api/v1/namespaces/{namespace}/pods", Authorization=f"Bearer {token}")
    assert asked.code == 403
    assert f"system:serviceaccount:{namespace}:robot" in asked.json["message"]


@pytest.mark.parametrize(
    ("command", "path", "expected"),
    [
        ("configmap one --from-literal=a=b", "configmaps/one", {"data": {"a": "b"}}),
        (
            "secret generic one --from-literal=a=b",
            "secrets/one",
            {"data": {"a": base64.b64encode(b"b").decode()}, "type": "Opaque"},
        ),
        (
            "quota one --hard=pods=3,gpu.deviceclass.resource.k8s.io/devices=4",
            "resourcequotas/one",
            {"spec": {"hard": {"gpu.deviceclass.resource.k8s.io/devices": "4", "pods": "3"}}},
        ),
        ("serviceaccount one", "serviceaccounts/one", {}),
    ],
)
def test_what_typed_clients_create(
    kubectl: Kubectl, server: LiveServer, namespace: str, command: str, path: str, expected: dict[str, object]
) -> None:
    kubectl("create", *command.split(), "-n", namespace)
    made = server.request("GET", f"/api/v1/namespaces/{namespace}/{path}").json
    assert made["metadata"]["name"] == "one"
    assert {name: made[name] for name in expected} == expected


def test_cluster_roles_of_typed_clients(kubectl: Kubectl, server: LiveServer) -> None:
    kubectl("create", "namespace", "from-kubectl")
    assert server.request("GET", "/api/v1/namespaces/from-kubectl").code == 200
    kubectl("create", "clusterrole", "watch-nodes", "--verb=watch", "--resource=nodes", "--resource-name=n1")
    kubectl("create", "clusterrolebinding", "watch-nodes", "--clusterrole=watch-nodes", "--user=eve")
    group = "/apis/rbac.authorization.k8s.io/v1"
    role = server.request("GET", f"{group}/clusterroles/watch-nodes").json
    assert role["rules"] == [
        {"apiGroups": [""], "resourceNames": ["n1"], "resources": ["nodes"], "verbs": ["watch"]},
    ]
    binding = server.request("GET", f"{group}/clusterrolebindings/watch-nodes").json
    assert binding["roleRef"]["name"] == "watch-nodes"
    assert [subject["name"] for subject in binding["subjects"]] == ["eve"]

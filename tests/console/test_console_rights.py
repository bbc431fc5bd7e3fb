"""Who may look into containers: the API server asks that of its callers, and the node of everybody."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from live_server import Kubectl, LiveServer
from patience import PATIENCE

Run = Callable[..., str]
ROLES = "/apis/rbac.authorization.k8s.io/v1"
MERGE = "application/merge-patch+json"


def allow(server: LiveServer, namespace: str, user: str, verbs: list[str], resources: list[str]) -> None:
    """Gives a user rights in a namespace."""
    rule = {"apiGroups": [""], "resources": resources, "verbs": verbs}
    base = f"{ROLES}/namespaces/{namespace}"
    assert server.request("POST", f"{base}/roles", {"metadata": {"name": user}, "rules": [rule]}).code == 201
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "Role", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    body = {"metadata": {"name": user}, "subjects": [subject], "roleRef": role}
    assert server.request("POST", f"{base}/rolebindings", body).code == 201


@pytest.mark.parametrize("protocol", ["true", "false"])
@pytest.mark.parametrize(
    ("verbs", "resources", "may"),
    [
        (["get"], ["pods", "pods/log"], {"logs"}),
        (["get"], ["pods", "pods/exec", "pods/attach", "pods/portforward"], set()),
        (["get", "create"], ["pods", "pods/exec"], {"exec"}),
        (["get"], ["pods"], set()),
    ],
)
def test_every_way_in_has_a_right_of_its_own_and_reading_is_not_typing(
    kubectl: Kubectl,
    sleeper: str,
    verbs: list[str],
    resources: list[str],
    may: set[str],
    protocol: str,
    server: LiveServer,
) -> None:
    user = f"eve-{server.new_namespace()}"
    allow(server, sleeper, user, verbs, resources)
    commands = {"logs": ["logs", "p"], "exec": ["exec", "p", "--", "true"], "attach": ["attach", "p"]}
    environment = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": protocol}
    for name, command in commands.items():
        done = kubectl.run("-n", sleeper, "--as", user, *command, **environment)
        if name in may:
            assert done.returncode == 0, done.stderr
        else:
            assert done.returncode == 1
            assert "forbidden" in done.stderr.lower()


class Caller:
    """Somebody who goes to the node without the API server."""

    def __init__(self, port: int, certificate: Path | None = None, key: Path | None = None, token: str = "") -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=PATIENCE)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str) -> tuple[int, bytes]:
        """Code and body of the answer, after which the connection ends."""
        try:
            self._connection.request("GET", path, headers=self._headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        finally:
            self._connection.close()


def test_a_node_answers_nobody_whom_the_api_server_does_not_vouch_for(
    server: LiveServer, node: Any, namespace: str, run: Run
) -> None:
    run("echo secret; sleep 600")
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    server.request("POST", accounts, {"metadata": {"name": "default"}})
    account = server.request("POST", f"{accounts}/default/token", {"spec": {}})
    assert account.code == 201, account.body
    server.request("GET", f"/api/v1/namespaces/{namespace}/pods/p/log")  # for which the server gets a certificate
    own = server.directory / "pki" / "kubelet-client.crt"
    for path in ("/healthz", "/pods", f"/containerLogs/{namespace}/p/main", "/no/such/page"):
        good = 404 if "no/such" in path else 200
        assert Caller(node.port).get(path)[0] == 401
        assert Caller(node.port, token="made-up").get(path)[0] == 401
        code, body = Caller(node.port, token=account.json["status"]["token"]).get(path)
        assert (code, b"secret" in body) == (403, False)
        assert Caller(node.port, token=server.token).get(path)[0] == good
        assert Caller(node.port, own, own.with_suffix(".key")).get(path)[0] == good


def test_who_may_only_read_of_a_node_runs_nothing_there(server: LiveServer, node: Any, sleeper: str) -> None:
    """WebSockets begin with a GET."""
    rule = {"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}
    accounts = f"/api/v1/namespaces/{sleeper}/serviceaccounts"
    server.request("POST", accounts, {"metadata": {"name": "reader"}})
    server.request("POST", f"{ROLES}/clusterroles", {"metadata": {"name": sleeper}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": sleeper}
    role = {"kind": "ClusterRole", "name": sleeper, "apiGroup": "rbac.authorization.k8s.io"}
    body = {"metadata": {"name": sleeper}, "subjects": [subject], "roleRef": role}
    assert server.request("POST", f"{ROLES}/clusterrolebindings", body).code == 201
    token = server.request("POST", f"{accounts}/reader/token", {"spec": {}}).json["status"]["token"]
    assert Caller(node.port, token=token).get(f"/containerLogs/{sleeper}/p/main")[0] == 200
    for path in ("exec", "attach"):
        assert Caller(node.port, token=token).get(f"/{path}/{sleeper}/p/main?command=id&output=1")[0] == 403
    assert Caller(node.port, token=token).get(f"/portForward/{sleeper}/p?port=1")[0] == 403


def test_a_certificate_of_somebody_else_is_no_certificate(node: Any, tmp_path: Path) -> None:
    from dray.node.endpoints import serving_certificate

    root = tmp_path / "other"
    root.mkdir()
    serving_certificate.make(root, "kube-apiserver-kubelet-client", "127.0.0.1")
    certificate, key = root / "pki" / "serving.crt", root / "pki" / "serving.key"
    with pytest.raises(OSError):  # the handshake ends, which some see only when they read
        Caller(node.port, certificate, key).get("/healthz")


@pytest.fixture
def node_object(server: LiveServer, node: Any) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Changes the Node object, and changes it back."""
    path = "/api/v1/nodes/real"
    before = server.request("GET", path).json

    def change(patch: dict[str, Any]) -> None:
        where = f"{path}/status" if "status" in patch else path
        assert server.request("PATCH", where, patch, MERGE).code == 200

    yield change
    change({"metadata": {"annotations": before["metadata"]["annotations"]}})
    change({"status": {key: before["status"][key] for key in ("declaredFeatures", "daemonEndpoints", "addresses")}})
    assert node.process.poll() is None


def test_a_node_that_is_not_the_one_that_registered_is_not_talked_to(
    kubectl: Kubectl, sleeper: str, node_object: Callable[[dict[str, Any]], None]
) -> None:
    node_object({"metadata": {"annotations": {"dray.dev/serving-certificate": f"sha256:{'0' * 64}"}}})
    for command in (["logs", "p"], ["exec", "p", "--", "true"]):
        done = kubectl.run("-n", sleeper, *command)
        assert done.returncode == 1
        assert "its certificate is not the one that the Node object names" in done.stderr


def test_a_node_that_cannot_be_reached_is_named(
    kubectl: Kubectl, sleeper: str, node_object: Callable[[dict[str, Any]], None]
) -> None:
    node_object({"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}})
    done = kubectl.run("-n", sleeper, "logs", "p")
    assert done.returncode == 1
    assert "cannot reach the kubelet of node real (127.0.0.1:1" in done.stderr


@pytest.mark.parametrize(
    "command", [["exec", "-i", "p", "--", "tr", "a-z", "A-Z"], ["exec", "p", "--", "sh", "-c", "exit 9"]]
)
def test_kubelets_that_do_not_speak_websockets_are_spoken_to_in_spdy(
    kubectl: Kubectl, sleeper: str, node_object: Callable[[dict[str, Any]], None], command: list[str]
) -> None:
    node_object({"status": {"declaredFeatures": []}})
    done = kubectl.run("-n", sleeper, *command, stdin="typed\n")
    assert (done.returncode, done.stdout) == ((0, "TYPED\n") if "-i" in command else (9, ""))


def test_pods_that_only_pretend_say_so(kubectl: Kubectl, server: LiveServer, namespace: str) -> None:
    labels = {"dray.dev/simulated": "true"}
    server.request("POST", "/api/v1/nodes", {"metadata": {"name": f"fake-{namespace}", "labels": labels}})
    spec = {"nodeName": f"fake-{namespace}", "containers": [{"name": "main", "image": "nginx"}]}
    server.request("POST", f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": "p"}, "spec": spec})
    said = kubectl("-n", namespace, "logs", "p")
    assert said.startswith("(simulated) ")
    assert f"the simulated node fake-{namespace}" in said
    for command in (["exec", "p", "--", "ls"], ["attach", "p"], ["port-forward", "p", ":80"]):
        server.request(
            "PATCH", f"/api/v1/namespaces/{namespace}/pods/p/status", {"status": {"phase": "Running"}}, MERGE
        )
        done = kubectl.run("-n", namespace, *command)
        assert done.returncode == 1
        assert "where nothing really runs" in done.stderr, done.stderr


def test_pods_without_a_node_and_odd_questions(server: LiveServer, namespace: str) -> None:
    base = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"containers": [{"name": name, "image": "x"} for name in ("a", "b")]}
    assert server.request("POST", base, {"metadata": {"name": "p"}, "spec": spec}).code == 201
    asked = server.request("GET", f"{base}/p/log?container=a")
    assert (asked.code, asked.body) == (200, b"")
    for path, code, why in [
        ("p/log", 400, "a container name must be specified for pod p, choose one of: [a b]"),
        ("p/log?container=c", 400, "container c is not valid for pod p"),
        ("p/log?container=a&tailLines=-1", 422, "tailLines"),
        (f"p/log?container=a&sinceSeconds={10**400}", 422, "sinceSeconds"),
        ("p/log?container=a&sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422, "at most one of"),
        ("p/exec?container=a&stdout=1&command=ls", 400, "does not have a host assigned"),
        ("p/exec?container=a&command=ls", 400, "at least 1 of stdin, stdout, stderr"),
        ("p/exec?container=a&stdout=1", 400, "at least one command"),
        ("none/log", 404, 'pods "none" not found'),
    ]:
        answer = server.request("GET", f"{base}/{path}")
        assert (answer.code, why in answer.json["message"]) == (code, True), answer.body

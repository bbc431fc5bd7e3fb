"""Requests for certificates of the built-in signers: approved by whom, signed for whom, and believed afterwards."""

from __future__ import annotations

import base64
import datetime as dt
import ssl
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from live_server import LiveServer
from patience import PATIENCE

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
KEY = ec.generate_private_key(ec.SECP256R1())
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
SIGNATURE = "digital signature"


def request_for(*users_then_groups: str, names: tuple[str, ...] = (), users: int = 1) -> str:
    """For the first of these, or as many as there are `users`; the others are groups."""
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in users_then_groups[users:]]
    subject += [x509.NameAttribute(NameOID.COMMON_NAME, user) for user in users_then_groups[:users]]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if names:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        builder = builder.add_extension(alternatives, critical=False)
    return base64.b64encode(builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)).decode()


def ask(server: LiveServer, signer: str, request: str, *usages: str, **more: Any) -> str:
    headers = more.pop("headers", {})
    spec = {"signerName": signer, "request": request, "usages": list(usages), **more}
    body = {"metadata": {"generateName": "csr-"}, "spec": spec}
    made = server.request("POST", PATH, body, **headers)
    assert made.code == 201, made.body
    name: str = made.json["metadata"]["name"]
    return name


def approve(server: LiveServer, name: str) -> None:
    condition = {"type": "Approved", "status": "True", "reason": "Test"}
    patch = {"status": {"conditions": [condition]}}
    path = f"{PATH}/{name}/approval"
    assert server.request("PATCH", path, patch, "application/merge-patch+json").code == 200


def settled(server: LiveServer, name: str) -> dict[str, Any]:
    """The status, once there is a certificate or a failure."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        status: dict[str, Any] = server.request("GET", f"{PATH}/{name}").json["status"]
        if "certificate" in status or any(each["type"] == "Failed" for each in status.get("conditions", ())):
            return status
        time.sleep(0.02)
    raise AssertionError(f"nothing was decided: {status}")


def certificate_of(status: dict[str, Any]) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(status["certificate"]))


def test_a_client_is_believed_with_its_certificate(server: LiveServer, tmp_path: Path) -> None:
    name = ask(server, CLIENT, request_for("eve", "staff"), "client auth", SIGNATURE, expirationSeconds=3600)
    approve(server, name)
    status = settled(server, name)
    found = certificate_of(status)
    assert found.not_valid_after_utc - dt.datetime.now(dt.UTC) < dt.timedelta(hours=1)
    (tmp_path / "crt").write_bytes(base64.b64decode(status["certificate"]))
    no_password = serialization.NoEncryption()
    pem = KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, no_password)
    (tmp_path / "key").write_bytes(pem)
    context = ssl.create_default_context(cafile=str(server.directory / "pki" / "ca.crt"))
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    url = f"{server.url}/apis/authentication.k8s.io/v1/selfsubjectreviews"
    asked = Request(url, b"{}", {"Content-Type": "application/json"})
    with urlopen(asked, context=context) as answer:
        told = answer.read()
    assert b'"username":"eve"' in told
    assert b'"staff"' in told


@pytest.mark.parametrize(
    ("signer", "request_", "usages", "why"),
    [
        (CLIENT, request_for("eve"), ("server auth",), "invalid usage for client certificate: server auth"),
        (KUBELET, request_for("eve", "system:nodes"), (SIGNATURE, "client auth"), "subject common name does not"),
        (KUBELET, request_for("system:node:n"), (SIGNATURE, "client auth"), "subject organization is not"),
        (SERVING, request_for("system:node:n", "system:nodes"), (SIGNATURE, "server auth"), "DNS or IP"),
    ],
)
def test_what_a_signer_does_not_sign(
    server: LiveServer, signer: str, request_: str, usages: tuple[str, ...], why: str
) -> None:
    name = ask(server, signer, request_, *usages)
    approve(server, name)
    failed = settled(server, name)["conditions"][-1]
    assert (failed["type"], failed["reason"]) == ("Failed", "SignerValidationFailure")
    assert why in failed["message"]


def test_a_node_that_serves(server: LiveServer) -> None:
    request = request_for("system:node:n", "system:nodes", names=("n.example.com",))
    name = ask(server, SERVING, request, SIGNATURE, "server auth")
    assert server.request("GET", f"{PATH}/{name}").json["status"] == {}
    approve(server, name)
    names = certificate_of(settled(server, name)).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == ["n.example.com"]


def test_a_node_that_may_gets_its_own_certificate(server: LiveServer) -> None:
    """The right is one that Kubernetes has a role for, and binds to nobody."""
    request = request_for("system:node:n", "system:nodes")
    node = {"Impersonate_User": "system:node:n", "Impersonate_Group": "system:nodes"}
    waiting = ask(server, KUBELET, request, SIGNATURE, "client auth", headers=node)
    role = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
    binding = {
        "metadata": {"name": "rotation"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "Group", "name": "system:nodes", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    assert server.request("POST", path, binding).code == 201
    try:
        name = ask(server, KUBELET, request, SIGNATURE, "client auth", headers=node)
        status = settled(server, name)
        assert status["conditions"][0]["reason"] == "AutoApproved"
        assert certificate_of(status).subject.rfc4514_string() == "CN=system:node:n,O=system:nodes"
        assert server.request("GET", f"{PATH}/{waiting}").json["status"] == {}
    finally:
        server.request("DELETE", f"{path}/rotation")


def test_a_certificate_names_one_user(server: LiveServer) -> None:
    """Approved as the first of two, it would be believed as the second."""
    node = {"Impersonate_User": "system:node:n", "Impersonate_Group": "system:nodes"}
    for signer, groups in ((KUBELET, ("system:nodes",)), (CLIENT, ())):
        request = request_for("system:node:n", "boss", *groups, users=2)
        spec = {"signerName": signer, "request": request, "usages": [SIGNATURE, "client auth"]}
        for headers in (node, {}):
            refused = server.request("POST", PATH, {"metadata": {"generateName": "csr-"}, "spec": spec}, **headers)
            assert refused.code == 403, refused.body


@pytest.mark.parametrize("user", ["system:node:m", "boss", "system:nodes"])
def test_a_node_asks_in_its_own_name(server: LiveServer, user: str) -> None:
    node = {"Impersonate_User": "system:node:n", "Impersonate_Group": "system:nodes"}
    for signer in (KUBELET, SERVING):
        spec = {"signerName": signer, "request": request_for(user, "system:nodes"), "usages": ["client auth"]}
        refused = server.request("POST", PATH, {"metadata": {"generateName": "csr-"}, "spec": spec}, **node)
        assert refused.code == 403
        assert "can only create a node CSR with CN=system:node:n" in refused.json["message"]

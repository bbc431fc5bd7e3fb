"""Requests for certificates: the author cannot be made up, and deciding and signing are rights of their own."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from live_server import Answer, LiveServer, running_server

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
TOKENS = 'eve,eve,1,"staff"\nall,approver,2\nsome,half,3\n'
KEY = ec.generate_private_key(ec.SECP256R1())
NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "eve")])
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SIGNED = x509.CertificateBuilder(NAME, NAME, KEY.public_key(), 1, NOW, NOW + timedelta(days=1)).sign(
    KEY, hashes.SHA256()
)
CERTIFICATE = base64.b64encode(SIGNED.public_bytes(serialization.Encoding.PEM)).decode()


def role(name: str, *rules: dict[str, list[str]]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules)}


def rule(verb: str, resource: str, *names: str) -> dict[str, list[str]]:
    wanted = {"verbs": verb.split(","), "apiGroups": ["certificates.k8s.io"], "resources": [resource]}
    return wanted | {"resourceNames": list(names)} if names else wanted


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with people who may do parts of it: ask, decide for one signer, decide for none."""
    directory: Path = tmp_path_factory.mktemp("certificates")
    (directory / "tokens").write_text(TOKENS)
    with running_server(directory / "state", "--token-file", str(directory / "tokens")) as running:
        requests = rule("create,get,update", "certificatesigningrequests")
        parts = rule("update,patch", "certificatesigningrequests/approval")
        status = rule("update,patch", "certificatesigningrequests/status")
        for user, rules in (
            ("eve", (requests,)),
            ("approver", (requests, parts, status, rule("approve", "signers", "example.com/*"))),
            ("half", (requests, parts, status)),
        ):
            assert running.request("POST", f"{RBAC}/clusterroles", role(user, *rules)).code == 201
            binding = {
                "metadata": {"name": user},
                "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
            }
            assert running.request("POST", f"{RBAC}/clusterrolebindings", binding).code == 201
        yield running


def send(server: LiveServer, token: str, method: str, path: str, body: Any) -> Answer:
    form = "application/merge-patch+json" if method == "PATCH" else "application/json"
    return server.request(method, path, body, form, Authorization=f"Bearer {token}")


def asked(server: LiveServer, name: str) -> dict[str, Any]:
    """A request of eve's, who says that she is somebody else, and that all is settled."""
    spec = {
        "request": in_the_name_of("eve"),
        "signerName": "example.com/x",
        "usages": ["client auth"],
        "username": "admin",
        "groups": ["system:masters"],
    }
    settled = {"conditions": [{"type": "Approved", "status": "True"}], "certificate": CERTIFICATE}
    made = send(server, "eve", "POST", PATH, {"metadata": {"name": name}, "spec": spec, "status": settled})
    assert made.code == 201, made.body
    found: dict[str, Any] = made.json
    return found


def in_the_name_of(user: str, *groups: str) -> str:
    """A certificate request as `spec.request` has it."""
    names = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    names += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(KEY, hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


@pytest.mark.parametrize("signer", ["kube-apiserver-client", "kube-apiserver-client-kubelet"])
def test_nobody_becomes_a_master_by_certificate(server: LiveServer, signer: str) -> None:
    """Neither the admin, who is one: a certificate cannot be taken back."""
    for groups, code in ((("staff", "system:masters"), 403), (("staff",), 201)):
        spec = {
            "request": in_the_name_of("eve", *groups),
            "signerName": f"kubernetes.io/{signer}",
            "usages": ["client auth"],
        }
        for token in ("eve", server.token):
            body = {"metadata": {"generateName": "master-"}, "spec": spec}
            answer = send(server, token, "POST", PATH, body)
            assert answer.code == code, answer.body


def decision(kind: str = "Approved") -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "reason": "Seen", "message": "by me"}]}}


def test_the_author_is_who_asks(server: LiveServer) -> None:
    made = asked(server, "author")
    assert made["spec"]["username"] == "eve"
    assert set(made["spec"]["groups"]) == {"staff", "system:authenticated"}
    assert made["status"] == {}
    made["spec"]["username"] = "admin"
    changed = send(server, "eve", "PUT", f"{PATH}/author", made)
    assert (changed.code, changed.json["spec"]["username"]) == (200, "eve")


def test_a_request_is_approved(server: LiveServer) -> None:
    asked(server, "approved")
    answer = send(server, "all", "PATCH", f"{PATH}/approved/approval", decision() | {"spec": {"username": "x"}})
    assert answer.code == 200, answer.body
    stored = server.request("GET", f"{PATH}/approved").json
    (condition,) = stored["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Approved", "Seen")
    assert condition["lastTransitionTime"]
    assert condition["lastUpdateTime"]
    assert stored["spec"]["username"] == "eve"
    both = {"status": {"conditions": [*stored["status"]["conditions"], *decision("Denied")["status"]["conditions"]]}}
    assert send(server, "all", "PATCH", f"{PATH}/approved/approval", both).code == 422
    assert send(server, "all", "PATCH", f"{PATH}/approved/approval", {"status": {"conditions": None}}).code == 422


def test_the_right_is_for_a_signer(server: LiveServer) -> None:
    asked(server, "refused")
    refused = send(server, "some", "PATCH", f"{PATH}/refused/approval", decision())
    assert refused.code == 403
    assert "approve for the signer 'example.com/x'" in refused.json["message"]
    assert send(server, "eve", "PATCH", f"{PATH}/refused/approval", decision()).code == 403


def test_there_is_no_other_way_to_decide_or_sign(server: LiveServer) -> None:
    asked(server, "status")
    refused = send(server, "all", "PATCH", f"{PATH}/status/status", decision())
    assert refused.code == 422
    assert 'updates may not add a condition of type "Approved"' in refused.json["message"]
    signed = {"status": {"certificate": CERTIFICATE}}
    refused = send(server, "all", "PATCH", f"{PATH}/status/status", signed)
    assert refused.code == 403
    assert "sign for the signer" in refused.json["message"]
    made = server.request("PATCH", f"{PATH}/status/status", signed, "application/merge-patch+json")
    assert made.json["status"]["certificate"] == CERTIFICATE

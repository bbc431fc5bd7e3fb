"""Audit policies over a real server: how much of a request is told; and who is let in without credentials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwk, jwt

from dray.server.observers import audit
from dray.server.observers.audit_file import Rotation
from dray.server.observers.audit_policy import read_policy
from dray_process import run_dray
from live_server import LiveServer
from patience import eventually
from server_process import server_on_thread

MAPS = "/api/v1/namespaces/default/configmaps"
HOSTILE = "2\n\x1b[2J\x9b1m\u202e"
SECRETS = "/api/v1/namespaces/default/secrets"
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- level: None
  verbs: [list]
- level: Metadata
  resources: [{group: "", resources: [secrets]}]
- level: RequestResponse
  resources: [{group: "", resources: [configmaps]}]
  verbs: [create, get]
- level: Request
  omitStages: [RequestReceived]
  resources: [{group: "", resources: [configmaps]}]
"""


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Events by verb, name and stage."""
    directory = tmp_path_factory.mktemp("audited")
    (directory / "policy.yaml").write_text(POLICY)
    file = directory / "audit.log"
    settings: dict[str, Any] = {
        "audit_log": file,
        "audit_policy": read_policy(directory / "policy.yaml"),
        "audit_rotation": Rotation(max_bytes=3000),
    }
    with pytest.MonkeyPatch.context() as patch, server_on_thread(directory / "state", **settings) as (server, _):
        patch.setattr(audit, "LARGEST_OBJECT", 50_000)
        server.request("POST", f"{MAPS}?fieldManager=m", {"metadata": {"name": "one"}, "data": {"a": "1"}})
        server.request("POST", MAPS, b"a:\n  b: [", "application/yaml")
        server.request("GET", MAPS)
        server.request("POST", SECRETS, {"metadata": {"name": "s"}, "data": {"k": "eA=="}})
        server.request("PATCH", f"{MAPS}/one", {"data": {"a": HOSTILE}}, "application/merge-patch+json")
        server.request("POST", MAPS, {"metadata": {"name": "big"}, "data": {"a": "x" * 100_000}})
        server.request("GET", "/version")
    logs = sorted(directory.glob("audit*.log"))
    assert len(logs) > 1
    assert all(line.isprintable() for path in logs for line in path.read_text().splitlines())
    events = [json.loads(line) for path in logs for line in path.read_text().splitlines()]
    return {(event["verb"], event.get("objectRef", {}).get("name", ""), event["stage"]): event for event in events}


def test_objects_are_told_where_the_level_says_so(audited: dict[tuple[str, str, str], dict[str, Any]]) -> None:
    created = audited["create", "one", "ResponseComplete"]
    assert created["level"] == "RequestResponse"
    assert created["requestObject"]["data"] == {"a": "1"}
    assert created["responseObject"]["kind"] == "ConfigMap"
    assert created["responseObject"]["metadata"]["uid"]
    assert "managedFields" not in created["responseObject"]["metadata"]
    patched = audited["patch", "one", "ResponseComplete"]
    assert (patched["level"], patched["requestObject"]) == ("Request", {"data": {"a": HOSTILE}})
    assert "responseObject" not in patched


def test_secrets_are_not_told_at_level_metadata(audited: dict[tuple[str, str, str], dict[str, Any]]) -> None:
    secret = audited["create", "s", "ResponseComplete"]
    assert secret["level"] == "Metadata"
    assert not {"requestObject", "responseObject"} & secret.keys()
    assert "eA==" not in json.dumps(audited["create", "s", "ResponseComplete"])


def test_what_no_rule_is_about_and_level_none_are_not_told(
    audited: dict[tuple[str, str, str], dict[str, Any]],
) -> None:
    assert {verb for verb, _, _ in audited} == {"create", "patch"}


def test_the_stage_of_receiving_is_told_unless_left_out(audited: dict[tuple[str, str, str], dict[str, Any]]) -> None:
    received = audited["create", "", "RequestReceived"]
    assert "responseStatus" not in received
    assert received["stageTimestamp"] == received["requestReceivedTimestamp"]
    assert ("patch", "one", "RequestReceived") not in audited


def test_no_body_ends_the_audit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """JSON nested too deeply to be read ended the task that writes: from then on nobody's requests were told."""
    deep = b'{"metadata":{"name":"deep"},"data":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001
    file = tmp_path / "audit.log"
    for number, text in enumerate((POLICY, POLICY.replace("omitManagedFields: true", ""))):
        (tmp_path / "policy.yaml").write_text(text)
        settings: dict[str, Any] = {"audit_log": file, "audit_policy": read_policy(tmp_path / "policy.yaml")}
        with server_on_thread(tmp_path / f"state{number}", **settings) as (server, _):
            assert server.request("POST", MAPS, deep, "application/json").code == 400
            eventually(lambda: '"create"' in file.read_text())
            server.request("POST", MAPS, {"metadata": {"name": "later"}})
        stages = [json.loads(line) for line in file.read_text().splitlines()]
        told = [(event["responseStatus"]["code"]) for event in stages if event["stage"] == "ResponseComplete"]
        assert (told.count(400), told.count(201)) == (number + 1, number + 1)
    assert "lost" not in caplog.text


def test_objects_that_are_very_large_are_left_out_and_that_is_noted(
    audited: dict[tuple[str, str, str], dict[str, Any]],
) -> None:
    big = audited["create", "big", "ResponseComplete"]
    assert big["annotations"]["audit.k8s.io/truncated"] == "true"
    assert not {"requestObject", "responseObject"} & big.keys()


def test_a_policy_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("kind: Policy")
    options = ("--audit-log", tmp_path / "a", "--audit-policy-file", tmp_path / "policy.yaml")
    done = run_dray("server", "--dir", tmp_path / "state", *options)
    assert done.returncode == 2
    assert done.stderr.startswith(f"dray: audit policy {tmp_path}/policy.yaml: ")


@pytest.fixture(scope="module", params=[True, False], ids=["anonymous", "nobody"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LiveServer, bool]]:
    with server_on_thread(tmp_path_factory.mktemp("door") / "state", anonymous=request.param) as (running, _):
        yield running, request.param


def plain(server: LiveServer, path: str, **headers: str) -> int:
    connection = server.connect()
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic YTpi"}], ids=["nothing", "basic"])
def test_who_shows_nothing_sees_health_and_version_or_nothing_at_all(
    server: tuple[LiveServer, bool], headers: dict[str, str]
) -> None:
    running, anonymous = server
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        assert plain(running, path, **headers) == (200 if anonymous else 401)
    for path in ("/metrics", "/api", MAPS, "/openid/v1/jwks", "/.well-known/openid-configuration"):
        assert plain(running, path, **headers) == (403 if anonymous else 401)


def test_service_account_tokens_can_be_checked_by_others(server: tuple[LiveServer, bool]) -> None:
    running, _ = server
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    running.request("POST", accounts, {"metadata": {"name": "reader"}})
    token = running.request("POST", f"{accounts}/reader/token", {"spec": {}}).json["status"]["token"]
    found = running.request("GET", "/.well-known/openid-configuration", Authorization=f"Bearer {token}")
    assert found.code == 200
    assert found.json["id_token_signing_alg_values_supported"] == ["ES256"]
    assert found.json["jwks_uri"] == f"{running.url}/openid/v1/jwks"
    keys = running.request("GET", "/openid/v1/jwks", Authorization=f"Bearer {token}")
    assert keys.headers["Content-Type"] == "application/jwk-set+json"
    assert not {"d", "p", "q"} & keys.json["keys"][0].keys()
    claims = jwt.decode(token, jwk.KeySet.import_key_set(keys.json), algorithms=["ES256"]).claims
    assert claims["iss"] == found.json["issuer"]
    assert claims["sub"] == "system:serviceaccount:default:reader"


def test_lists_that_are_never_there_as_a_whole_are_left_out_and_that_is_noted(tmp_path: Path) -> None:
    file, policy = tmp_path / "audit.log", tmp_path / "policy.yaml"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse, verbs: [list]}]\n")
    settings: dict[str, Any] = {"audit_log": file, "audit_policy": read_policy(policy)}
    with server_on_thread(tmp_path / "state", **settings) as (server, _):
        for name in ("a", "b"):
            server.request("POST", MAPS, {"metadata": {"name": name}, "data": {"a": "x" * 700_000}})
        assert server.request("GET", MAPS).code == 200
        eventually(lambda: "ResponseComplete" in file.read_text())
    [told] = [
        event for line in file.read_text().splitlines() if (event := json.loads(line))["stage"] == "ResponseComplete"
    ]
    assert told["annotations"]["audit.k8s.io/truncated"] == "true"
    assert "responseObject" not in told

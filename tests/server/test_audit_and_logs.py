"""The audit log, the request log, and what an unexpected failure leaves behind."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dray.process import logs
from dray.server.instance import Instance
from dray_process import run_dray
from live_server import LiveServer
from server_process import ServerProcess, server_on_thread

MAPS = "/api/v1/namespaces/default/configmaps"
MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@pytest.fixture
def audited(tmp_path: Path) -> list[dict[str, Any]]:
    """The audit log of a few requests, written when the server stops at the latest."""
    file = tmp_path / "audit.log"
    with server_on_thread(tmp_path / "state", audit_log=file) as (server, _):
        server.request("POST", MAPS, {"metadata": {"name": "one"}}, User_Agent="tester/1")
        server.request("GET", f"{MAPS}/none?pretty=1")
        server.request("GET", f"{MAPS}/one", Impersonate_User="jane", Impersonate_Group="system:masters")
        server.request("GET", "/readyz")
        watch = server.watch(f"{MAPS}?watch=true")
        next(watch)
        watch.close()
        server.request("GET", MAPS, Authorization="Bearer nobody-knows-it")
    assert file.stat().st_mode & 0o777 == 0o600
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.req("implied-16")
def test_audit_events_say_who_did_what_to_what_and_how_it_ended(audited: list[dict[str, Any]]) -> None:
    created = audited[0]
    assert (created["kind"], created["apiVersion"]) == ("Event", "audit.k8s.io/v1")
    assert (created["level"], created["stage"], created["verb"]) == ("Metadata", "ResponseComplete", "create")
    assert created["requestURI"] == MAPS
    assert created["user"]["username"] == "kubernetes-admin"
    assert "system:masters" in created["user"]["groups"]
    assert created["userAgent"] == "tester/1"
    assert created["sourceIPs"] == ["127.0.0.1"]
    assert created["objectRef"].items() >= {"resource": "configmaps", "namespace": "default", "name": "one"}.items()
    assert created["objectRef"]["apiVersion"] == "v1"
    assert created["responseStatus"]["code"] == 201
    assert MICRO_TIME.fullmatch(created["requestReceivedTimestamp"])
    assert created["requestReceivedTimestamp"] <= created["stageTimestamp"]
    assert len({event["auditID"] for event in audited}) == len(audited) - 1  # the two stages of the watch share one


def test_audit_events_of_failures_tell_the_reason(audited: list[dict[str, Any]]) -> None:
    missing = audited[1]
    assert missing["requestURI"] == f"{MAPS}/none?pretty=1"
    assert missing["responseStatus"]["code"] == 404
    assert missing["responseStatus"]["reason"] == "NotFound"
    [refused] = [event for event in audited if event["responseStatus"]["code"] == 401]
    assert refused["user"] == {}


@pytest.mark.req("implied-16")
def test_audit_events_name_the_sender_and_whom_it_acts_as(audited: list[dict[str, Any]]) -> None:
    acted = audited[2]
    assert acted["user"]["username"] == "kubernetes-admin"
    assert acted["impersonatedUser"]["username"] == "jane"


def test_audit_events_of_watches_have_two_stages_and_health_checks_none(audited: list[dict[str, Any]]) -> None:
    watched = [event for event in audited if event["verb"] == "watch"]
    assert [event["stage"] for event in watched] == ["ResponseStarted", "ResponseComplete"]
    assert not any(event["requestURI"] == "/readyz" for event in audited)


def test_audit_events_have_what_admission_policies_note(tmp_path: Path) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    validation = {"expression": "object.metadata.name != 'bad'", "message": "a bad name"}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]}
    notes = [{"key": "who", "valueExpression": "request.userInfo.username"}]
    base = "/apis/admissionregistration.k8s.io/v1"
    file = tmp_path / "audit.log"
    with server_on_thread(tmp_path / "state", audit_log=file) as (server, _):
        policy = {"metadata": {"name": "p"}, "spec": spec | {"auditAnnotations": notes}}
        assert server.request("POST", f"{base}/validatingadmissionpolicies", policy).code == 201
        bound = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Warn", "Audit"]}}
        assert server.request("POST", f"{base}/validatingadmissionpolicybindings", bound).code == 201
        made = server.request("POST", MAPS, {"metadata": {"name": "bad"}})
    said = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': a bad name"
    assert (made.code, made.headers.get_all("Warning")) == (201, [f'299 - "{said}"'])
    noted = json.loads(file.read_text().splitlines()[-1])["annotations"]
    assert noted["p/who"] == "kubernetes-admin"
    assert json.loads(noted["validation.policy.admission.k8s.io/validation_failure"])[0]["message"] == "a bad name"


def test_an_audit_log_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    done = run_dray("server", "--dir", tmp_path / "state", "--port", "0", "--audit-log", tmp_path / "no" / "audit.log")
    assert done.returncode == 2
    assert f"--audit-log: cannot write {tmp_path}/no/audit.log: no such file or directory." in done.stderr


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[LiveServer, Instance]]:
    """A server with a bug: lists fail in a way that nobody thought of."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    with server_on_thread(tmp_path / "state") as (server, instance):
        monkeypatch.setattr("dray.server.verbs.reads.list_page", fail)
        yield server, instance


def test_an_unexpected_failure_is_a_status_with_an_id_that_the_log_has(
    broken: tuple[LiveServer, Instance], caplog: pytest.LogCaptureFixture
) -> None:
    server, _ = broken
    with caplog.at_level(logging.ERROR):
        answer = server.request("GET", MAPS, Audit_Id="given-by-the-client")
    assert answer.code == 500
    assert answer.json["reason"] == "InternalError"
    assert "ZeroDivisionError" in answer.json["message"]
    assert "given-by-the-client" in answer.json["message"]
    assert answer.headers["Audit-Id"] == "given-by-the-client"
    [record] = [record for record in caplog.records if record.name == "dray.server.app"]
    assert record.exc_info is not None
    assert "given-by-the-client" in logs.TextFormatter().format(record)
    assert server.request("GET", f"{MAPS}/none").code == 404  # the connection and the server go on


@pytest.mark.req("implied-15")
def test_logs_are_lines_of_text_or_json(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        logging.getLogger("dray.test").warning("said\nby %s", "jane", extra={"fields": {"code": 500, "agent": "a b"}})
    [record] = caplog.records
    text = logs.TextFormatter().format(record)
    assert text.endswith('warning said\\nby jane code=500 agent="a b"')
    entry = json.loads(logs.JsonFormatter().format(record))
    assert entry.items() >= {"level": "warning", "logger": "dray.test", "msg": "said\nby jane", "code": 500}.items()


def test_nothing_in_a_log_does_something_to_a_terminal(caplog: pytest.LogCaptureFixture) -> None:
    evil = "\x1b[2J\x9b1m\u202e\U000e0001 fine"
    with caplog.at_level(logging.INFO):
        try:
            raise ValueError(evil)
        except ValueError:
            logging.getLogger("dray.test").exception("told: %s", evil, extra={"fields": {"agent": evil, "who": [evil]}})
    [record] = caplog.records
    text = logs.TextFormatter().format(record)
    assert all(line.isprintable() for line in text.split("\n"))
    assert "told: \\x1b[2J\\x9b1m\\u202e\\U000e0001 fine" in text
    line = logs.JsonFormatter().format(record)
    assert line.isprintable()
    assert json.loads(line).items() >= {"msg": f"told: {evil}", "agent": evil}.items()


def test_verbosity_logs_every_request(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "state", "--log-format", "json", "-v", "1") as process:
        process.client.request("GET", f"{MAPS}/none", User_Agent="tester/1")
        process.terminate()
        entries = [json.loads(line) for line in process.log.read_text().splitlines()]
    [seen] = [entry for entry in entries if entry.get("agent") == "tester/1"]
    assert seen["msg"] == f"GET {MAPS}/none"
    assert (seen["code"], seen["user"], seen["level"]) == (404, "kubernetes-admin", "debug")

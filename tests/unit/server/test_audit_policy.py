"""Audit policies: the first rule that matches decides, and a file that makes no sense is refused by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dray.api.kinds import CLAIMS, NODES, PODS
from dray.server.observers.audit_file import AuditFile, Rotation
from dray.server.observers.audit_policy import (
    AuditLevel,
    AuditPolicy,
    AuditPolicyError,
    AuditStage,
    read_policy,
    wanted_of,
)
from dray.server.routes import Route
from dray.server.security.identity import Identity, authenticated

JANE = authenticated("jane", ("team-a",))


def policy(*rules: str, more: str = "") -> str:
    listed = "".join(f"- {rule}\n" for rule in rules)
    return f"apiVersion: audit.k8s.io/v1\nkind: Policy\n{more}\nrules:\n{listed}"


def read(tmp_path: Path, text: str) -> AuditPolicy:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    return read_policy(file)


POD = Route("get", PODS, "v1", "default", "web")
LOG = Route("get", PODS, "v1", "default", "web", "log")
NODE = Route("get", NODES, "v1", "", "n1")
CLAIM = Route("update", CLAIMS, "v1", "team-a", "c", "status")


@pytest.mark.parametrize(
    ("rule", "caller", "route", "path", "matches"),
    [
        ("{}", None, None, "/x", True),
        ("{users: [jane]}", JANE, POD, "", True),
        ("{users: [joe]}", JANE, POD, "", False),
        ("{users: [jane]}", None, POD, "", False),
        ("{userGroups: [team-a]}", JANE, POD, "", True),
        ("{userGroups: [team-b]}", JANE, POD, "", False),
        ("{userGroups: [team-a]}", None, POD, "", False),
        ("{verbs: [get]}", JANE, POD, "", True),
        ("{verbs: [create]}", JANE, POD, "", False),
        ("{namespaces: [default]}", JANE, POD, "", True),
        ("{namespaces: [default]}", JANE, NODE, "", False),
        ("{namespaces: ['']}", JANE, NODE, "", True),
        ("{namespaces: [default]}", JANE, None, "/x", False),
        ("{resources: [{group: '', resources: [pods]}]}", JANE, POD, "", True),
        ("{resources: [{group: '', resources: [pods]}]}", JANE, LOG, "", False),
        ("{resources: [{group: '', resources: [pods/log]}]}", JANE, LOG, "", True),
        ("{resources: [{group: '', resources: [pods/*]}]}", JANE, LOG, "", True),
        ("{resources: [{group: '', resources: ['*/log']}]}", JANE, LOG, "", True),
        ("{resources: [{group: '', resources: ['*/log']}]}", JANE, POD, "", False),
        ("{resources: [{group: '', resources: ['*']}]}", JANE, LOG, "", True),
        ("{resources: [{group: resource.k8s.io}]}", JANE, CLAIM, "", True),
        ("{resources: [{group: resource.k8s.io}]}", JANE, POD, "", False),
        ("{resources: [{group: '*', resources: [pods], resourceNames: [web]}]}", JANE, POD, "", True),
        ("{resources: [{group: '*', resources: [pods], resourceNames: [db]}]}", JANE, POD, "", False),
        ("{nonResourceURLs: [/healthz*]}", JANE, None, "/healthz/etcd", True),
        ("{nonResourceURLs: [/healthz]}", JANE, None, "/healthz/etcd", False),
        ("{nonResourceURLs: ['*']}", JANE, None, "/version", True),
        ("{nonResourceURLs: ['*']}", JANE, POD, "/version", False),
    ],
)
def test_which_requests_a_rule_is_about(
    tmp_path: Path, rule: str, caller: Identity | None, route: Route | None, path: str, matches: bool
) -> None:
    verb = route.verb if route is not None else "get"
    found = wanted_of(read(tmp_path, policy(rule.replace("{", "{level: Metadata, ", 1))), caller, verb, route, path)
    assert found.level is (AuditLevel.METADATA if matches else AuditLevel.NONE)


def test_the_first_rule_decides_and_stages_add_up(tmp_path: Path) -> None:
    rules = ["{level: None, users: [joe]}", "{level: Request, omitStages: [ResponseStarted], omitManagedFields: false}"]
    found = read(tmp_path, policy(*rules, more="omitStages: [RequestReceived]\nomitManagedFields: true"))
    assert wanted_of(found, authenticated("joe", ()), "get", POD, "").level is AuditLevel.NONE
    wanted = wanted_of(found, JANE, "get", POD, "")
    assert wanted.level is AuditLevel.REQUEST
    assert wanted.omit_stages == {AuditStage.REQUEST_RECEIVED, AuditStage.RESPONSE_STARTED}
    assert wanted.omit_managed_fields is False


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "is not YAML"),
        ("[]", "Expected `object`"),
        (policy("{level: Everything}"), r"Invalid enum value 'Everything' - at `\$.rules\[0\].level`"),
        (policy("{level: None, user: [x]}"), "unknown field `user`"),
        (policy("{level: None}").replace("v1", "v2"), "not a Policy of audit.k8s.io/v1"),
        (policy().replace("rules:", "rules: []"), "at least one is needed"),
        (policy("{level: None, nonResourceURLs: [/x], namespaces: [a]}"), r"rules\[0\]: a rule is about"),
        (policy("{level: None, nonResourceURLs: [/x*y]}"), "nonResourceURLs"),
        (policy("{level: None, resources: [{group: apps/v1}]}"), "without its version"),
        (policy("{level: None, resources: [{resourceNames: [a]}]}"), "resourceNames need resources"),
    ],
)
def test_policies_that_make_no_sense_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(AuditPolicyError, match=problem) as refused:
        read(tmp_path, text)
    assert str(tmp_path / "policy.yaml") in str(refused.value)


def names(tmp_path: Path) -> list[Any]:
    return sorted(path.read_text() for path in tmp_path.iterdir())


def test_a_file_that_is_large_is_renamed_and_only_so_many_are_kept(tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "audit.log", Rotation(max_bytes=25, max_backups=2))
    for number in range(4):
        file.append([b"%d%d-------\n" % (number, line) for line in range(2)])  # two lines fit, three do not
    file.close()
    assert len(names(tmp_path)) == 3
    assert (tmp_path / "audit.log").read_text() == "30-------\n31-------\n"
    assert names(tmp_path)[0] == "10-------\n11-------\n"
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_files_that_are_old_go_and_others_are_left_alone(tmp_path: Path) -> None:
    old, other = tmp_path / "audit-2020-01-01T00-00-00.000.log", tmp_path / "audit-notes.log"
    for path in (old, other):
        path.write_text("x")
        os.utime(path, (0, 0))
    file = AuditFile(tmp_path / "audit.log", Rotation(max_bytes=5, max_age_days=1))
    file.append([b"first\n", b"second\n"])
    file.close()
    assert not old.exists()
    assert other.exists()
    assert len(names(tmp_path)) == 3

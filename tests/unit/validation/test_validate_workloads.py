"""What may be said of workloads: how they are updated, when they start, and what counts as failure and success."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.times import Time
from dray.validation import documents as validation
from dray.validation import stages
from dray.validation.context import Context
from dray.validation.label_selectors import MOST_VALUES

SELECTOR = {"matchLabels": {"app": "a"}}
PODS: dict[str, Any] = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
MOUNT = {"name": "data", "mountPath": "/data"}
MOUNTING = {**PODS, "spec": {"containers": [{"name": "c", "image": "i", "volumeMounts": [MOUNT]}]}}
KEPT = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
JOB = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
INDEXED = {"completionMode": "Indexed", "completions": 4, "backoffLimitPerIndex": 1}
STRANGE = {"type": "Sometimes", "rollingUpdate": {"maxSurge": -1}}
CODES = {"operator": "In", "values": [1, 2]}


def document(kind: str, api_version: str, spec: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": "x", "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def daemon_set(**rolling: Any) -> dict[str, Any]:
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return document("DaemonSet", "apps/v1", {"selector": SELECTOR, "template": PODS, "updateStrategy": strategy})


def stateful_set(**spec: Any) -> dict[str, Any]:
    full = {"selector": SELECTOR, "template": PODS, "serviceName": "s", **spec}
    return document("StatefulSet", "apps/v1", full)


def cron_job(**spec: Any) -> dict[str, Any]:
    full = {"schedule": "@hourly", "jobTemplate": {"spec": {"template": JOB}}, **spec}
    return document("CronJob", "batch/v1", full)


def job(**spec: Any) -> dict[str, Any]:
    return document("Job", "batch/v1", {"template": JOB, **spec})


def failure(**rule: Any) -> dict[str, Any]:
    return job(podFailurePolicy={"rules": [{"action": "Ignore", **rule}]})


def success(**rule: Any) -> dict[str, Any]:
    return job(**INDEXED, successPolicy={"rules": [rule]})


CLAIM = "spec.volumeClaimTemplates[0].spec"
DEBUGGERS = "spec.template.spec.ephemeralContainers"
ROLLING, RULE, SUCCESS = (
    "spec.updateStrategy.rollingUpdate",
    "spec.podFailurePolicy.rules[0]",
    "spec.successPolicy.rules",
)
CASES = [
    (daemon_set(maxUnavailable=0, maxSurge="10%"), set()),
    (daemon_set(maxUnavailable=1, maxSurge=1), {("Invalid", f"{ROLLING}.maxSurge")}),
    (daemon_set(maxUnavailable=0, maxSurge=0), {("Required", f"{ROLLING}.maxUnavailable")}),
    (daemon_set(maxUnavailable="101%"), {("Invalid", f"{ROLLING}.maxUnavailable")}),
    (
        daemon_set(maxUnavailable="few"),
        {("Invalid", f"{ROLLING}.maxUnavailable"), ("Required", f"{ROLLING}.maxUnavailable")},
    ),
    (stateful_set(ordinals={"start": 3}, podManagementPolicy="Parallel"), set()),
    (stateful_set(podManagementPolicy="Random"), {("Invalid", "spec.podManagementPolicy")}),
    (stateful_set(ordinals={"start": -1}), {("Invalid", "spec.ordinals.start")}),
    (
        stateful_set(updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
        {("Invalid", ROLLING)},
    ),
    (
        stateful_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "partition": -1}}),
        {("Invalid", f"{ROLLING}.maxUnavailable"), ("Invalid", f"{ROLLING}.partition")},
    ),
    (
        stateful_set(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Keep"}),
        {("NotSupported", "spec.persistentVolumeClaimRetentionPolicy.whenDeleted")},
    ),
    (stateful_set(updateStrategy={"type": "Random"}), {("Invalid", "spec.updateStrategy")}),
    (
        stateful_set(volumeClaimTemplates=[{"metadata": {"name": "v"}, "spec": {"accessModes": ["Sometimes"]}}]),
        {("NotSupported", f"{CLAIM}.accessModes"), ("Required", f"{CLAIM}.resources[storage]")},
    ),
    (stateful_set(template=MOUNTING, volumeClaimTemplates=[KEPT]), set()),
    (
        stateful_set(volumeClaimTemplates=[{**KEPT, "metadata": {"name": "a.b"}}]),
        {("Invalid", "spec.template.spec.volumes[0].name")},
    ),
    (
        stateful_set(volumeClaimTemplates=[{"spec": KEPT["spec"]}]),
        {
            ("Required", "spec.template.spec.volumes[0].name"),
            ("Required", "spec.template.spec.volumes[0].persistentVolumeClaim.claimName"),
        },
    ),
    (
        stateful_set(template={**PODS, "spec": {**PODS["spec"], "ephemeralContainers": [{"name": "c"}]}}),
        {
            ("Duplicate", f"{DEBUGGERS}[0].name"),
            ("Forbidden", DEBUGGERS),
            ("Required", f"{DEBUGGERS}[0].image"),
        },
    ),
    (
        stateful_set(template={"spec": {}}, selector={"matchLabels": {"app": "a."}}),
        {("Invalid", "spec.selector.matchLabels"), ("Invalid", "spec.selector")},
    ),
    (stateful_set(revisionHistoryLimit=-1), set()),
    (
        stateful_set(template={"spec": {"restartPolicy": "Never"}}, selector={"matchLabels": {"app": "a."}}),
        {
            ("Invalid", "spec.selector.matchLabels"),
            ("Invalid", "spec.selector"),
            ("NotSupported", "spec.template.spec.restartPolicy"),
        },
    ),
    (job(manualSelector=True, selector={}), set()),
    (
        document("Deployment", "apps/v1", {"selector": SELECTOR, "template": PODS, "strategy": STRANGE}),
        {("NotSupported", "spec.strategy")},
    ),
    (stateful_set(template={**PODS, "spec": {**PODS["spec"], "subdomain": "A_b"}}), set()),
    (stateful_set(template=MOUNTING), {("NotFound", "spec.template.spec.containers[0].volumeMounts[0].name")}),
    (
        document("Deployment", "apps/v1", {"selector": {"matchLabels": {"app": "a."}}, "template": PODS}),
        {("Invalid", "spec.selector.matchLabels"), ("Invalid", "spec.selector")},
    ),
    (
        document("PodTemplate", "v1", {}) | {"template": {"spec": {}}},
        {("Required", "template.spec.containers")},
    ),
    (cron_job(timeZone="Europe/Berlin", schedule="*/5 9-17 * * mon-fri"), set()),
    (cron_job(schedule="61 * * * *"), {("Invalid", "spec.schedule")}),
    (cron_job(schedule="TZ=UTC 1 * * * *"), {("Invalid", "spec.schedule")}),
    (cron_job(timeZone=""), {("Invalid", "spec.timeZone")}),
    (cron_job(timeZone="Mars/Olympus"), {("Invalid", "spec.timeZone")}),
    (cron_job(startingDeadlineSeconds=-1), {("Invalid", "spec.startingDeadlineSeconds")}),
    (
        cron_job(jobTemplate={"spec": {"template": JOB, "manualSelector": True, "selector": SELECTOR}}),
        {("NotSupported", "spec.jobTemplate.spec.manualSelector"), ("Invalid", "spec.jobTemplate.spec.selector")},
    ),
    (job(managedBy="example.com/a"), set()),
    (job(managedBy="a"), {("Invalid", "spec.managedBy")}),
    (
        job(template={**JOB, "metadata": {"labels": {"job-name": "other"}}}),
        {("Invalid", "spec.template.metadata.labels[job-name]")},
    ),
    (
        job(selector=SELECTOR, template={**JOB, "metadata": {"labels": {"app": "a"}}}),
        {("Invalid", "spec.selector")},
    ),
    (job(**{**INDEXED, "completions": 10**9, "maxFailedIndexes": 10**4, "parallelism": 10}), set()),
    (job(**{**INDEXED, "completions": 10**9, "parallelism": 10}), {("Required", "spec.maxFailedIndexes")}),
    (job(**INDEXED, parallelism=10**5 + 1), {("Invalid", "spec.parallelism")}),
    (job(**INDEXED, maxFailedIndexes=4), set()),
    (job(**INDEXED, maxFailedIndexes=5), {("Invalid", "spec.maxFailedIndexes")}),
    (job(backoffLimitPerIndex=1), {("Invalid", "spec.backoffLimitPerIndex")}),
    (
        job(completionMode="Indexed", completions=2, maxFailedIndexes=1),
        {("Required", "spec.backoffLimitPerIndex")},
    ),
    (failure(onExitCodes=CODES), set()),
    (failure(onExitCodes=CODES, onPodConditions=[{"type": "T"}]), {("Invalid", RULE)}),
    (failure(onPodConditions=[{"type": "a b"}]), {("Invalid", f"{RULE}.onPodConditions[0].type")}),
    (failure(), {("Invalid", RULE)}),
    (failure(action="Panic", onExitCodes=CODES), {("NotSupported", f"{RULE}.action")}),
    (failure(action="FailIndex", onExitCodes=CODES), {("Invalid", f"{RULE}.action")}),
    (failure(onExitCodes={**CODES, "containerName": "z"}), {("Invalid", f"{RULE}.onExitCodes.containerName")}),
    (failure(onExitCodes={**CODES, "values": [2, 1]}), {("Invalid", f"{RULE}.onExitCodes.values")}),
    (failure(onExitCodes={**CODES, "values": [0, 1]}), {("Invalid", f"{RULE}.onExitCodes.values[0]")}),
    (
        job(podReplacementPolicy="TerminatingOrFailed", podFailurePolicy={"rules": []}),
        {("NotSupported", "spec.podReplacementPolicy")},
    ),
    (success(succeededIndexes="0-1,3", succeededCount=2), set()),
    (success(), {("Required", f"{SUCCESS}[0]")}),
    (success(succeededIndexes="3,1"), {("Invalid", f"{SUCCESS}[0].succeededIndexes")}),
    (success(succeededIndexes="2-4"), {("Invalid", f"{SUCCESS}[0].succeededIndexes")}),
    (success(succeededIndexes="0-1", succeededCount=3), {("Invalid", f"{SUCCESS}[0].succeededCount")}),
    (job(successPolicy={"rules": [{"succeededCount": 1}]}), {("Invalid", "spec.successPolicy")}),
    (job(**INDEXED, successPolicy={"rules": []}), {("Required", SUCCESS)}),
    (
        document("ReplicationController", "v1", {"selector": {"app": "b"}, "template": PODS}),
        {("Invalid", "spec.template.metadata.labels")},
    ),
    (document("ReplicationController", "v1", {}), {("Required", "spec.selector"), ("Required", "spec.template")}),
    (document("ReplicationController", "v1", {"template": PODS}), set()),
]


@pytest.mark.parametrize(("manifest", "expected"), CASES)
def test_rules(verdict: Any, manifest: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    assert verdict(manifest) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"spec.replicas": 3, "spec.minReadySeconds": 5}, set()),
        ({"spec.serviceName": "other"}, {("Invalid", "spec.serviceName")}),
        ({"spec.podManagementPolicy": "Parallel"}, {("Invalid", "spec.podManagementPolicy")}),
    ],
)
def test_what_of_a_stateful_set_may_change(
    verdict: Any, edit: Any, changes: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    old = stateful_set(podManagementPolicy="OrderedReady")
    assert verdict(edit(old, changes), old) == expected


def test_a_question_needs_no_name(verdict: Any) -> None:
    spec = {"user": "a", "nonResourceAttributes": {"path": "/", "verb": "get"}}
    for kind, asked in (("authorization.k8s.io/v1", spec), ("authentication.k8s.io/v1", {"token": "t"})):
        name = "SubjectAccessReview" if asked is spec else "TokenReview"
        assert verdict({"apiVersion": kind, "kind": name, "spec": asked}) == set()


def test_the_data_of_a_revision_stays(verdict: Any, edit: Any) -> None:
    old = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "x", "namespace": "default"},
        "data": {"a": 1},
        "revision": 1,
    }
    assert verdict(edit(old, {"revision": 2}), old) == set()
    assert verdict(edit(old, {"data": {"a": 2}}), old) == {("Invalid", "data")}
    assert verdict(edit(old, {"data": [1]})) == {("Required", "data")}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"spec.parallelism": 2, "spec.suspend": False}, set()),
        ({"spec.completions": 5, "spec.parallelism": 5}, set()),
        ({"spec.completions": 5}, {("Invalid", "spec.completions")}),
        ({"spec.backoffLimitPerIndex": 2}, {("Invalid", "spec.backoffLimitPerIndex")}),
        ({"spec.managedBy": "example.com/other"}, {("Invalid", "spec.managedBy")}),
        ({"spec.successPolicy": {"rules": [{"succeededCount": 1}]}}, {("Invalid", "spec.successPolicy")}),
        ({"spec.template.spec.nodeSelector": {"zone": "a"}}, set()),
        ({"spec.template.spec.containers[0].resources": {"requests": {"cpu": "1"}}}, set()),
        ({"spec.template.spec.containers[0].image": "other"}, {("Invalid", "spec.template.spec")}),
        ({"spec.template.spec.affinity": {"nodeAffinity": {}}}, set()),
        ({"spec.template.spec.affinity": {"podAffinity": {}}}, {("Invalid", "spec.template.spec")}),
    ],
)
def test_what_of_a_job_may_change_while_it_rests(
    verdict: Any, edit: Any, changes: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, **JOB}
    own = {"selector": {"matchLabels": labels}, "manualSelector": True, "template": template}
    old = job(**INDEXED, **{"suspend": True, **own})
    assert verdict(edit(old, changes), old) == expected
    if expected == set() and any("template" in path for path in changes):
        busy = edit(old, {"status": {"active": 1}})
        assert verdict(edit(busy, changes), busy) == {("Invalid", "spec.template")}


def test_a_job_without_labels_has_those_of_its_pods() -> None:
    made = validation.read(job(template={"metadata": {"labels": {"app": "a"}}, **JOB}))[2]
    ctx = Context(now=Time("2026-01-01T00:00:00Z"))
    done: Any = stages.prepare_for_create(stages.default_object(made, ctx.now), ctx)
    assert done.metadata.labels == done.spec.template.metadata.labels
    assert done.metadata.labels["job-name"] == "x"


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "StatefulSet"),
        ("policy/v1", "PodDisruptionBudget"),
        ("batch/v1", "Job"),
    ],
)
@pytest.mark.parametrize("form", ["values", "requirements"])
def test_selectors_are_bounded_for_whoever_reads_them(api: str, kind: str, form: str) -> None:
    many = range(MOST_VALUES + 1)
    if form == "values":
        selector: dict[str, Any] = {
            "matchExpressions": [{"key": "a", "operator": "In", "values": [f"v{number}" for number in many]}]
        }
    else:
        selector = {"matchExpressions": [{"key": "a", "operator": "Exists"} for _ in many]}
    spec: dict[str, Any] = {"selector": selector}
    if kind != "PodDisruptionBudget":
        spec["template"] = JOB if kind == "Job" else PODS
    if kind == "Job":
        spec["manualSelector"] = True
    problems = validation.validate({"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": spec})
    assert ("FieldValueTooMany", "spec.selector") in {(one.reason, one.field) for one in problems}


@pytest.mark.parametrize(("count", "expected"), [(900, set()), (901, {"spec.template.labels"})])
def test_templates_have_room_for_the_labels_that_controllers_add(count: int, expected: set[str]) -> None:
    labels = {f"k{number}": "v" for number in range(count)}
    template = {**PODS, "metadata": {"labels": labels}}
    spec = {"selector": {"matchLabels": {"k1": "v"}}, "template": template}
    assert {one.field for one in validation.validate(document("Deployment", "apps/v1", spec))} == expected


def test_selectors_of_replication_controllers_are_bounded_too() -> None:
    labels = {f"k{number}": "v" for number in range(MOST_VALUES + 1)}
    spec = {"template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "x"}]}}}
    made = {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "x"}, "spec": spec}
    assert "spec.selector" in {one.field for one in validation.validate(made)}

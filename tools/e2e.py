"""`make e2e E2E=path/to/e2e.test`: Kubernetes' own end-to-end tests on `dray up`, counted in `docs/conformance.md`.

The binary is built from Kubernetes' sources (`go test -c ./test/e2e`); nothing of it is part of this repository. The
tests of each area run one after the other on a fresh cluster of three simulated nodes, `E2E_JOBS` areas at a time.
What can run only with images, a shell in a container or a network between pods is left out, and said.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parents[1]
PAGE = HERE / "docs" / "conformance.md"
SECONDS = 1800
START = "<!-- counts -->\n"
PAIRINGS = "<!-- pairings -->\n"


class Area(NamedTuple):
    """Tests by what their names say; `without` are those that cannot run here, because of `why`."""

    name: str
    focus: str
    without: str = ""
    why: str = ""


NEEDS_IMAGES = "needs a program or a file system in a container"
NEEDS_BAD_IMAGES = "needs images that cannot be pulled, or a program in a container"
NEEDS_WEBHOOK = "needs a webhook or an API server that runs in a container"
AREAS = (
    Area(
        "Custom resources",
        r"sig-api-machinery.*CustomResource(Definition (resources|Watch)|ValidationRules)",
    ),
    Area(
        "OpenAPI of custom resources",
        r"sig-api-machinery.*CustomResourcePublishOpenAPI",
        r"Flaky",
        "marked flaky upstream",
    ),
    Area("Field validation", r"sig-api-machinery.*FieldValidation"),
    Area("Admission policies", r"sig-api-machinery.*(ValidatingAdmissionPolicy|MutatingAdmissionPolicy)"),
    Area("Watches", r"sig-api-machinery.*Watchers"),
    Area("Quotas", r"sig-api-machinery.*ResourceQuota.*(Conformance|DRA)"),
    Area("Garbage collector", r"sig-api-machinery.*Garbage collector.*Conformance"),
    Area("Namespaces", r"sig-api-machinery.*(Namespaces|OrderedNamespaceDeletion)"),
    Area("Apply", r"sig-api-machinery.*ServerSideApply"),
    Area(
        "Tables, chunks, discovery",
        r"sig-api-machinery.*(support for Table|support for API chunking|Discovery|server version).*Conformance",
    ),
    Area(
        "API of fairness, migrations",
        r"sig-api-machinery.*(API priority and fairness|StorageVersionMigration CRUD).*Conformance",
    ),
    Area(
        "Webhooks, aggregation",
        r"sig-api-machinery.*(AdmissionWebhook|ConversionWebhook|CustomResourceFieldSelectors|Aggregator).*Conformance",
        r".",
        NEEDS_WEBHOOK,
    ),
    Area(
        "Certificates, accounts, reviews",
        r"sig-auth.*(Certificates API|ServiceAccounts|PodCertificateRequest API|SubjectReview|CRUD Tests).*Conformance",
        r"mount an API token|mount projected|OIDC",
        NEEDS_IMAGES,
    ),
    Area(
        "Certificates and bundles in pods",
        r"sig-auth.*(Projected PodCertificate|ClusterTrustBundleProjection\] should).*Conformance",
        r".",
        NEEDS_IMAGES,
    ),
    Area("Devices: CRUD", r"DRA.*CRUD"),
    Area("Devices: control plane", r"DRA.*(control plane|ResourceSlice Controller)"),
    Area(
        "Devices: nodes, extended resources, taints",
        r"\[DRA\].*(kubelet|\] metadata|ExtendedResource|compatibility groups)",
        r".",
        "needs drivers that run in containers",
    ),
    Area(
        "Scheduling, limits",
        r"sig-scheduling.*(SchedulerPredicates|SchedulerPreemption|LimitRange).*Conformance",
    ),
    Area("Gangs, workloads", r"sig-scheduling.*(GangScheduling|Workload)"),
    Area(
        "DaemonSets, revisions",
        r"sig-apps.*(Daemon set|ControllerRevision).*Conformance",
        r"rollback without unnecessary restarts",
        NEEDS_BAD_IMAGES,
    ),
    Area(
        "Deployments, ReplicaSets",
        r"sig-apps.*(Deployment|ReplicaSet|ReplicationController).*Conformance",
        r"basic image|proportional scaling",
        NEEDS_BAD_IMAGES,
    ),
    Area("CronJobs, budgets", r"sig-apps.*(CronJob|DisruptionController).*Conformance"),
    Area(
        "StatefulSets",
        r"sig-apps.*StatefulSet.*Conformance",
        r"unhealthy|canary|roll backs",
        NEEDS_IMAGES,
    ),
    Area(
        "Jobs",
        r"sig-apps.*\] Job .*Conformance",
        r"matching on DisruptionTarget condition|locally restarted|container restart policy",
        "needs programs that do something else when they are started again",
    ),
)


class Result(NamedTuple):
    """What came of an area."""

    area: Area
    passed: int
    failed: dict[str, str]
    """Why, by name."""
    skipped: dict[str, str]
    """Those that found out themselves that they cannot run, and why."""
    left_out: int
    """How many the runner did not try."""


def main() -> None:
    """Runs all areas, or those whose names contain a word of the command line, and writes their rows of the page."""
    binary = os.environ.get("E2E", "")
    if not binary or not Path(binary).is_file():
        raise SystemExit(
            "name the binary: make e2e E2E=path/to/e2e.test (go test -c ./test/e2e in Kubernetes' sources)"
        )
    wanted = [area for area in AREAS if not sys.argv[1:] or any(word in area.name for word in sys.argv[1:])]
    with ThreadPoolExecutor(int(os.environ.get("E2E_JOBS", "1"))) as threads:
        for result in threads.map(lambda area: run(binary, area), wanted):
            counts = f"{result.passed} passed, {len(result.failed)} failed, {len(result.skipped)} skipped"
            why = [f"{spec}\n    {message}" for spec, message in (*result.failed.items(), *result.skipped.items())]
            print(f"{result.area.name}: {counts}", *why, sep="\n  ", flush=True)
            PAGE.write_text(page(result, PAGE.read_text()))


def run(binary: str, area: Area) -> Result:
    """One area on a cluster of its own."""
    with tempfile.TemporaryDirectory(prefix="dray-e2e-", ignore_cleanup_errors=True) as name:
        directory = Path(name) / "state"
        log = Path(name) / "log"
        command = [sys.executable, "-c", "from dray.cli.main import main; main()"]
        command += ["up", "--dir", str(directory), "--port", "0", "--nodes", "3"]
        with log.open("w") as output:
            cluster = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            while "\nnodes 3/3 ready" not in log.read_text():
                if cluster.poll() is not None:
                    raise SystemExit(f"the cluster did not start:\n{log.read_text()}")
                time.sleep(0.1)
            _tell_how_programs_end(directory)
            report = Path(name) / "report.json"
            tests = [binary, "--kubeconfig", str(directory / "kubeconfig"), "--provider", "skeleton"]
            tests += ["--allowed-not-ready-nodes=0", "--dump-logs-on-failure=false"]
            tests += [f"--ginkgo.focus={area.focus}", f"--ginkgo.json-report={report}", "--ginkgo.no-color"]
            if area.without:
                tests.append(f"--ginkgo.skip={area.without}")
            subprocess.run(tests, capture_output=True, timeout=SECONDS, check=False, cwd=name)
            return _read(area, json.loads(report.read_text()))
        finally:
            cluster.send_signal(signal.SIGTERM)
            cluster.wait(20)


def _tell_how_programs_end(directory: Path) -> None:
    """Simulated pods run no programs: a policy says of the shortest ones of the suite how they would end."""
    told = json.dumps({"apiVersion": "v1", "kind": "List", "items": how_programs_end()}).encode()
    command = ["kubectl", "--kubeconfig", str(directory / "kubeconfig"), "create", "-f", "-"]
    subprocess.run(command, input=told, check=True, capture_output=True)


def how_programs_end() -> list[dict[str, Any]]:
    """The policy, and what binds it: programs of jobs that do nothing but end, do so after a second."""
    version, name = "admissionregistration.k8s.io/v1", {"name": "how-programs-end"}
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    words = "(c.?command.orValue([]) + c.?args.orValue([])).join(' ')"
    told = "{'dray.dev/run-seconds': '1', 'dray.dev/exit-code': variables.code}"
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [pods]},
        "variables": [
            {"name": "text", "expression": f"object.spec.containers.map(c, {words}).join(' ')"},
            {
                "name": "index",
                "expression": "object.metadata.?annotations[?'batch.kubernetes.io/job-completion-index']",
            },
            {
                "name": "code",
                "expression": "variables.text.contains('JOB_COMPLETION_INDEX') ? "
                "string(int(variables.index.orValue('0')) % 2) : variables.text.contains('exit 1') ? '1' : '0'",
            },
        ],
        "matchConditions": [
            {
                "name": "pods-of-jobs",
                "expression": "object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == 'Job')",
            },
            {
                "name": "programs-that-end",
                "expression": f"object.spec.containers.all(c, {words}.contains('exit ') || "
                f"({words} == '' && c.image.contains('busybox')))",
            },
        ],
        "mutations": [
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": f"Object{{metadata: Object.metadata{{annotations: {told}}}}}"},
            }
        ],
    }
    policy = {"apiVersion": version, "kind": "MutatingAdmissionPolicy", "metadata": name, "spec": spec}
    bound = {"policyName": name["name"]}
    binding = {"apiVersion": version, "kind": "MutatingAdmissionPolicyBinding", "metadata": name, "spec": bound}
    return [policy, binding]


def _read(area: Area, suites: list[dict[str, Any]]) -> Result:
    passed, left_out = 0, 0
    failed: dict[str, str] = {}
    skipped: dict[str, str] = {}
    for spec in (spec for suite in suites for spec in suite.get("SpecReports") or () if spec["LeafNodeType"] == "It"):
        name = " ".join([*spec["ContainerHierarchyTexts"], spec["LeafNodeText"]])
        why = (spec.get("Failure") or {}).get("Message", "")
        match spec["State"]:
            case "passed":
                passed += 1
            case "skipped" if why:
                skipped[name] = why
            case "skipped" | "pending":
                left_out += bool(area.without and re.search(area.focus, name) and re.search(area.without, name))
            case _:
                failed[name] = why
    return Result(area, passed, failed, skipped, left_out)


def page(result: Result, before: str) -> str:
    """The page with the row of an area anew; those of others, and what others count behind them, stay."""
    head, _, rest = before.partition(START)
    counts, _, behind = rest.partition(PAIRINGS)
    rows = {line.split(" | ")[0].strip("| "): line for line in counts.splitlines() if line.startswith("| ")}
    lost = [line for line in counts.splitlines() if line.startswith("- ")]
    area, passed, failed, skipped, count = result
    commit = subprocess.run(["git", "describe", "--always"], capture_output=True, text=True, check=True, cwd=HERE)
    when = f"{date.today().isoformat()} at {commit.stdout.strip()}"
    left_out = [f"{count}: {area.why}"] if area.without else []
    left_out += [f"{len(skipped)} skip themselves"] if skipped else []
    rows[area.name] = f"| {area.name} | {passed} | {len(failed)} | {when} | {'; '.join(left_out)} |"
    lost = [line for line in lost if not line.startswith(f"- {area.name}: ")]
    lost += [f"- {area.name}: " + re.sub(r"([|<>])", r"\\\1", name) for name in failed]
    known = [rows[each.name] for each in AREAS if each.name in rows]
    total = [sum(int(row.split(" | ")[column]) for row in known) for column in (1, 2)]
    lines = ["", "| Area | Passed | Failed | Counted | Left out |", "|---|---|---|---|---|", *known]
    lines += [f"| all | {total[0]} | {total[1]} | | |", ""]
    if lost:
        lines += ["Those that fail:", "", *lost, ""]
    return head + START + "\n".join([*lines, ""]) + (PAIRINGS + behind if behind else "")


if __name__ == "__main__":
    main()

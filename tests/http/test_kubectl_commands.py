"""The commands of stock kubectl that make and change objects by themselves: their typed clients speak protobuf."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from live_server import Kubectl, LiveServer
from patience import KUBECTL_PATIENCE

APPS = "/apis/apps/v1"
BATCH = "/apis/batch/v1"
NETWORKING = "/apis/networking.k8s.io/v1"
POLICY = "/apis/policy/v1"


def seen(server: LiveServer, group: str, namespace: str, path: str) -> Any:
    answer = server.request("GET", f"{group}/namespaces/{namespace}/{path}")
    assert answer.code == 200, answer.body
    return answer.json


def at(value: Any, path: str) -> Any:
    """What is at a path such as `spec.ports.0.port`."""
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


MADE: list[tuple[str, str, str, dict[str, Any]]] = [
    (
        "run one --image=nginx --port=80 --env=A=b --labels=app=one",
        "/api/v1",
        "pods/one",
        {"spec.containers.0.env.0": {"name": "A", "value": "b"}, "spec.restartPolicy": "Always"},
    ),
    (
        "create deployment one --image=nginx --replicas=2 --port=80",
        APPS,
        "deployments/one",
        {
            "spec.replicas": 2,
            "spec.strategy.type": "RollingUpdate",
            "spec.template.spec.containers.0.ports.0.containerPort": 80,
            "spec.template.spec.containers.0.imagePullPolicy": "Always",
            "spec.template.spec.dnsPolicy": "ClusterFirst",
        },
    ),
    (
        "create job one --image=busybox -- sleep 1",
        BATCH,
        "jobs/one",
        {"spec.template.spec.containers.0.command": ["sleep", "1"], "spec.template.spec.restartPolicy": "Never"},
    ),
    (
        "create cronjob one --image=busybox --schedule='*/5 * * * *' -- true",
        BATCH,
        "cronjobs/one",
        {"spec.schedule": "*/5 * * * *", "spec.concurrencyPolicy": "Allow", "spec.suspend": False},
    ),
    (
        "create service clusterip one --tcp=80:8080",
        "/api/v1",
        "services/one",
        {"spec.type": "ClusterIP", "spec.ports.0.targetPort": 8080, "spec.sessionAffinity": "None"},
    ),
    ("create service nodeport one --tcp=80:web", "/api/v1", "services/one", {"spec.ports.0.targetPort": "web"}),
    ("create service loadbalancer one --tcp=80", "/api/v1", "services/one", {"spec.type": "LoadBalancer"}),
    (
        "create service externalname one --external-name=a.example.com",
        "/api/v1",
        "services/one",
        {"spec.externalName": "a.example.com"},
    ),
    (
        "create secret docker-registry one --docker-username=u --docker-password=p",
        "/api/v1",
        "secrets/one",
        {"type": "kubernetes.io/dockerconfigjson"},
    ),
    (
        "create pdb one --selector=app=web --max-unavailable=50%",
        POLICY,
        "poddisruptionbudgets/one",
        {"spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "web"}}}},
    ),
    (
        "create ingress one --class=c --rule=a.example.com/x=one:80,tls=cert --default-backend=other:http",
        NETWORKING,
        "ingresses/one",
        {
            "spec.defaultBackend.service": {"name": "other", "port": {"name": "http"}},
            "spec.rules.0.http.paths.0.backend.service": {"name": "one", "port": {"number": 80}},
            "spec.tls.0": {"hosts": ["a.example.com"], "secretName": "cert"},
        },
    ),
]


@pytest.mark.parametrize(("command", "group", "path", "wanted"), MADE, ids=[command for command, *_ in MADE])
def test_objects_that_kubectl_makes(
    kubectl: Kubectl,
    server: LiveServer,
    namespace: str,
    command: str,
    group: str,
    path: str,
    wanted: dict[str, Any],
) -> None:
    arguments = shlex.split(command)
    kubectl(*arguments[:2], "-n", namespace, *arguments[2:])
    made = seen(server, group, namespace, path)
    assert {field: at(made, field) for field in wanted} == wanted


def test_a_priority_class(kubectl: Kubectl, server: LiveServer) -> None:
    kubectl("create", "priorityclass", "less-than-nothing", "--value=-5", "--preemption-policy=Never")
    made = server.request("GET", "/apis/scheduling.k8s.io/v1/priorityclasses/less-than-nothing").json
    assert (made["value"], made["preemptionPolicy"]) == (-5, "Never")


def test_a_job_from_a_cron_job(kubectl: Kubectl, server: LiveServer, namespace: str) -> None:
    kubectl("create", "cronjob", "cron", "-n", namespace, "--image=busybox", "--schedule=@daily", "--", "true")
    kubectl("create", "job", "by-hand", "-n", namespace, "--from=cronjob/cron")
    job = seen(server, BATCH, namespace, "jobs/by-hand")
    assert job["metadata"]["ownerReferences"][0]["name"] == "cron"
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["true"]


def test_the_life_of_a_deployment(kubectl: Kubectl, server: LiveServer, namespace: str) -> None:
    def run(*arguments: str) -> str:
        return kubectl(*arguments, "-n", namespace)

    def container() -> Any:
        return seen(server, APPS, namespace, "deployments/web")["spec"]["template"]["spec"]["containers"][0]

    run("create", "deployment", "web", "--image=nginx")
    run("expose", "deployment", "web", "--port=80", "--target-port=8080")
    service = seen(server, "/api/v1", namespace, "services/web")["spec"]
    assert (service["selector"], service["ports"][0]["targetPort"]) == ({"app": "web"}, 8080)
    run("scale", "deployment", "web", "--replicas=3")
    assert seen(server, APPS, namespace, "deployments/web")["spec"]["replicas"] == 3
    run("set", "image", "deployment/web", "nginx=nginx:2")
    run("set", "env", "deployment/web", "A=b")
    run("set", "resources", "deployment", "web", "--limits=cpu=200m")
    now = container()
    assert (now["image"], now["env"], now["resources"]["limits"]) == (
        "nginx:2",
        [{"name": "A", "value": "b"}],
        {"cpu": "200m"},
    )
    run("rollout", "restart", "deployment", "web")
    template = seen(server, APPS, namespace, "deployments/web")["spec"]["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    run("rollout", "pause", "deployment", "web")
    assert seen(server, APPS, namespace, "deployments/web")["spec"]["paused"] is True
    run("delete", "deployment", "web", "--cascade=orphan", "--wait=false")
    assert seen(server, APPS, namespace, "deployments/web")["metadata"]["finalizers"] == ["orphan"]


def test_a_deployment_is_scaled_by_its_load(kubectl: Kubectl, server: LiveServer, namespace: str) -> None:
    """Older versions of kubectl do it in autoscaling/v1, newer ones in v2."""
    kubectl("create", "deployment", "web", "-n", namespace, "--image=nginx")
    kubectl("autoscale", "deployment", "web", "-n", namespace, "--min=2", "--max=5", "--cpu-percent=50")
    path = "horizontalpodautoscalers/web"
    assert seen(server, "/apis/autoscaling/v1", namespace, path)["spec"]["targetCPUUtilizationPercentage"] == 50
    (metric,) = seen(server, "/apis/autoscaling/v2", namespace, path)["spec"]["metrics"]
    assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 50}
    change = {"spec": {"maxReplicas": 9}}
    where = f"/apis/autoscaling/v1/namespaces/{namespace}/{path}"
    assert server.request("PATCH", where, change, "application/merge-patch+json").code == 200
    spec = seen(server, "/apis/autoscaling/v2", namespace, path)["spec"]
    assert (spec["maxReplicas"], len(spec["metrics"])) == (9, 1)


def test_objects_are_replaced_and_pruned(kubectl: Kubectl, server: LiveServer, namespace: str) -> None:
    def manifest(*names: str) -> str:
        one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, labels: {set: one}}\ndata: {a: %s}\n"
        return "---\n".join(one % (name, name) for name in names)

    def names() -> list[str]:
        listed = server.request("GET", f"/api/v1/namespaces/{namespace}/configmaps?labelSelector=set%3Done").json
        return [item["metadata"]["name"] for item in listed["items"]]

    kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest("x1", "x2"))
    kubectl(
        *("apply", "-n", namespace, "-f", "-", "--prune", "-l", "set=one", "--prune-allowlist=core/v1/ConfigMap")
        if "--prune-allowlist" in kubectl("apply", "--help")
        else ("apply", "-n", namespace, "-f", "-", "--prune", "-l", "set=one", "--prune-whitelist=core/v1/ConfigMap"),
        stdin=manifest("x1"),
    )
    assert names() == ["x1"]
    kubectl("replace", "-n", namespace, "-f", "-", stdin=manifest("x1").replace("a: x1", "b: x2"))
    assert seen(server, "/api/v1", namespace, "configmaps/x1")["data"] == {"b": "x2"}
    kubectl("replace", "--force", "-n", namespace, "-f", "-", stdin=manifest("x1"))
    kubectl("delete", "configmap", "-n", namespace, "-l", "set=one")
    assert names() == []


def test_drain_leaves_the_pods_of_daemon_sets(kubectl: Kubectl, server: LiveServer, namespace: str) -> None:
    node = f"node-{namespace}"
    assert server.request("POST", "/api/v1/nodes", {"metadata": {"name": node}}).code == 201
    containers = [{"name": "c", "image": "i"}]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}
    daemons = {
        "metadata": {"name": "everywhere"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    made = server.request("POST", f"{APPS}/namespaces/{namespace}/daemonsets", daemons)
    assert made.code == 201, made.body
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "everywhere",
        "uid": made.json["metadata"]["uid"],
        "controller": True,
    }
    for name, owners in (("daemon", [owner]), ("plain", [])):
        pod = {
            "metadata": {"name": name, "ownerReferences": owners, "labels": {"a": "b"}},
            "spec": {"containers": containers, "nodeName": node},
        }
        assert server.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod).code == 201
    said = kubectl.run("drain", node, "--force", "--timeout=10s")
    assert said.returncode != 0
    assert "DaemonSet-managed" in said.stderr
    ignoring = ("--ignore-daemonsets", "--disable-eviction", "--grace-period=0", KUBECTL_PATIENCE)
    kubectl("drain", node, "--force", *ignoring)
    left = server.request("GET", f"/api/v1/namespaces/{namespace}/pods").json["items"]
    assert [pod["metadata"]["name"] for pod in left] == ["daemon"]


def test_a_pod_is_looked_into(kubectl: Kubectl, server: LiveServer, namespace: str) -> None:
    kubectl("run", "seen", "--image=app", "-n", namespace)
    kubectl("debug", "seen", "-n", namespace, "--image=busybox", "--container=eye", "--target=seen")
    spec = seen(server, "/api/v1", namespace, "pods/seen")["spec"]
    assert [(one["name"], one["image"], one["targetContainerName"]) for one in spec["ephemeralContainers"]] == [
        ("eye", "busybox", "seen")
    ]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exec silent -- ls", "pod silent does not have a host assigned"),
        ("top pods", "Metrics API not available"),
    ],
)
def test_what_needs_containers_says_so(kubectl: Kubectl, namespace: str, command: str, why: str) -> None:
    kubectl("run", "silent", "--image=app", "-n", namespace)
    arguments = command.split()
    said = kubectl.run(arguments[0], "-n", namespace, *arguments[1:])
    assert said.returncode != 0
    assert why in said.stderr


def test_versions_and_where_the_server_is(kubectl: Kubectl, server: LiveServer) -> None:
    assert json.loads(kubectl("version", "-o", "json"))["serverVersion"]["major"] == "1"
    assert server.url.rstrip("/") in kubectl("cluster-info")
    assert "resource.k8s.io/v1" in kubectl("api-versions").split()


@pytest.mark.parametrize(
    ("command", "resource", "row"),
    [
        ("create service nodeport shown --tcp=80", "services", "NodePort <none>"),
        ("create service loadbalancer shown --tcp=80", "services", "LoadBalancer <pending>"),
        ("create service externalname shown --external-name=a.example.com", "services", "ExternalName a.example.com"),
        (
            "create ingress shown --class=c --rule=a.example.com/x=s:80,tls=t",
            "ingresses",
            "shown c a.example.com 80, 443",
        ),
        ("create cronjob shown --image=i --schedule=@daily", "cronjobs", "shown @daily <none> False 0 <none>"),
    ],
)
def test_what_rows_say(kubectl: Kubectl, namespace: str, command: str, resource: str, row: str) -> None:
    arguments = command.split()
    kubectl(*arguments, "-n", namespace)
    shown = kubectl("get", resource, "shown", "-n", namespace, "--no-headers").split()
    assert [word for word in shown if word in row.split()] == row.split()


def test_rows_of_sets_and_classes(kubectl: Kubectl, server: LiveServer, namespace: str) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    base = f"{APPS}/namespaces/{namespace}"
    more = {"serviceName": "s", "replicas": 3}
    assert server.request("POST", f"{base}/statefulsets", {"metadata": {"name": "s"}, "spec": spec | more}).code == 201
    assert server.request("POST", f"{base}/daemonsets", {"metadata": {"name": "d"}, "spec": spec}).code == 201
    assert kubectl("get", "sts", "s", "-n", namespace, "--no-headers").split()[:2] == ["s", "0/3"]
    shown = kubectl("get", "ds", "d", "-n", namespace, "--no-headers").split()
    assert shown[:7] == ["d", "0", "0", "0", "0", "0", "<none>"]
    wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    claim = {"metadata": {"name": "v"}, "spec": wanted | {"resources": {"requests": {"storage": "1Gi"}}}}
    made = server.request("POST", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", claim)
    assert made.code == 201, made.body
    assert kubectl("get", "pvc", "v", "-n", namespace, "--no-headers").split()[:3] == ["v", "Pending", "fast"]
    kubectl("create", "priorityclass", namespace, "--value=7")
    shown = kubectl("get", "priorityclass", namespace, "--no-headers").split()
    assert (shown[:3], shown[4:]) == ([namespace, "7", "false"], ["PreemptLowerPriority"])


@pytest.mark.parametrize(
    "query",
    [
        "/api/v1/services?fieldSelector=spec.type%3DNodePort",
        "/apis/certificates.k8s.io/v1/clustertrustbundles?fieldSelector=spec.signerName%3Da",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests?fieldSelector=spec.signerName%3Da",
        "/apis/certificates.k8s.io/v1/podcertificaterequests?fieldSelector=spec.nodeName%3Da",
    ],
)
def test_fields_that_components_select_by(server: LiveServer, query: str) -> None:
    assert server.request("GET", query).code == 200

"""The objects of an installation, with `${name}` for values, and when each of them is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from dray.install import definitions, rights
from dray.install.values import BESIDE, DEFAULT, INSTEAD, SECOND, Value

Document = dict[str, Any]

NAMESPACE: Final = "${namespace}"
PORT: Final = "${metrics.port}"
PAGE_PORT: Final = 6480
USER: Final = 65532
EVICTIONS: Final = ("device-taint-eviction-controller", "taint-eviction-controller")
EXPIRY: Final = "taint-expiry-controller"


class Piece(NamedTuple):
    """An object, and what values must be for it to be there."""

    file: str
    """In which file of a chart it is."""
    object: Document
    when: Mapping[str, Value] = {}


def pieces() -> Iterator[Piece]:
    """All of them, in the order in which they can be applied."""
    yield Piece("namespace", _namespace())
    yield Piece("crds", definitions.slice_patches(), {"crds.resourceSlicePatches": True})
    yield Piece("crds", definitions.taint_rules(), {"crds.deviceTaintRules": True})
    yield Piece("reader", rights.reader(), {"rbac.reader": True})
    for role in rights.account_roles():
        yield Piece("accounts", role, {"rbac.accounts": True})
    yield from _scheduler()
    yield from _controllers()
    yield from _dashboard()
    yield Piece("network", _network_policy(), {"networkPolicy.enabled": True})


def _scheduler() -> Iterator[Piece]:
    on: dict[str, Value] = {"scheduler.enabled": True}
    name = "dray-scheduler"
    yield Piece("scheduler", _account(name), on)
    for role in rights.cluster_rights(name, rights.scheduler_rules()):
        yield Piece("scheduler", role, on)
    second, default = on | {"scheduler.mode": SECOND}, on | {"scheduler.mode": DEFAULT}
    for when, place, lease in ((second, NAMESPACE, name), (default, "kube-system", "kube-scheduler")):
        for role in rights.lease_rights(name, place, lease):
            yield Piece("scheduler", role, when)
    own = ("--scheduler-name", "${scheduler.name}", "--lease", f"{NAMESPACE}/{name}")
    yield Piece("scheduler", _component(name, "scheduler", own), second)
    yield Piece("scheduler", _component(name, "scheduler", ("--lease", "kube-system/kube-scheduler")), default)
    yield from (Piece("scheduler", obj, on) for obj in (_budget(name), _service(name)))


def _controllers() -> Iterator[Piece]:
    on: dict[str, Value] = {"controllers.enabled": True}
    name = "dray-controllers"
    beside, instead = on | {"controllers.evictions": BESIDE}, on | {"controllers.evictions": INSTEAD}
    yield Piece("controllers", _account(name), on)
    for role in rights.cluster_rights(name, rights.controller_rules(EXPIRY)):
        yield Piece("controllers", role, beside)
    for role in rights.cluster_rights(name, rights.controller_rules(EXPIRY, *EVICTIONS)):
        yield Piece("controllers", role, instead)
    for role in rights.lease_rights(name, NAMESPACE, name):
        yield Piece("controllers", role, on)
    for when, names in ((beside, (EXPIRY,)), (instead, (*EVICTIONS, EXPIRY))):
        chosen = ["--controllers", ",".join(names), "--lease", f"{NAMESPACE}/{name}"]
        guard = ["--max-evictions", "${controllers.maxEvictions}"] if when is instead else []
        yield Piece("controllers", _component(name, "controllers", (*chosen, *guard)), when)
    yield from (Piece("controllers", obj, on) for obj in (_budget(name), _service(name)))


def _dashboard() -> Iterator[Piece]:
    """A page in plain HTTP, on the pod's loopback: `kubectl port-forward` leads there, and nothing else does.

    Its account has no rights. Everybody logs in with a token of their own, and has the rights of that.
    """
    on: dict[str, Value] = {"dashboard.enabled": True}
    name = "dray-dashboard"
    yield Piece("dashboard", _account(name), on)
    pod = _pod(name, ["dashboard", "--no-link", "--port", str(PAGE_PORT)], "${dashboard.memory}")
    yield Piece("dashboard", _deployment(name, 1, pod), on)


def _metadata(name: str, **more: Any) -> Document:
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "dray"}
    return {"name": name, "namespace": NAMESPACE, "labels": labels, **more}


def _labels(name: str) -> Document:
    return {"matchLabels": {"app.kubernetes.io/name": name}}


def _namespace() -> Document:
    # Nothing of dray needs more than the strictest of the standards for pods.
    labels = {"app.kubernetes.io/part-of": "dray", "pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def _account(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(name)}


def _component(name: str, command: str, arguments: tuple[str, ...]) -> Document:
    """A Deployment of something that the cluster needs, with metrics and probes."""
    pod = _pod(name, [command, *arguments, "--metrics-port", PORT, "--bind", "0.0.0.0"], "${resources.memory}")  # noqa: S104 - in a pod
    pod["priorityClassName"] = "system-cluster-critical"
    pod["containers"][0] |= {
        "ports": [{"name": "metrics", "containerPort": PORT}],
        "livenessProbe": _probe("/livez", 20),
        "readinessProbe": _probe("/readyz", 5),
    }
    return _deployment(name, f"${{{command}.replicas}}", pod)


def _deployment(name: str, replicas: int | str, pod: Document) -> Document:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(name),
        "spec": {
            "replicas": replicas,
            "selector": _labels(name),
            "template": {"metadata": {"labels": _metadata(name)["labels"]}, "spec": pod},
        },
    }


def _pod(name: str, arguments: list[str], memory: str) -> Document:
    return {
        "serviceAccountName": name,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "dray",
                "image": "${image}",
                "imagePullPolicy": "${imagePullPolicy}",
                "args": arguments,
                "resources": {
                    "requests": {"cpu": "${resources.cpu}", "memory": memory},
                    "limits": {"memory": memory},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                # Client keys are handed to the TLS library through a file that is gone at once.
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - an empty volume
            }
        ],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": _labels(name),
            }
        ],
    }


def _probe(path: str, seconds: int) -> Document:
    return {"httpGet": {"path": path, "port": "metrics"}, "periodSeconds": seconds, "timeoutSeconds": 5}


def _budget(name: str) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(name),
        "spec": {"maxUnavailable": 1, "selector": _labels(name)},
    }


def _service(name: str) -> Document:
    port = {"name": "metrics", "port": PORT, "targetPort": "metrics"}
    annotations = {"prometheus.io/scrape": "true", "prometheus.io/port": PORT}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(f"{name}-metrics", annotations=annotations),
        "spec": {"selector": _labels(name)["matchLabels"], "ports": [port]},
    }


def _network_policy() -> Document:
    web = [{"protocol": "TCP", "port": port} for port in (443, 6443)]
    names = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata("dray"),
        "spec": {
            "podSelector": {"matchLabels": {"app.kubernetes.io/part-of": "dray"}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"protocol": "TCP", "port": PORT}]}],
            "egress": [{"ports": [*web, *names]}],
        },
    }

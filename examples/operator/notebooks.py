"""An operator, with kopf: every Notebook gets a pod with a GPU, and another one when that pod has to leave.

kopf run --standalone --all-namespaces examples/operator/notebooks.py
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import kopf
from kubernetes import client, config
from kubernetes.client import ApiException

LABEL = "notebooks.example.com/name"


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """The operator's own requests go where kopf's go."""
    config.load_config()
    settings.posting.enabled = False


@kopf.on.create("example.com", "v1", "notebooks")
@kopf.on.resume("example.com", "v1", "notebooks")
def start(name: str, namespace: str, body: kopf.Body, **_: Any) -> None:
    """A template of claims and the first pod; both go with the notebook."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    template = {"metadata": {"name": name}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    kopf.adopt(template, owner=body)
    with _unless_it_is_there():
        client.ResourceV1Api().create_namespaced_resource_claim_template(namespace, template)
    _create_pod(name, namespace, body)


@kopf.on.event("v1", "pods", labels={LABEL: kopf.PRESENT})
def replace(event: kopf.RawEvent, labels: kopf.Labels, namespace: str, **_: Any) -> None:
    """A pod is gone: its notebook, if there still is one, gets another."""
    if event["type"] == "DELETED":
        notebooks = client.CustomObjectsApi()
        try:
            body = notebooks.get_namespaced_custom_object("example.com", "v1", namespace, "notebooks", labels[LABEL])
        except ApiException:
            return
        _create_pod(labels[LABEL], namespace, body)


def _create_pod(name: str, namespace: str, owner: Any) -> None:
    container = {"name": "main", "image": owner["spec"]["image"], "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": name}]
    pod = {
        "metadata": {"name": name, "labels": {LABEL: name}},
        "spec": {"containers": [container], "resourceClaims": claims},
    }
    kopf.adopt(pod, owner=owner)
    with _unless_it_is_there():
        client.CoreV1Api().create_namespaced_pod(namespace, pod)


@contextmanager
def _unless_it_is_there() -> Iterator[None]:
    try:
        yield
    except ApiException as error:
        if error.status != 409:
            raise

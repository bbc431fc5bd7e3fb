"""Parameters that a driver cannot use: refused by its webhook when they are written, or else when a pod starts."""

from __future__ import annotations

import http.client
import importlib
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dray import driver
from node_world import CLAIMS, NODE, local_world
from patience import PATIENCE
from webhook_certificates import write_certificate

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "drivers"
DRIVER = "gpu.example.com"
GOOD = {"env": {"MODE": "fast"}}
FOR_ADMINS = {"initCommand": ["reset"]}


def config(parameters: Any, name: str = DRIVER) -> list[dict[str, Any]]:
    return [{"opaque": {"driver": name, "parameters": parameters}}]


def obj(kind: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """An object of a kind with this configuration."""
    spec: dict[str, Any] = {"config": entries} if kind == "DeviceClass" else {"devices": {"config": entries}}
    return {"kind": kind, "spec": {"spec": spec} if kind == "ResourceClaimTemplate" else spec}


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The webhook, imported from its folder as Python does that runs it."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module("fake_gpu_webhook")


@pytest.fixture
def webhook(examples: ModuleType, tmp_path: Path) -> Iterator[http.client.HTTPSConnection]:
    """A connection to the webhook that trusts it."""
    cert, key = write_certificate(tmp_path)
    server = examples.serve(str(cert), str(key), 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    trust = ssl.create_default_context(cafile=str(cert))
    connection = http.client.HTTPSConnection("127.0.0.1", server.server_port, context=trust, timeout=PATIENCE)
    yield connection
    connection.close()
    server.shutdown()
    server.server_close()
    thread.join()


def ask(webhook: http.client.HTTPSConnection, body: Any) -> tuple[int, Any]:
    webhook.request("POST", "/", json.dumps(body), {"Content-Type": "application/json"})
    answer = webhook.getresponse()
    return answer.status, json.loads(answer.read())


@pytest.mark.req("4381-185", "4381-182")
@pytest.mark.parametrize(
    ("reviewed", "problem"),
    [
        (obj("ResourceClaim", config(GOOD)), ""),
        (obj("ResourceClaim", config(FOR_ADMINS)), "spec.devices.config[0].opaque.parameters: initCommand is only"),
        (obj("ResourceClaim", config({"colour": "red"})), "unknown parameters colour"),
        (obj("ResourceClaim", config({"colour": "red"}, "other.example.com")), ""),
        (obj("ResourceClaim", []), ""),
        (
            obj("ResourceClaimTemplate", config(FOR_ADMINS)),
            "spec.spec.devices.config[0].opaque.parameters: initCommand",
        ),
        (obj("DeviceClass", config(FOR_ADMINS)), ""),
        (obj("DeviceClass", config([])), "spec.config[0].opaque.parameters: unknown parameters (not an object)"),
    ],
)
def test_the_webhook_refuses_what_the_driver_could_not_use(
    webhook: http.client.HTTPSConnection, reviewed: dict[str, Any], problem: str
) -> None:
    request = {"uid": "u-1", "operation": "CREATE", "object": reviewed}
    code, answer = ask(webhook, {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    assert code == 200
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert (answer["response"]["uid"], answer["response"]["allowed"]) == ("u-1", not problem)
    assert problem in answer["response"].get("status", {}).get("message", "")


@pytest.mark.parametrize("body", [None, [], {}, {"request": {"uid": "u", "object": None}}])
def test_what_is_no_review_is_refused(webhook: http.client.HTTPSConnection, body: Any) -> None:
    code, answer = ask(webhook, body)
    assert code == 400
    assert "no AdmissionReview" in answer["error"]


@pytest.mark.req("4381-185", "4381-223")
@pytest.mark.usefixtures("examples")
async def test_without_the_webhook_the_pod_waits_and_an_event_says_why() -> None:
    fake_gpu = importlib.import_module("fake_gpu")

    async with local_world() as world:
        settings = driver.Settings(
            node=NODE,
            plugin_dir=world.root / "plugins" / DRIVER,
            registry_dir=world.root / "plugins_registry",
            cdi_dir=world.root / "cdi",
        )
        async with driver.Runner(fake_gpu.FakeGpu(1), settings, world.admin):
            await world.claim("c")
            entry = {**config({"colour": "red"})[0], "source": "FromClaim", "requests": []}
            result = {"request": "gpu", "driver": DRIVER, "pool": NODE, "device": "gpu-0"}
            status = {"allocation": {"devices": {"results": [result], "config": [entry]}}}
            await world.admin.patch(CLAIMS, "default", "c", {"status": status}, subresource="status")
            await world.pod("p", claims=["c"])
            await world.event("FailedPrepareDynamicResources", "unknown parameters colour")
            pod = await world.get("p")
            assert pod is not None
            assert pod.status.phase == "Pending"

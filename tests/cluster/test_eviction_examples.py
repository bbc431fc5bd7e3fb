"""The examples in examples/eviction_policies: KEP-3902's four stories, and a controller of one's own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import example_modules
from controller_world import World, controller_world, manifest
from dray.controllers.configuration import parse_configuration
from dray.controllers.eviction import check_settings
from dray.controllers.eviction.webhook import WebhookError, read_answer
from dray.controllers.settings import ControllerSettings
from dray.eviction.policy import Force, Never, Now, Wait
from dray.eviction.settings import EvictionSettings, PolicyChoice, SettingsError, Webhook
from eviction_objects import device_slice, leaving, rule, run_pod, use_devices
from example_modules import load
from patience import PATIENCE
from webhook_certificates import write_certificate

EXAMPLES = example_modules.EXAMPLES / "eviction_policies"
DEVICE = "device-taint-eviction-controller"
NODE = "taint-eviction-controller"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The examples, installed as `pip install .` would leave them."""
    info = tmp_path / "example_eviction_policies-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: example-eviction-policies\nVersion: 1.0\n")
    points = (EXAMPLES / "pyproject.toml").read_text().split('entry-points."dray.eviction_policies"]\n')[1]
    lines = [line.replace('"', "") for line in points.split("\n\n")[0].splitlines()]
    (info / "entry_points.txt").write_text("\n".join(["[dray.eviction_policies]", *lines]) + "\n")
    for name in ("central", "force_stuck"):
        (tmp_path / f"{name}.py").write_text((EXAMPLES / f"{name}.py").read_text())
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in ("central", "force_stuck"):
        sys.modules.pop(name, None)


@contextlib.asynccontextmanager
async def eviction_world(settings: ControllerSettings, *controllers: str) -> AsyncIterator[World]:
    async with controller_world(*(controllers or (DEVICE, NODE)), settings=settings) as world:
        await world.create(manifest("v1", "Node", "node-1"), device_slice("pool", "gpu-0", "gpu-1"))
        yield world


async def taint_node(world: World, key: str = "example.com/maintenance") -> None:
    await world.patch("nodes", "node-1", {"spec": {"taints": [{"key": key, "effect": "NoExecute"}]}})


async def eventually(world: World, condition: Callable[[], Awaitable[bool]], step: float = 0.001) -> None:
    """Waits for what threads and sockets bring, which take real time."""
    async with asyncio.timeout(PATIENCE):
        while not await condition():
            await asyncio.sleep(0.005)
            await world.settle(step)


@pytest.mark.req("3902-21", "SVS-71")
async def test_story_1_stateful_pods_leave_when_their_data_is_safe() -> None:
    path = EXAMPLES / "checkpoint.yaml"
    async with eviction_world(parse_configuration(path.read_bytes(), str(path))) as world:
        await run_pod(world, "db-0")
        await run_pod(world, "web-0")
        await world.patch("pods", "db-0", {"metadata": {"labels": {"app": "db"}}})
        await taint_node(world)
        await world.settle(600)
        assert await leaving(world) == {"web-0"}
        await world.patch("pods", "db-0", {"metadata": {"annotations": {"dray.dev/checkpointed": "done"}}})
        await world.settle(1)
        assert await leaving(world) == {"web-0", "db-0"}


@pytest.mark.req("3902-21", "SVS-71")
@pytest.mark.usefixtures("installed")
async def test_story_2_one_place_decides_about_all_taints() -> None:
    async with eviction_world(ControllerSettings(eviction=EvictionSettings(policy=PolicyChoice("central")))) as world:
        await use_devices(world, "claim", "gpu-0", pods=("on-device",))
        await run_pod(world, "plain", nodeName="node-1")
        await world.create(rule(), rule("hot", selector={"device": "gpu-1"}))
        await eventually(world, lambda: _is_leaving(world, "on-device"))
        await taint_node(world, "node.kubernetes.io/unreachable")
        await world.settle(301)  # what every pod tolerates
        await eventually(world, lambda: _has_event(world, "plain", "central: pod waits"))
        assert not await _is_leaving(world, "plain")
        await world.settle(301)
        await eventually(world, lambda: _is_leaving(world, "plain"))


@pytest.mark.req("3902-21", "SVS-71", "3902-15")
@pytest.mark.usefixtures("installed")
async def test_story_4_pods_that_hang_are_removed_by_force() -> None:
    async with eviction_world(
        ControllerSettings(eviction=EvictionSettings(policy=PolicyChoice("force-stuck", {"after": "1m"})))
    ) as world:
        await run_pod(world, "stuck", terminationGracePeriodSeconds=10)
        await taint_node(world)
        await eventually(world, lambda: _is_leaving(world, "stuck"))
        await world.settle(60)
        assert await _is_leaving(world, "stuck")

        async def is_gone() -> bool:
            return await world.get("pods", "stuck") is None

        await eventually(world, is_gone, step=5)
        assert await _has_event(world, "stuck", "force-stuck: pod is removed by force")


@pytest.mark.usefixtures("installed")
def test_installed_policies_are_offered_and_their_options_checked() -> None:
    with pytest.raises(SettingsError, match=r"there are central, checkpoint, delete, force-stuck, pdb"):
        check_settings(EvictionSettings(policy=PolicyChoice("centrall")))
    with pytest.raises(SettingsError, match="has no option 'when'; it has after"):
        check_settings(EvictionSettings(policy=PolicyChoice("force-stuck", {"when": "1m"})))
    with pytest.raises(SettingsError, match="'soon' is no duration"):
        check_settings(EvictionSettings(policy=PolicyChoice("force-stuck", {"after": "soon"})))


@contextlib.contextmanager
def serving(server: Any) -> Iterator[int]:
    """A webhook in a thread, on a free port."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)


def webhook(port: int, ca: Path, **more: Any) -> ControllerSettings:
    hook = Webhook(name="quorum", url=f"https://localhost:{port}/decide", ca_file=str(ca))
    return ControllerSettings(
        eviction=EvictionSettings(policy=PolicyChoice("quorum"), webhooks=(hook,), timeout=20.0, **more)
    )


@pytest.mark.req("3902-21", "SVS-71")
async def test_story_3_an_external_system_keeps_the_quorum(tmp_path: Path) -> None:
    cert, key = write_certificate(tmp_path)
    example = load("eviction_policies", "quorum_webhook")

    with serving(example.serve(str(cert), str(key), 0)) as port:
        async with eviction_world(webhook(port, cert), DEVICE) as world:
            names = ("a", "b", "c")
            await use_devices(world, "claim", "gpu-0", pods=names)
            for name in names:
                await _make_replica(world, name)
            await world.create(rule())

            async def one_leaves() -> bool:
                return len(await leaving(world)) == 1

            await eventually(world, one_leaves)
            for name in set(names) - await leaving(world):

                async def waits(name: str = name) -> bool:
                    return await _has_event(world, name, "quorum: pod waits: only 1 of 3 replicas would be left")

                await eventually(world, waits, step=1)
            assert await one_leaves()


async def test_a_webhook_with_another_certificate_is_not_trusted(tmp_path: Path) -> None:
    cert, key = write_certificate(tmp_path)
    (tmp_path / "other").mkdir()
    other, _ = write_certificate(tmp_path / "other")

    with serving(load("eviction_policies", "quorum_webhook").serve(str(cert), str(key), 0)) as port:
        async with eviction_world(webhook(port, other), NODE) as world:
            await run_pod(world, "p")
            await taint_node(world)
            await eventually(world, lambda: _has_event(world, "p", "quorum: "))
            events = [text for reason, text in await world.events("p") if reason == "EvictionPolicyFailed"]
            assert any("certificate" in text.lower() for text in events)
            assert not await _is_leaving(world, "p")


def test_the_configuration_of_story_3_is_read() -> None:
    path = EXAMPLES / "quorum.yaml"
    settings = parse_configuration(path.read_bytes(), str(path)).eviction
    assert settings.webhooks[0].url == "https://localhost:9443/decide"
    with pytest.raises(SettingsError, match=r"caFile ca\.pem"):
        check_settings(settings)


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ({"decision": "now", "reason": "r", "respectBudgets": True}, Now("r", respect_budgets=True)),
        ({"decision": "wait", "waitSeconds": 5}, Wait(1005.0)),
        ({"decision": "never", "reason": "r"}, Never("r")),
        ({"decision": "force"}, Force()),
    ],
)
def test_answers_of_webhooks(answer: dict[str, Any], decision: object) -> None:

    assert read_answer(json.dumps({"response": answer}).encode(), 1000.0) == decision


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"response": null}',
        b'{"response": {}}',
        b'{"response": {"decision": "maybe"}}',
        b'{"response": {"decision": "wait"}}',
        b'{"response": {"decision": "wait", "waitSeconds": -1}}',
        b'{"response": {"decision": "wait", "waitSeconds": 1e300}}',
        b'{"response": {"decision": "wait", "waitSeconds": "5"}}',
    ],
)
def test_answers_that_cannot_be_understood(text: bytes) -> None:
    with pytest.raises(WebhookError):
        read_answer(text, 1000.0)


def test_webhooks_must_be_safe(tmp_path: Path) -> None:
    plain = Webhook(name="w", url="http://localhost/decide")
    with pytest.raises(SettingsError, match="must start with https://"):
        check_settings(EvictionSettings(policy=PolicyChoice("w"), webhooks=(plain,)))
    (tmp_path / "ca.pem").write_text("no certificate")
    wrong = Webhook(name="w", url="https://localhost/decide", ca_file=str(tmp_path / "ca.pem"))
    with pytest.raises(SettingsError, match="caFile"):
        check_settings(EvictionSettings(policy=PolicyChoice("w"), webhooks=(wrong,)))


@pytest.mark.req("3902-21", "3902-22")
async def test_a_controller_of_ones_own_replaces_the_default_one() -> None:
    example = load("eviction_policies", "custom_controller")

    async with eviction_world(ControllerSettings(), DEVICE, "node-lifecycle-controller", f"-{NODE}") as world:
        assert NODE not in world.manager.controllers
        for name, value in (("dear", 10), ("cheap", 1)):
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            await world.create({**kind, "metadata": {"name": name}, "value": value})
            await run_pod(world, name, priorityClassName=name)
        await taint_node(world)
        await world.settle(30)
        assert await leaving(world) == set()
        own = asyncio.get_running_loop().create_task(example.run(world.admin, world.clock.sleep))
        await world.settle(5)
        assert await leaving(world) == {"cheap"}
        await world.delete("pods", "cheap", grace_period_seconds=0)
        await world.settle(5)
        assert await leaving(world) == {"dear"}
        own.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await own


async def _is_leaving(world: World, name: str) -> bool:
    return name in await leaving(world)


async def _has_event(world: World, name: str, start: str) -> bool:
    return any(text.startswith(start) for _, text in await world.events(name))


async def _make_replica(world: World, name: str) -> None:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": "set-uid", "controller": True}
    await world.patch("pods", name, {"metadata": {"ownerReferences": [reference]}})
    await world.patch("pods", name, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "status")

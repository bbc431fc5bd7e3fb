"""What is said of servers that are not dray's, and of those that say nothing."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from commands import run_here
from dray.api.generated.coordination import Lease, LeaseSpec
from dray.api.kinds import LEASES
from dray.api.meta import ObjectMeta
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.api.times import MicroTime
from dray.cli import live


class Server:
    def __init__(self, version: str, *leases: Lease) -> None:
        self._version = version
        self._leases = {one.metadata.namespace: one for one in leases}

    async def server_version(self) -> str:
        return self._version

    async def list(self, kind: Kind, *, labels: str) -> Lease:
        raise ApiError(403, "Forbidden", f"you may not list {kind.resource} with {labels}")

    async def get(self, kind: Kind, namespace: str, name: str) -> Lease:
        assert (kind, name) == (LEASES, "dray-controllers")
        if namespace not in self._leases:
            raise ApiError(404, "NotFound", "not there")
        return self._leases[namespace]


@pytest.mark.parametrize(
    ("version", "until", "warns"),
    [("v1.37.0", "12:00", True), ("v1.37.0+dray-0.1.0", "12:00", False), ("v1.37.0", None, False)],
)
async def test_an_end_that_nothing_enforces_is_not_promised(
    version: str, until: str | None, warns: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    client: Any = Server(version)
    await live.warn_of_end(client, until)
    said = capsys.readouterr().err
    assert bool(said) == warns
    promised = await live.tell_end(client, until)
    assert ("until" in promised) == (until is not None and not warns), "what it prints contradicts what it warns of"
    assert ("marked to end at 12:00" in promised) == warns
    assert not warns or "nothing on this server ends it at 12:00" in said


async def test_controllers_of_dray_on_such_a_server_may_keep_an_end(capsys: pytest.CaptureFixture[str]) -> None:
    held = LeaseSpec(
        holder_identity="one", lease_duration_seconds=15, renew_time=MicroTime.parse("9999-01-01T00:00:00.000000Z")
    )
    lease = Lease(metadata=ObjectMeta(name="dray-controllers", namespace="dray-system"), spec=held)
    client: Any = Server("v1.37.0", lease)
    await live.warn_of_end(client, "12:00")
    said = "it ends at 12:00 if taint-expiry-controller is among dray's controllers, who have lease dray-system/"
    assert said in capsys.readouterr().err
    assert await live.tell_end(client, "12:00") == ", marked to end at 12:00"


@pytest.mark.parametrize("command", [("doctor",), ("top", "--once")])
def test_a_server_that_does_not_answer_is_told_alike_by_all_commands(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dray.client.transport.REQUEST_SECONDS", 0.1)
    kubeconfig = tmp_path / "kubeconfig"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        found = {
            "clusters": [{"name": "x", "cluster": {"server": server}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "users": [{"name": "x", "user": {}}],
            "current-context": "x",
        }
        kubeconfig.write_text(json.dumps(found))
        done = run_here(*command, "--kubeconfig", kubeconfig)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"dray: {server} does not answer")

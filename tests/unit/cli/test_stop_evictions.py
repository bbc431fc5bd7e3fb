"""What `dray stop-evictions` promises: no more than whoever evicts on a cluster keeps."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from dray.api.generated.core import Namespace
from dray.api.kinds import RULES
from dray.api.meta import ObjectMeta
from dray.api.registry import Kind
from dray.api.resource import DeviceTaintRule, DeviceTaintRuleSpec
from dray.api.resource.taint import DeviceTaint
from dray.cli.output import Format
from dray.cli.stop_evictions import _set


class Listed(NamedTuple):
    items: list[DeviceTaintRule]


class Server:
    def __init__(self, version: str) -> None:
        self._version = version
        self.patched: list[str] = []

    async def server_version(self) -> str:
        return self._version

    async def get(self, _kind: Kind, _namespace: str, name: str) -> Namespace:
        return Namespace(metadata=ObjectMeta(name=name))

    async def list(self, kind: Kind, _namespace: str) -> Listed:
        assert kind is RULES
        rules = (("evicts", "NoExecute"), ("keeps-away", "NoSchedule"))
        specs = ((name, DeviceTaintRuleSpec(taint=DeviceTaint(key="k", effect=effect))) for name, effect in rules)
        return Listed([DeviceTaintRule(metadata=ObjectMeta(name=name), spec=spec) for name, spec in specs])

    async def patch(self, _kind: Kind, _namespace: str, name: str, _patch: Any) -> None:
        self.patched.append(name)


@pytest.mark.parametrize("version", ["v1.37.0", "v1.37.0+dray-0.1.0"])
async def test_what_goes_on_evicting_is_said(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    server: Any = Server(version)
    is_ours = "+dray" in version
    await _set(server, is_so=True)
    stopped = capsys.readouterr()
    assert stopped.out.startswith("All evictions are stopped. " if is_ours else "Evictions by dray are stopped. ")
    assert server.patched == (["kube-system"] if is_ours else ["kube-system", "evicts"])
    assert ("NoExecute taints go on evicting" in stopped.err) == (not is_ours)
    await _set(server, is_so=False)
    resumed = capsys.readouterr()
    assert resumed.out == "Evictions were not stopped.\n"
    assert ("stay that" in resumed.err) == (not is_ours)
    await _set(server, Format.JSON, is_so=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["stopped"], document["othersGoOn"]) == (True, not is_ours)
    assert document["softenedRules"] == ([] if is_ours else ["evicts"])

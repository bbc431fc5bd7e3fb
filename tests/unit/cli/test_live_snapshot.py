"""A snapshot of a running cluster has everything that its answers depend on."""

from __future__ import annotations

from typing import Any, cast

import pytest

from dray.api.generated.core import ResourceQuota, Service
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.kinds import PATCHES
from dray.api.meta import ObjectMeta
from dray.api.registry import Kind
from dray.api.resource import ResourceSlicePatch, ResourceSlicePatchSpec
from dray.cli import live
from dray.client.http import HttpClient
from dray.client.interface import ObjectList
from dray.snapshot.world import READ
from dray.what_if.unjudged import LOOKED_AT
from dray.what_if.workloads import MAKERS


class Asked:
    """A server that has nothing, and notes what it is asked for."""

    def __init__(self) -> None:
        self.types: set[type] = set()

    async def list(self, kind: Kind, namespace: str = "", **_: Any) -> ObjectList:
        assert not namespace
        self.types.add(kind.hub)
        return ObjectList((), "1")


@pytest.mark.parametrize(
    ("load", "needed"),
    [
        (live.load_snapshot, (*READ, ResourceQuota)),
        (live.load_snapshot_with_workloads, (*READ, *LOOKED_AT, *MAKERS, Service, PodDisruptionBudget)),
    ],
)
async def test_every_kind_that_an_answer_depends_on_is_read(load: Any, needed: tuple[type, ...]) -> None:
    asked = Asked()
    await load(cast("HttpClient", asked))
    assert set(needed) <= asked.types


GOLD = ResourceSlicePatch(
    api_version=PATCHES.api_version, kind=PATCHES.kind, metadata=ObjectMeta(name="gold"), spec=ResourceSlicePatchSpec()
)


class Patched(Asked):
    """A server with one patch, in a group."""

    def __init__(self, group: str) -> None:
        super().__init__()
        self._group = group

    async def list(self, kind: Kind, namespace: str = "", **_: Any) -> ObjectList:
        await super().list(kind, namespace)
        return ObjectList((GOLD,) if kind is PATCHES else (), "1")

    async def group_of(self, kind: Kind) -> str:
        assert kind is PATCHES
        return self._group


@pytest.mark.parametrize(("group", "told"), [("dray.dev", True), ("resource.k8s.io", False)])
async def test_what_only_dray_goes_by_is_said(group: str, told: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """kube-scheduler sees no patches, so what `explain` says of a pod may not be what becomes of it."""
    await live.load_snapshot(cast("HttpClient", Patched(group)))
    assert ("resourceslicepatches.dray.dev count here: " in capsys.readouterr().err) == told

"""A snapshot of a running cluster has everything that its answers depend on."""

from __future__ import annotations

from typing import Any, cast

import pytest

from dray.api.generated.core import ResourceQuota, Service
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.registry import Kind
from dray.cli import live
from dray.client import Client
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
    await load(cast("Client", asked))
    assert set(needed) <= asked.types

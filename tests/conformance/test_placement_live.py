"""The recorded fleets again, through an API server and the placement controller: what is written is what was recorded.

All cases on a server in memory, whose clock is that of the recording; some that do not depend on the time also over
HTTP, on the clock of the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.cluster import Placement, PlacementDecision
from dray.api.cluster.placement_decision import DECISION_GROUP_INDEX_LABEL, PLACEMENT_LABEL
from dray.api.generated.core import Namespace
from dray.api.meta import ObjectMeta
from dray.api.registry import by_kind
from dray.client import Client
from dray.client.http import HttpClient
from dray.client.kubeconfig import load_kubeconfig
from dray.controllers import Manager
from dray.reconcile import RealClock, VirtualClock
from dray.server.instance import Instance, ServerSettings
from local_server import local_server
from patience import eventually_async
from placement_fleet import read

DATA = Path(__file__).parent / "data" / "placement.jsonl.xz"
CASES: list[dict[str, Any]] = [json.loads(line) for line in lzma.decompress(DATA.read_bytes()).splitlines()]
TIMELESS = [case for case in CASES if len(case["steps"]) == 1 and "tolerationSeconds" not in json.dumps(case)][::6]
GROUP = "cluster.open-cluster-management.io"


async def fill(client: Client, case: dict[str, Any]) -> None:
    """Creates the objects of a case, placements last."""
    objects = [read(document) for document in case["objects"]]
    namespaces = {obj.metadata.namespace for obj in objects} - {"", "default"}
    for name in sorted(namespaces):
        await client.create(Namespace(kind="Namespace", api_version="v1", metadata=ObjectMeta(name=name)))
    for obj in sorted(objects, key=lambda obj: isinstance(obj, Placement)):
        await create(client, obj)


async def create(client: Client, obj: Any) -> None:
    """Creates an object with the status it has; one that is being deleted stays because somebody holds on to it."""
    is_deleting = obj.metadata.deletion_timestamp is not None
    finalizers = obj.metadata.finalizers or (("example.com/hold",) if is_deleting else ())
    meta = replace(
        obj.metadata, uid="", resource_version="", deletion_timestamp=None, finalizers=finalizers, owner_references=()
    )
    made = await client.create(replace(obj, metadata=meta))
    if obj.status != type(obj.status)():
        await client.update(replace(made, status=obj.status), subresource="status")
    if is_deleting:
        kind = by_kind(obj.api_version, obj.kind)
        await client.delete(kind, meta.namespace, meta.name)


async def read_back(client: Client, case: dict[str, Any]) -> dict[str, Any]:
    """What the API shows for the placement of a case."""
    namespace, name = case["placement"].split("/")
    listing = await client.list(by_kind(f"{GROUP}/v1beta1", "PlacementDecision"), namespace)
    own = [
        one
        for one in listing.items
        if isinstance(one, PlacementDecision) and one.metadata.labels.get(PLACEMENT_LABEL) == name
    ]
    own.sort(key=lambda one: int(one.metadata.labels.get(DECISION_GROUP_INDEX_LABEL) or 0))
    placement = await client.get(by_kind(f"{GROUP}/v1beta1", "Placement"), namespace, name)
    assert isinstance(placement, Placement)
    return {
        "decisions": [entry.cluster_name for one in own for entry in one.status.decisions],
        "conditions": {one.type: [one.status, one.reason] for one in placement.status.conditions},
        "count": placement.status.number_of_selected_clusters,
    }


def expected(step: dict[str, Any]) -> dict[str, Any]:
    return {
        "decisions": step["decisions"],
        "conditions": step["conditions"],
        "count": len(step["decisions"]) if step["conditions"] else 0,
    }


def seconds_of(text: str) -> float:
    return dt.datetime.fromisoformat(text).timestamp()


async def pass_time(clock: VirtualClock, until: float) -> None:
    """Time passes, months in a jump; controllers notice that within half a minute."""
    seconds = max(until - clock.now(), 0)
    if seconds > 600:
        clock.jump(seconds - 60)
        seconds = 60
    await clock.advance(seconds, turns=20)
    await clock.settle(200)


@pytest.mark.req("OCM-19", "OCM-20", "SVS-80")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
async def test_the_controller_writes_what_was_recorded(case: dict[str, Any]) -> None:
    clock = VirtualClock(seconds_of(case["now"]))
    async with local_server(clock, with_roles=False) as server:
        await fill(server.client(), case)
        manager = Manager(server.client(), clock, wanted=["placement-controller"])
        task = asyncio.get_running_loop().create_task(manager.run())
        try:
            await clock.settle(400)
            for step in case["steps"]:
                await pass_time(clock, seconds_of(step["now"]))
                assert await read_back(server.client(), case) == expected(step)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@pytest.mark.parametrize("case", TIMELESS, ids=lambda case: case["id"])
async def test_the_same_over_http(case: dict[str, Any], tmp_path: Path) -> None:
    wanted = expected(case["steps"][0])
    instance = Instance(ServerSettings(directory=tmp_path / "state", port=0))
    try:
        await instance.start()
        async with HttpClient(load_kubeconfig([instance.kubeconfig])) as client:
            await fill(client, case)
            task = asyncio.ensure_future(Manager(client, RealClock(), wanted=["placement-controller"]).run())

            async def is_there() -> bool:
                return await read_back(client, case) == wanted

            try:
                await eventually_async(is_there, f"the decisions are not {wanted}")
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
    finally:
        await instance.stop(0.1)

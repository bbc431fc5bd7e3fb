"""What a viewer looks at, as documents: claims and pods, rules, the timeline, a hub, a device.

Each is made in a thread of what the viewer's informers hold, which is immutable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from dray.api import kinds
from dray.api.generated.core import Namespace, Node, Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.references import full_name
from dray.api.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from dray.api.status import ApiError
from dray.api.times import Time
from dray.eviction.confirmations import has_pods_leave
from dray.eviction.stop import PLACE, tell_stop
from dray.live.hubs import load_fleet
from dray.live.viewer import Viewer
from dray.scheduling.device_states import DeviceState
from dray.views import hub, service, timeline, waiting
from dray.views.device import Surroundings, device_page
from dray.views.shares import namespace_of, share_out
from dray.what_if.driver_evictions import unconfirmed_pools

MOST_ROWS: Final = 5000
MOST_BYTES: Final = 8 << 20
"""Of the rows of one table."""
TIMELINE: Final = timedelta(hours=1)

Row = TypeVar("Row", waiting.PodRow, waiting.ClaimRow)
Parameters: TypeAlias = Mapping[str, str]


class NoSuchThing(Exception):
    """What was asked for is not there, or not to be seen. The message says so."""


async def claims_and_pods(viewer: Viewer, _parameters: Parameters) -> dict[str, Any]:
    """Who waits, first; then who has what."""
    pods: list[Pod] = list(viewer.of(kinds.PODS))
    claims: list[ResourceClaim] = list(viewer.of(kinds.CLAIMS))

    def make() -> dict[str, Any]:
        pod_rows, claim_rows = waiting.pod_rows(pods), waiting.claim_rows(claims)
        shown_pods, shown_claims = first_rows(pod_rows), first_rows(claim_rows)
        return {
            "pods": shown_pods,
            "claims": shown_claims,
            "morePods": len(pod_rows) - len(shown_pods),
            "moreClaims": len(claim_rows) - len(shown_claims),
            "missing": viewer.missing,
        }

    return await asyncio.to_thread(make)


def first_rows(rows: list[Row]) -> list[Row]:
    """As many as one looks at: names may be long, and many."""
    shown = share_out(rows, MOST_ROWS, _namespace)
    return share_out(shown, MOST_BYTES, _namespace, lambda row: len(msgspec.json.encode(row)) + 1)


def _namespace(row: waiting.PodRow | waiting.ClaimRow) -> str:
    return namespace_of(row.name)


async def rules(viewer: Viewer, _parameters: Parameters) -> dict[str, Any]:
    """What is out of service."""
    return {
        "rules": await rule_rows(viewer),
        "nodes": await node_rows(viewer),
        "pools": await _pool_rows(viewer),
        "stopped": await _tell_stop(viewer),
        "missing": viewer.missing,
    }


async def _tell_stop(viewer: Viewer) -> str:
    """Whether somebody stopped all evictions, in words; who may not look is told nothing."""
    try:
        place = await viewer.client.get(kinds.NAMESPACES, "", PLACE)
    except (ApiError, OSError, TimeoutError):
        return ""
    return tell_stop(place if isinstance(place, Namespace) else None)


async def rule_rows(viewer: Viewer) -> list[service.RuleRow]:
    """The rules, each with its devices in numbers: there may be tens of thousands, so they are counted in a thread."""
    found: list[DeviceTaintRule] = list(viewer.of(kinds.RULES))
    selected = {rule.metadata.name: viewer.cluster.tracker.selected(rule.metadata.name) for rule in found}
    inventory = viewer.cluster.inventory
    return await asyncio.to_thread(service.rule_rows, found, lambda name: service.Reach.of(selected[name], inventory))


async def node_rows(viewer: Viewer) -> list[service.NodeRow]:
    """The nodes that pods have to leave."""
    nodes: list[Node] = list(viewer.of(kinds.NODES))
    pods: list[Pod] = list(viewer.of(kinds.PODS))
    budgets: list[PodDisruptionBudget] = list(viewer.of(kinds.BUDGETS))
    return await asyncio.to_thread(service.node_rows, nodes, pods, budgets)


async def _pool_rows(viewer: Viewer) -> list[service.PoolRow]:
    """The pools whose drivers have pods leave, unconfirmed. Nothing says so but a look at everything, which is only
    taken where a driver publishes such a taint at all."""
    slices: list[ResourceSlice] = list(viewer.of(kinds.SLICES))
    if not await asyncio.to_thread(lambda: any(map(has_pods_leave, slices))):
        return []
    try:
        snapshot, now = await viewer.snapshot(), viewer.now()
    except (ApiError, OSError, TimeoutError):
        return []  # whoever may not see so much is told by `missing`
    return await asyncio.to_thread(lambda: service.pool_rows(unconfirmed_pools(snapshot, now)))


async def history(viewer: Viewer, _parameters: Parameters) -> dict[str, Any]:
    """The last hour, and the curve since somebody looks on."""
    entries = await _entries(viewer)
    return {"entries": entries, "samples": list(viewer.log.samples), "missing": viewer.missing}


async def _entries(viewer: Viewer) -> list[timeline.TimelineEntry]:
    now = viewer.now()
    since = str(Time.of(now - TIMELINE))
    seen = timeline.Evidence(
        claims=list(viewer.of(kinds.CLAIMS)),
        rules=list(viewer.of(kinds.RULES)),
        nodes=list(viewer.of(kinds.NODES)),
        events=await viewer.events(),
    )
    log = timeline.Log()
    log.entries.extend(viewer.log.entries)
    return await asyncio.to_thread(timeline.timeline, log, seen, since, str(Time.of(now)))


async def device(viewer: Viewer, parameters: Parameters) -> dict[str, Any]:
    """One device with everything around it. Raises NoSuchThing."""
    state, around = find_device(viewer, parameters.get("id", ""), parameters.get("node", ""))
    page = await asyncio.to_thread(device_page, state, around)
    names = [one.rule for one in page.taints if one.rule]
    entries = timeline.about_device(
        await _entries(viewer), page.id, names, [one.claim for one in page.holders], page.node or ""
    )
    return {"device": page, "history": entries[:100], "missing": viewer.missing}


def find_device(viewer: Viewer, name: str, node: str) -> tuple[DeviceState, Surroundings]:
    """A device by `driver/pool/device`, on a node if several have one of that name, and what its page is made of.

    Raises NoSuchThing.
    """
    driver, _, rest = name.partition("/")
    pool, _, short = rest.rpartition("/")
    rows = viewer.rows
    for key in (f"{driver}/{pool}/{node}", f"{driver}/{pool}/") if node else rows.keys_of(driver, pool):
        states = rows.devices(key)
        state = next((one for one in states if one.device.id.device == short), None)
        if state is None:
            continue
        claims = {full_name(one): one for held in state.holders if (one := _claim(viewer, held)) is not None}
        users = [(claim, ref) for claim in claims.values() for ref in claim.status.reserved_for]
        pods = [viewer.find(kinds.PODS, claim.metadata.namespace, ref.name) for claim, ref in users]
        around = Surroundings(
            slices=_by_name(viewer.find(kinds.SLICES, "", state.device.slice_name)),
            patches={one.metadata.name: one for one in viewer.of(kinds.PATCHES)},
            rules={one.metadata.name: one for one in viewer.of(kinds.RULES)},
            claims=claims,
            pods={pod.metadata.uid: pod for pod in pods if pod is not None},
            counter_sets=rows.views[key].counter_sets,
            neighbours=states,
        )
        return state, around
    raise NoSuchThing(f"there is no device {name}{f' on node {node}' if node else ''}, or you may not see it")


def _claim(viewer: Viewer, name: str) -> ResourceClaim | None:
    namespace, _, short = name.partition("/")
    return viewer.find(kinds.CLAIMS, namespace, short)


def _by_name(obj: Any | None) -> dict[str, Any]:
    return {obj.metadata.name: obj} if obj is not None else {}


async def fleet_of_clusters(viewer: Viewer, _parameters: Parameters) -> dict[str, Any]:
    """The hub, if this is one."""
    try:
        objects = await load_fleet(viewer.client)
    except ApiError as error:
        return {"hub": hub.Hub(), "problem": str(error) if error.code != 404 else "this server is no hub"}
    return {"hub": await asyncio.to_thread(hub.hub, objects, viewer.now()), "problem": ""}

"""What a cluster has, what the caller may do there, and what of dray therefore works: questions and a pure judgement.

examine (asks) ──▶ Facts ──▶ judge ──▶ findings, one for each thing that people use dray for
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from dray.api.generated.authentication import SelfSubjectReview
from dray.api.generated.authorization import ResourceAttributes
from dray.api.generated.coordination import Lease
from dray.api.kinds import CLAIMS, CLASSES, LEASES, NAMESPACES, NODES, PATCHES, PODS, RULES, SLICES
from dray.api.registry import DRAY_GROUP, RESOURCE_GROUP, Kind, faces
from dray.api.status import ApiError
from dray.api.well_known import CONTROLLERS_LEASE, OWN_SERVER
from dray.client.calls import find, may
from dray.reconcile.leader import holder

if TYPE_CHECKING:
    from dray.client.http import HttpClient

Verdict = Literal["yes", "partly", "no"]

GATES: Final = re.compile(r'^kubernetes_feature_enabled\{name="(D[A-Za-z]+)",stage="[A-Z]*"\} ([01])', re.M)
OF_DEVICES: Final = re.compile(r"DRA|DynamicResourceAllocation")
LOOKED_AT: Final = (NODES, PODS, CLAIMS, SLICES, CLASSES)
LEASE_NAMES: Final = ("kube-scheduler", "kube-controller-manager", "dray-scheduler", CONTROLLERS_LEASE)
LEASE_PLACES: Final = ("kube-system", "dray-system")
MARK_OF_INSTALL: Final = "app.kubernetes.io/part-of=dray"
"""What `dray install` labels its namespace with, whatever that is called."""
SKEW_SECONDS: Final = 60
"""So far the clock of whoever asks may go before those of the cluster."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out. Rights are `verb resource`, as in `list nodes`; gates are None if they are not visible."""

    server: str
    version: str
    user: str
    served: dict[str, tuple[str, ...]]
    """By group and version, the kinds of devices."""
    gates: dict[str, bool] | None
    rights: dict[str, bool]
    leases: dict[str, str]
    """Who holds which lease, of those that could be read and are renewed."""

    @property
    def is_dray(self) -> bool:
        """Whether the server is dray's own."""
        return OWN_SERVER in self.version

    def place_of(self, kind: Kind) -> str:
        """The version in which dray uses a kind here; empty if it is not there."""
        found = (face.api_version_of(version) for face in faces(kind) for version in face.versions)
        return next((place for place in found if kind.plural in self.served.get(place, ())), "")

    def may_not(self, verb: str, *kinds: Kind) -> list[str]:
        """Which of the kinds the caller may not treat so."""
        return [kind.resource for kind in kinds if not self.rights.get(f"{verb} {kind.resource}")]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Whether something that people use dray for works there, and why not."""

    what: str
    works: Verdict
    notes: tuple[str, ...] = ()


async def examine(client: HttpClient, server: str, now: float) -> Facts:
    """Asks a cluster, at a time. Raises ApiError or OSError if it does not let us in."""
    version = await client.server_version()
    served = await _served(client)
    wanted = [("list", kind) for kind in (*LOOKED_AT, RULES, PATCHES)]
    wanted += [("create", RULES), ("create", PATCHES), ("patch", NODES)]
    allowed = await asyncio.gather(*(_may(client, verb, kind, served) for verb, kind in wanted))
    return Facts(
        server=server,
        version=version,
        user=await _user(client),
        served=served,
        gates=await _gates(client),
        rights={f"{verb} {kind.resource}": yes for (verb, kind), yes in zip(wanted, allowed, strict=True)},
        leases=await find_leases(client, now),
    )


async def _served(client: HttpClient) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for group in (RESOURCE_GROUP, DRAY_GROUP):
        for version in await client.versions_of(group):
            names = await client.resources_of(f"{group}/{version}")
            found[f"{group}/{version}"] = tuple(sorted(name for name in names if "/" not in name))
    return found


async def _may(client: HttpClient, verb: str, kind: Kind, served: dict[str, tuple[str, ...]]) -> bool:
    *others, last = faces(kind)
    face = next((one for one in others if _is_served(one, served)), last)
    return await may(client, ResourceAttributes(verb=verb, group=face.group, resource=kind.plural))


def _is_served(face: Kind, served: dict[str, tuple[str, ...]]) -> bool:
    return any(face.plural in names for place, names in served.items() if place.startswith(f"{face.group}/"))


async def _user(client: HttpClient) -> str:
    review = SelfSubjectReview(api_version="authentication.k8s.io/v1", kind="SelfSubjectReview")
    try:
        return (await client.create(review)).status.user_info.username or ""
    except ApiError:
        return ""


async def _gates(client: HttpClient) -> dict[str, bool] | None:
    """Those about devices, which an API server tells with its metrics to those who may read them."""
    try:
        text = (await client.read("/metrics")).decode(errors="replace")
    except ApiError:
        return None
    found = {name: state == "1" for name, state in GATES.findall(text) if OF_DEVICES.match(name)}
    return found or None


async def find_leases(client: HttpClient, now: float, names: Sequence[str] = LEASE_NAMES) -> dict[str, str]:
    """Who holds which lease, `NAMESPACE/NAME`, of those that may be read and are renewed. Raises OSError."""
    found: dict[str, str] = {}
    for namespace in await _lease_places(client):
        for name in names:
            try:
                lease = await find(client, LEASES, namespace, name, Lease)
            except ApiError:
                continue
            if held_by := holder(lease, now - SKEW_SECONDS):
                found[f"{namespace}/{name}"] = held_by
    return found


async def _lease_places(client: HttpClient) -> list[str]:
    """Where leases usually are, and wherever dray is installed. Not just anywhere: tenants may write leases, too."""
    try:
        labelled = (await client.list(NAMESPACES, labels=MARK_OF_INSTALL)).items
    except ApiError:
        labelled = ()
    return list(dict.fromkeys((*LEASE_PLACES, *(one.metadata.name for one in labelled))))


def judge(facts: Facts) -> Iterator[Finding]:
    """What works, in the order in which people need it."""
    yield _look(facts)
    yield _taint_devices(facts)
    yield _taint_nodes(facts)
    yield _patches(facts)
    yield _evictions(facts)


def _look(facts: Facts) -> Finding:
    what = "look: get, devices, explain, what-if, scale-up, lint, top, dashboard, report, record"
    if not facts.place_of(SLICES):
        served = ", ".join(place for place, names in facts.served.items() if names) or "nothing"
        note = f"no ResourceSlices in a version that dray knows; there is {served} (Kubernetes 1.34 has v1)"
        return Finding(what=what, works="no", notes=(note,))
    denied = facts.may_not("list", *LOOKED_AT)
    if denied:
        works: Verdict = "partly" if CLAIMS.resource not in denied else "no"
        return Finding(what=what, works=works, notes=(f"you may not list {', '.join(denied)}", _READER))
    optional = [kind.resource for kind in (RULES, PATCHES) if facts.place_of(kind) and facts.may_not("list", kind)]
    if optional:
        note = f"left out, because you may not list them: {', '.join(optional)}"
        return Finding(what=what, works="partly", notes=(note, _READER))
    return Finding(what=what, works="yes")


def _taint_devices(facts: Facts) -> Finding:
    what = "taint, untaint and drain devices"
    place = facts.place_of(RULES)
    if not place:
        hint = "the gate DRADeviceTaintRules with its version, or dray install --set crds.deviceTaintRules=true"
        return Finding(what=what, works="no", notes=(f"DeviceTaintRule is not served: {hint}",))
    if facts.may_not("create", RULES):
        return Finding(what=what, works="no", notes=("you may not create DeviceTaintRules",))
    if facts.is_dray:
        return Finding(what=what, works="yes")
    notes = []
    if place.startswith(DRAY_GROUP):
        notes.append(
            f"rules are custom resources ({place}): kube-scheduler and kube-controller-manager do not see them"
        )
    else:
        notes.append("class and CEL selectors become names of the devices that match when you ask")
    if not _runs(facts, CONTROLLERS_LEASE):
        notes.append("rates, expiry and the guard need dray's eviction controllers (dray install)")
    return Finding(what=what, works="partly", notes=tuple(notes))


def _taint_nodes(facts: Facts) -> Finding:
    what = "taint, untaint and drain nodes"
    if facts.may_not("patch", NODES):
        return Finding(what=what, works="no", notes=("you may not patch nodes",))
    if facts.is_dray or _runs(facts, CONTROLLERS_LEASE):
        return Finding(what=what, works="yes")
    return Finding(what=what, works="partly", notes=("rates, expiry and the guard need dray's eviction controllers",))


def _patches(facts: Facts) -> Finding:
    what = "patch attributes of devices (ResourceSlicePatch)"
    place = facts.place_of(PATCHES)
    if not place:
        return Finding(what=what, works="no", notes=("not there yet: dray install | kubectl apply -f -",))
    if facts.may_not("create", PATCHES):
        return Finding(what=what, works="no", notes=("you may not create ResourceSlicePatches",))
    if facts.is_dray:
        return Finding(what=what, works="yes")
    note = "dray's scheduler and commands go by them; kube-scheduler does not, so pods must name dray's scheduler"
    return Finding(what=what, works="yes" if _runs(facts, "dray-scheduler") else "partly", notes=(note,))


def _evictions(facts: Facts) -> Finding:
    what = "evictions by dray's rules (rates, budgets, guard)"
    if facts.is_dray:
        return Finding(what=what, works="yes")
    if not _runs(facts, CONTROLLERS_LEASE):
        note = "dray's controllers do not run here, or you may not read their lease"
        return Finding(what=what, works="no", notes=(note,))
    if _runs(facts, "kube-controller-manager"):
        note = (
            "kube-controller-manager works here, too: where it runs device-taint-eviction-controller and "
            "taint-eviction-controller as well, it evicts everybody at once"
        )
        return Finding(what=what, works="partly", notes=(note,))
    return Finding(what=what, works="yes")


_READER: Final = "the ClusterRole dray-reader (dray install) may"


def _runs(facts: Facts, lease: str) -> bool:
    return any(name.endswith(f"/{lease}") for name in facts.leases)

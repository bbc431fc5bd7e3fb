"""What the eviction guard says to what leaves, before it does. Pure.

The guard counts over all taints and over an hour (`eviction.guard`); who else leaves is not known here, so this is what
it says if nobody else does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from dray.allocator.reasons import Report
from dray.api.generated.core import Namespace, Pod
from dray.api.kinds import NAMESPACES, NODES
from dray.api.references import ObjectName
from dray.api.resource import DeviceTaintRule, ResourceClaim
from dray.eviction.allocations import Allocations
from dray.eviction.guard import WINDOW, Base
from dray.eviction.pods import can_be_evicted
from dray.eviction.stop import PLACE, tell_stop
from dray.eviction.told_limit import told_limit
from dray.eviction.told_past import departed, read_told
from dray.prose.wording import count
from dray.snapshot.snapshot import Snapshot
from dray.what_if.evictions import Eviction

NAMED: Final = 4
"""So many causes are named in the command that confirms them; it lists more by itself."""


class GuardPreview(Report, frozen=True, kw_only=True):
    """So many of so many pods leave, and so many may without a confirmation."""

    pods: int
    of: int
    limit: str
    allowed: int
    is_over: bool
    """Whether more leave than may without a confirmation, with those who left in the hour before."""
    asks: bool = False
    """Whether the command asks for it, before anybody leaves; otherwise controllers hold the pods until it is given."""
    is_sweeping: bool = False
    """Whether a rule with an empty selector is among the causes: controllers hold that however few leave."""
    confirm: str = "dray confirm"
    """The command that confirms it, or at least lists what is held."""
    left: int = 0
    """How many left in the hour before, as controllers have told: their guard counts these, too."""


def preview_guard(
    snapshot: Snapshot,
    leaving: int,
    causes: Sequence[str] = (),
    *,
    nodes: bool,
    is_sweeping: bool = False,
    now: datetime,
) -> GuardPreview | None:
    """What the guard of a cluster says to so many pods that leave nodes, or devices, for causes that `dray confirm`
    knows by these names; None if it has told no limit."""
    place = snapshot.get(NAMESPACES.resource, "", PLACE)
    limit = told_limit(place) if isinstance(place, Namespace) else None
    if limit is None or not isinstance(place, Namespace):
        return None
    base = _all_pods(snapshot) if nodes else _users_of_devices(snapshot)
    allowed = limit.at_once(base.pods, base.nodes_worth)
    left = _left(place, now.timestamp(), nodes=nodes)
    in_all = limit.pods(base.pods + left, base.nodes_worth)  # whether somebody came in their place is not told
    return GuardPreview(
        pods=leaving,
        of=base.pods,
        limit=str(limit),
        allowed=allowed,
        is_over=leaving > allowed or (leaving > 0 and leaving + left > in_all),
        is_sweeping=is_sweeping and leaving > 0,
        confirm=" ".join(("dray confirm", *(causes if len(causes) <= NAMED else ()))),
        left=left,
    )


def _left(place: Namespace, now: float, *, nodes: bool) -> int:
    gone = departed(read_told(place).values(), now, 0.0)
    return sum(one.pods if nodes else one.with_devices for one in gone if one.by > now - WINDOW)


def asking(guard: GuardPreview) -> GuardPreview:
    """The same where a command asks before it makes pods leave itself, which nobody counts."""
    return replace(guard, asks=True, is_sweeping=False, left=0, is_over=guard.pods > guard.allowed)


def tell_guard(guard: GuardPreview) -> str:
    """`Guard: 8 of 140 pods (5.7%), limit 50,10%,node,spare: 14 pods.`, and what comes of it if it is more."""
    share = f" ({100.0 * guard.pods / guard.of:.1f}%)" if guard.of else ""
    told = f"Guard: {guard.pods} of {guard.of} pods{share}, limit {guard.limit}: {count(guard.allowed, 'pod')}."
    if guard.left:
        told += f" {guard.left} left in the last hour, and count, too."
    if guard.asks and guard.is_over:
        return f"{told} It asks first; --yes for scripts."
    if guard.asks and guard.is_sweeping:
        return (
            f"{told} An empty selector is held however few leave, unless the number of devices, or --yes, confirms it."
        )
    if guard.asks:
        return told
    if guard.is_over:
        return f"{told} They stay until `{guard.confirm}`."
    if guard.is_sweeping:
        return f"{told} An empty selector is held however few leave: they stay until `{guard.confirm}`."
    return told


def tell_stopped(snapshot: Snapshot) -> Iterator[str]:
    """That nobody leaves, if that is so."""
    place = snapshot.get(NAMESPACES.resource, "", PLACE)
    if isinstance(place, Namespace) and (told := tell_stop(place)):
        yield told


def tell_held(
    snapshot: Snapshot, leaving: Collection[Eviction], rules: Iterable[DeviceTaintRule], now: datetime
) -> Iterator[str]:
    """What keeps pods that have to leave where they are: all is stopped, or they are too many. Who is on a node that
    is gone is not asked about."""
    if leaving:
        yield from tell_stopped(snapshot)
    for_devices = sum(bool(one.devices) for one in leaving)
    for_nodes = sum(not one.devices and _is_there(snapshot, one.node) for one in leaving)
    sweeps = any(map(is_sweeping, rules))
    for number, nodes in ((for_devices, False), (for_nodes, True)):
        guard = preview_guard(snapshot, number, nodes=nodes, is_sweeping=sweeps and not nodes, now=now)
        if guard is not None and (guard.is_over or guard.is_sweeping):
            yield tell_guard(guard).removesuffix(".")


def is_sweeping(rule: DeviceTaintRule) -> bool:
    """Whether a rule selects all devices, said or unsaid."""
    selector = rule.spec.device_selector
    return selector is not None and selector.is_empty


def _is_there(snapshot: Snapshot, node: str) -> bool:
    return snapshot.get(NODES.resource, "", node) is not None


def _all_pods(snapshot: Snapshot) -> Base:
    """What a limit is a share of for node taints: pods that can be evicted, by node."""
    nodes = Counter(pod.spec.node_name for pod in snapshot.objects(Pod) if can_be_evicted(pod))
    return Base(nodes.total(), max(nodes.values(), default=0), is_of_nodes=True)


def _users_of_devices(snapshot: Snapshot) -> Base:
    """The same for device taints, counted as the controller counts."""
    allocations = Allocations()
    for claim in snapshot.objects(ResourceClaim):
        if claim.status.allocation is not None:
            allocations.put_claim(ObjectName.of(claim), None, claim)
    for pod in snapshot.objects(Pod):
        allocations.put_pod(pod)
    return allocations.base

"""Who may be evicted because of device taints, who must be, and how fast: judged by brute force from what is stored.

Controllers see the world late, and what they ask for arrives later still. So an eviction is right if there was a reason
for it not long ago; when everything is calm, whoever has a reason to leave must be gone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from dray.api.generated.core import Pod
from dray.api.resource import DeviceTaint, DeviceTaintRule, DeviceToleration, ResourceClaim, ResourceSlice
from dray.api.resource.claim import DeviceRequestAllocationResult
from dray.process.virtual_loop import LoopClock
from fault_simulation.ledger import CLAIMS, PODS, RULES, SLICES, Change, Ledger, is_finished
from fault_simulation.network import LATEST, LONGEST_STALL, SLOWEST, Request
from fault_simulation.pace import Pace

ACCOUNT: Final = "device-taint-eviction-controller"
LAG: Final = 4 * LONGEST_STALL + LATEST + SLOWEST + 10.0
"""How old the view of a controller may be when it decides, and how late its request may arrive."""


class Cause(NamedTuple):
    """A taint that a pod must leave for: which, from which time of the wall clock on, and how fast."""

    taint: str
    due: float
    rate: int


class DeviceEvictions:
    """Follows ledger and network."""

    def __init__(self, ledger: Ledger, clock: LoopClock, starts: list[float]) -> None:
        """`starts` is when the controller was started; limits start anew with it."""
        self._ledger = ledger
        self._clock = clock
        self._pace = Pace(ACCOUNT, ledger, clock, starts)
        self._causes: dict[str, frozenset[Cause]] = {}
        self._past: dict[str, list[tuple[frozenset[Cause], float]]] = defaultdict(list)
        self._rates: dict[str, set[int]] = defaultdict(set)
        self._affected: dict[str, set[str]] = defaultdict(set)
        self._finished: dict[str, float] = {}
        self._since: dict[tuple[str, Cause], float] = {}
        self._replaced: list[tuple[float, ResourceSlice | DeviceTaintRule]] = []
        """Earlier versions of what says which devices are tainted, and until when they were stored."""
        ledger.on_change.append(self._follow)

    # Reasons

    def _follow(self, change: Change) -> None:
        if change.resource not in (PODS, CLAIMS, SLICES, RULES):
            return
        causes = find_causes(self._ledger)
        now = self._clock.monotonic()
        if isinstance(change.new, Pod) and is_finished(change.new):
            self._finished.setdefault(change.new.metadata.uid, now)
        if isinstance(change.old, ResourceSlice | DeviceTaintRule):
            self._replaced.append((now, change.old))
        if isinstance(change.new, ResourceSlice):
            self._note_renewals(change.old, change.new)
        for uid, before in self._causes.items():
            if causes.get(uid) != before:
                self._past[uid].append((before, now))
        self._causes = causes
        for uid, found in causes.items():
            for cause in found:
                self._rates[cause.taint].add(cause.rate)
                self._affected[cause.taint].add(uid)
                self._since.setdefault((uid, cause), self._clock.now())

    def _note_renewals(self, old: ResourceSlice | None, new: ResourceSlice) -> None:
        """A driver's taint that differs in anything is another one (5055-80)."""
        before = {} if old is None else {device.name: device.taints for device in old.spec.devices}
        for device in new.spec.devices:
            if device.taints != before.get(device.name, ()):
                self._pace.renew("/".join((new.spec.driver, new.spec.pool.name, device.name)))

    def _recent(self, uid: str) -> set[Cause]:
        """The reasons that a pod has, or had not long ago, or seems to have to somebody whose news of taints is old."""
        start = self._clock.monotonic() - LAG
        past = (each for causes, end in self._past[uid] if end >= start for each in causes)
        old = [each for end, each in self._replaced if end >= start]
        claims = [claim for claim in self._ledger.claims if any(uid == user.uid for user in claim.status.reserved_for)]
        seeming = (cause for claim in claims for cause in _claim_causes(claim, [*self._ledger.marks, *old]))
        return {*self._causes.get(uid, ()), *past, *seeming}

    # Evictions

    def on_sent(self, request: Request) -> None:
        """The controller begins to evict a pod."""
        uid = self._pace.begun(request)
        taints = {cause.taint for cause in self._recent(uid)} if uid is not None else set()
        if len(taints) == 1:  # of several the fastest counts, and it is hard to say which that was
            taint = taints.pop()
            if self._rates[taint]:  # else it is known from old news alone, and its rate is not
                self._pace.check(taint, max(self._rates[taint]))

    def on_arrival(self, request: Request) -> None:
        """A request of the controller reaches the server: the pod that it would delete must have a reason to leave."""
        if request.account != ACCOUNT or request.verb != "delete":
            return
        pod: Pod | None = self._ledger.find(PODS, request.namespace, request.name)
        guard = request.content.preconditions if request.content is not None else None
        if pod is None or (guard is not None and guard.uid and guard.uid != pod.metadata.uid):
            return  # nothing is going to happen
        if pod.metadata.deletion_timestamp is None and not self._may_be_evicted(pod.metadata.uid):
            self._ledger.blame(f"pod {pod.metadata.name} is evicted without a reason: {self._recent(pod.metadata.uid)}")

    def _may_be_evicted(self, uid: str) -> bool:
        """Whether a pod has a reason to leave, or seems to have one to somebody who does not know that it has ended."""
        finished = self._finished.get(uid)
        if finished is not None and finished >= self._clock.monotonic() - LAG:
            return True
        latest = self._clock.latest(LAG)
        return any(cause.due <= latest for cause in self._recent(uid))

    def find_overdue(self, grace: float) -> Iterator[str]:
        """The pods that should have been evicted `grace` seconds ago, besides the time that the rate takes."""
        names = {pod.metadata.uid: pod.metadata.name for pod in self._ledger.pods}
        for uid, found in self._causes.items():
            late = max(
                self._clock.now() - grace - self._queueing(cause.taint) - max(cause.due, self._since[uid, cause])
                for cause in found
            )
            if late > 0:
                yield f"pod {names[uid]} should have been evicted {late + grace:.0f}s ago"

    def _queueing(self, taint: str) -> float:
        """How many seconds the last of all that a taint ever concerned may have to wait."""
        return len(self._affected[taint]) / min(self._rates[taint])

    def pending(self, rule: DeviceTaintRule) -> int:
        """How many pods a rule is going to evict, now or later."""
        return sum(any(cause.taint == rule.metadata.uid for cause in found) for found in self._causes.values())


def find_causes(ledger: Ledger) -> dict[str, frozenset[Cause]]:
    """By the uid of a pod, the taints of its devices that it does not tolerate for ever."""
    pods = {pod.metadata.uid: pod for pod in ledger.pods}
    found: dict[str, set[Cause]] = defaultdict(set)
    for claim in ledger.claims:
        causes = set(_claim_causes(claim, ledger.marks)) if claim.status.reserved_for else set()
        for consumer in claim.status.reserved_for if causes else ():
            pod = pods.get(consumer.uid)
            is_there = pod is not None and pod.metadata.deletion_timestamp is None and not is_finished(pod)
            if pod is not None and is_there and pod.spec.node_name:
                found[consumer.uid] |= causes
    return {uid: frozenset(causes) for uid, causes in found.items()}


def _claim_causes(claim: ResourceClaim, marks: Iterable[ResourceSlice | DeviceTaintRule]) -> Iterator[Cause]:
    """The causes for which pods must leave a claim, by what these slices and rules say."""
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        for source, taint in _taints(result, marks):
            seconds = _patience(result.tolerations, taint)
            if taint.effect == "NoExecute" and seconds is not None:
                assert taint.time_added is not None
                due = taint.time_added.datetime().timestamp() + seconds
                yield Cause(source, due, taint.evictions_per_second or 10)


def _taints(
    result: DeviceRequestAllocationResult, marks: Iterable[ResourceSlice | DeviceTaintRule]
) -> Iterator[tuple[str, DeviceTaint]]:
    place = (result.driver, result.pool, result.device)
    for mark in marks:
        if isinstance(mark, DeviceTaintRule):
            selector = mark.spec.device_selector
            wanted = (selector.driver, selector.pool, selector.device) if selector is not None else ("", "", "")
            if all(one in (None, other) for one, other in zip(wanted, place, strict=True)):
                yield mark.metadata.uid, mark.spec.taint
        elif (mark.spec.driver, mark.spec.pool.name) == place[:2]:
            for device in mark.spec.devices:
                if device.name == result.device:
                    yield from (("/".join(place), taint) for taint in device.taints)


def _patience(tolerations: tuple[DeviceToleration, ...], taint: DeviceTaint) -> float | None:
    """How long a taint is tolerated; None is for ever. All tolerations here are for any value of the one key."""
    seconds = [each.toleration_seconds for each in tolerations if each.effect == taint.effect]
    if not seconds:
        return 0.0
    return None if None in seconds else float(min(each for each in seconds if each is not None))

"""What would make a claim fit on a node: a constraint dropped, devices released, a taint rule lifted, a pool complete.

What may help is read off the report; whether it does is tried by whoever can (`Trials`). Only what helps is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import nsmallest
from itertools import combinations, islice
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from dray.allocator import reasons
from dray.allocator.reasons import DeviceReport, Explanation, NodeReport, Report, RequestReport
from dray.prose.remedy import (
    AnyRemedy,
    CompletePool,
    DropConstraint,
    GiveBack,
    HeldDevice,
    LiftRules,
    ReleaseDevices,
    tell_giving_back,
)

_T = TypeVar("_T")
_Values: TypeAlias = tuple[tuple[str, ...], ...]

_MAX_TRIED = 8
"""How many alternatives are tried for one piece of advice."""
_MAX_NODES = 3
"""On how many nodes it is tried whether something helps."""
_MAX_TOGETHER = 16
"""So many claims are asked to give back what they hold, or rules lifted, at the most: more is no advice."""
_MAX_ASKED = 32
"""So many claims are tried together, to see whether fewer of them are enough."""


class _Help(NamedTuple):
    """`needed` of these devices would do."""

    needed: int
    devices: tuple[DeviceReport, ...]


def find_closest(request: RequestReport) -> NodeReport | None:
    """The node that comes nearest to fitting; None if there is none, or if no node can be judged."""
    return next(iter(_nearest(request, 1)), None)


def _nearest(request: RequestReport, most: int) -> list[NodeReport]:
    judged = [node for node in request.nodes if not node.error and not node.fits]
    return nsmallest(most, judged, key=partial(_distance, request))


class Trials(Protocol):
    """Tries on a copy of the cluster whether a claim (`namespace/name`) then fits on a node."""

    def released(self, claim: str, node: str, holders: Sequence[str]) -> bool:
        """If some claims give back what they hold."""
        ...

    def without_holders(self, claim: str, node: str, devices: Sequence[DeviceReport]) -> bool:
        """If these devices, and no others that their holders have, are given back."""
        ...

    def without_rules(self, claim: str, node: str, rules: Sequence[str]) -> bool:
        """If some taint rules are gone."""
        ...

    def without_constraint(self, claim: str, node: str, attribute: str) -> bool:
        """If devices need not agree, or differ, in an attribute."""
        ...

    def with_whole_pool(self, claim: str, node: str, driver: str, pool: str) -> bool:
        """If an incomplete pool were complete as it is."""
        ...


class Advice(NamedTuple):
    """What would make a claim fit on a node: each by itself, and each was tried."""

    node: NodeReport
    remedies: tuple[AnyRemedy, ...]


def find_advice(claim: str, request: RequestReport, trials: Trials) -> Advice | None:
    """For the nearest node on which something simple would do; None if it does on none of those that were tried."""
    for node in _nearest(request, _MAX_NODES):
        told = tuple(_remedies(claim, request, node, trials))
        if told:
            return Advice(node, told)
    return None


def _remedies(claim: str, request: RequestReport, node: NodeReport, trials: Trials) -> list[AnyRemedy]:
    return [
        *_constraints(claim, node, trials),
        *_releases(claim, request, node, trials),
        *_lifted_rules(claim, node, trials),
        *(
            CompletePool(driver=problem.driver, pool=problem.pool)
            for problem in node.problems
            if problem.incomplete and trials.with_whole_pool(claim, node.node, problem.driver, problem.pool)
        ),
    ]


def find_joint_release(report: Explanation, trials: Trials) -> tuple[str, list[str]] | None:
    """A node, and the claims that must give back what they hold so that all the claims of a report fit there together.

    What would help one of them is no advice: the pod that wants them needs them all. None if nothing helps that was
    tried.
    """
    nodes: dict[str, list[NodeReport]] = {}
    for claim in report.claims:
        for request in claim.requests:
            for node in request.nodes:
                nodes.setdefault(node.node, []).append(node)
    for name in nsmallest(_MAX_NODES, nodes, key=lambda name: (sum(one.missing for one in nodes[name]), name)):
        devices = [device for one in nodes[name] for device in one.devices]
        enough = _enough(devices, partial(trials.released, report.claims[0].claim, name))
        if enough:
            return name, enough
    return None


def tell_joint_release(report: Explanation, trials: Trials) -> str:
    """The same as a sentence."""
    found = find_joint_release(report, trials)
    if found is None:
        return f"Nothing that was tried makes its {len(report.claims)} claims fit together on one node."
    node, holders = found
    return f"Its {len(report.claims)} claims would fit together on {node} {tell_giving_back(holders)}."


class RequestAdvice(Report, frozen=True, kw_only=True):
    """What would make a request of a claim fit on a node, for programs: each remedy by itself."""

    claim: str
    request: str
    node: str
    remedies: tuple[AnyRemedy, ...]


def all_advice(report: Explanation, trials: Trials) -> Iterator[RequestAdvice]:
    """For every request that fits nowhere and could be helped."""
    if report.error:
        return
    for claim in report.claims:
        if claim.error or any(node.status == "allocated" for node in claim.nodes):
            continue
        for request in claim.requests:
            fits = any(node.fits for node in request.nodes)
            advice = None if fits else find_advice(claim.claim, request, trials)
            if advice is not None:
                yield RequestAdvice(
                    claim=claim.claim, request=request.name, node=advice.node.node, remedies=advice.remedies
                )


def tell_hopeless(request: RequestReport) -> str:
    """To be said if there are no remedies: why not. Empty if the pools of the nodes have problems, which are told."""
    most = max((node.matching for node in request.nodes), default=0)
    if not most:
        has_problems = any(node.problems for node in request.nodes)
        return (
            ""
            if has_problems
            else "No device that was looked at matches: to give back or lift something there does not help."
        )
    if request.count is None or most >= request.count:
        if any(_tainting(node) for node in request.nodes):
            return "Nothing that was tried makes it fit; to lift rules and give devices back as well was not tried."
        return "Nothing that was tried makes it fit."
    matching = "1 device that matches" if most == 1 else f"{most} devices that match"
    return f"Nothing that was tried makes it fit: no node that was looked at has more than {matching}."


def _constraints(claim: str, node: NodeReport, trials: Trials) -> Iterator[DropConstraint]:
    for attribute in node.fits_without:
        if trials.without_constraint(claim, node.node, attribute):
            yield DropConstraint(attribute=attribute)


def _releases(
    claim: str, request: RequestReport, node: NodeReport, trials: Trials
) -> Iterator[GiveBack | ReleaseDevices]:
    """Devices that are held, or draw from what others use up: fewer of them first, as far as that was tried."""
    held = [device for device in node.devices if _holders(device)]
    if request.count is not None and not request.distinct_attributes:
        help_ = _least(request, request.count, node, [one for one in held if isinstance(one.check, reasons.InUse)])
        if help_ is not None:
            tried = _tried(claim, node, help_, trials)
            if tried is not None:
                held_by = _each_once([name for one in tried.devices for name in _holders(one)])
                yield GiveBack(claims=tuple(held_by)) if tried.needed > len(held_by) else _release(tried)
                return
    enough = _enough(held, partial(trials.released, claim, node.node))
    if enough:
        yield GiveBack(claims=tuple(enough))


def _enough(devices: Iterable[DeviceReport], helps: Callable[[Sequence[str]], bool]) -> list[str]:
    """The fewest claims that make room: one alone, all that keep some device from being taken, or those of several.

    Empty if none that were tried do, or only so many that it is no advice.
    """
    groups = sorted(_each_once(filter(None, map(_holders, devices))), key=len)
    for holder in _each_once(name for group in groups for name in group)[:_MAX_TRIED]:
        if helps([holder]):
            return [holder]
    several = [group for group in groups if 1 < len(group) <= _MAX_ASKED]
    together: list[str] = []
    for group in groups:
        more = _each_once([*together, *group])
        together = more if len(more) <= _MAX_ASKED else together
    for some in (*several[:_MAX_TRIED], together):
        if len(some) > 1 and helps(some):
            fewest = _fewest(some, helps)
            return fewest if len(fewest) <= _MAX_TOGETHER else []
    return []


def _lifted_rules(claim: str, node: NodeReport, trials: Trials) -> Iterator[LiftRules]:
    """Each rule that is enough by itself; if none is, those that must be lifted together."""
    rules = _tainting(node)
    helps = partial(trials.without_rules, claim, node.node)
    alone = [rule for rule in rules[:_MAX_TRIED] if helps([rule])]
    for rule in alone:
        yield LiftRules(rules=(rule,))
    if not alone and 1 < len(rules) <= _MAX_TOGETHER and helps(rules):
        yield LiftRules(rules=tuple(_fewest(rules, helps)))


def _fewest(those: Sequence[str], helps: Callable[[Sequence[str]], bool]) -> list[str]:
    """Of those that are enough together, so many that none of them can stay."""
    needed = list(those)
    part = max(len(needed) // 2, 1)
    while True:
        for start in range(len(needed) - part, -1, -part):
            fewer = needed[:start] + needed[start + part :]
            if fewer and helps(fewer):
                needed = fewer
        if part == 1:
            return needed
        part //= 2


def _tried(claim: str, node: NodeReport, help_: _Help, trials: Trials) -> _Help | None:
    """Those that do: each of them if one is enough; any so many of them if that is always so, else some that do.

    A holder of several gives them back together, and so many are needed then: only those that are told are tried.
    """
    if help_.needed == 1:
        good = [one for one in help_.devices[:_MAX_TRIED] if trials.without_holders(claim, node.node, [one])]
        return _Help(1, tuple(good)) if good else None
    choices = list(islice(combinations(help_.devices, help_.needed), _MAX_TRIED + 1))
    helping = [some for some in choices[:_MAX_TRIED] if trials.without_holders(claim, node.node, some)]
    if len(helping) == len(choices):
        return help_
    return _Help(help_.needed, helping[0]) if helping else None


def _holders(device: DeviceReport) -> tuple[str, ...]:
    """The claims that keep a device from being taken."""
    match device.check:
        case reasons.InUse() | reasons.CounterShort() | reasons.GroupsIncompatible() | reasons.CapacityShort():
            return device.check.claims
    return ()


def _each_once(listed: Iterable[_T]) -> list[_T]:
    return list(dict.fromkeys(listed))


def _distance(request: RequestReport, node: NodeReport) -> tuple[object, ...]:
    blocked = sum(_is_blocked(device) for device in node.devices)
    is_hopeless = sum(map(_is_attainable, node.devices)) < (request.count or 1)
    return (not node.matching, node.missing, is_hopeless, not node.fits_without, -node.free, blocked, node.node)


def _is_attainable(device: DeviceReport) -> bool:
    """Whether the device can be taken, or could be if somebody gave something back or lifted something."""
    match device.check:
        case None | reasons.ConstraintConflict():
            return True
        case reasons.Tainted():
            return bool(device.check.rule) and not device.check.by_driver_too
    return bool(_holders(device))


def _is_blocked(device: DeviceReport) -> bool:
    wanted = not isinstance(device.check, reasons.SelectorFalse | reasons.OutOfReach)
    return device.check is not None and wanted


def _tainting(node: NodeReport) -> list[str]:
    """Rules that keep devices from being taken."""
    checks = [device.check for device in node.devices]
    return sorted({rule for check in checks if isinstance(check, reasons.Tainted) for rule in check.rules})


def _least(request: RequestReport, wanted: int, node: NodeReport, extra: Sequence[DeviceReport]) -> _Help | None:
    """The fewest of the `extra` devices that would be enough, together with the free ones that agree with them."""
    free: dict[_Values, int] = {}
    for device in node.devices:
        if device.check is None or isinstance(device.check, reasons.ConstraintConflict):
            values = _agreeing(request, device)
            free[values] = free.get(values, 0) + 1
    groups: dict[_Values, list[DeviceReport]] = {}
    for device in extra:
        values = _agreeing(request, device)
        if all(values):
            groups.setdefault(values, []).append(device)
    found = [_Help(wanted - free.get(values, 0), tuple(devices)) for values, devices in groups.items()]
    found = [help_ for help_ in found if 0 < help_.needed <= len(help_.devices)]
    if not found:
        return None
    least = min(help_.needed for help_ in found)
    nearest = [help_ for help_ in found if help_.needed == least]
    if least > 1:
        return nearest[0]
    return _Help(1, tuple(device for help_ in nearest for device in help_.devices))


def _agreeing(request: RequestReport, device: DeviceReport) -> _Values:
    """What devices must have in common."""
    return tuple(device.values.get(attribute, ()) for attribute in request.matching_attributes)


def _release(help_: _Help) -> ReleaseDevices:
    held = (
        HeldDevice(driver=one.driver, pool=one.pool, device=one.device, claims=_holders(one)) for one in help_.devices
    )
    return ReleaseDevices(needed=help_.needed, devices=tuple(held))

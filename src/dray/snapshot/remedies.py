"""What would make a request fit on a node: a constraint dropped, devices released, a taint rule lifted.

Dropping a constraint was tried by the allocator, lifting a rule is tried by whoever can. Releases are counted from the
report, and said only where counting is enough: a number of devices that agree in some attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from dray.allocator import reasons
from dray.allocator.reasons import DeviceReport, NodeReport, RequestReport
from dray.snapshot.wording import are, ends, local_name, names

_Values: TypeAlias = tuple[tuple[str, ...], ...]

_MAX_DEVICES = 4


class _Help(NamedTuple):
    """`needed` of these devices would do."""

    needed: int
    devices: tuple[DeviceReport, ...]


def find_closest(request: RequestReport) -> NodeReport | None:
    """The node that comes nearest to fitting; None if there is none, or if no node can be judged."""
    judged = [node for node in request.nodes if not node.error and not node.fits]
    return min(judged, key=_distance, default=None)


def tell_remedies(request: RequestReport, node: NodeReport, lifting_helps: Callable[[str], bool]) -> list[str]:
    """Each continues "It would fit …". Empty if nothing simple would do.

    A tainted device may be held, too, which its report does not say; so rules are named only if `lifting_helps`.
    """
    told = [f"with constraint {local_name(attribute)} dropped" for attribute in node.fits_without]
    if request.count is None:
        held = [device for device in node.devices if isinstance(device.check, reasons.InUse)]
        others = [device for device in node.devices if device.check is not None and _is_blocked(device)]
        if held and len(held) == len(others):
            told.append(f"when {_list_held(held)} {are(len(held))} released")
        return told
    if request.distinct_attributes:
        return told
    held = [device for device in node.devices if isinstance(device.check, reasons.InUse)]
    help_ = _least(request, request.count, node, held)
    if help_ is not None:
        told.append(_tell_release(help_))
    told += [f"without the taint of rule {rule}" for rule in _tainting(node) if lifting_helps(rule)]
    told += [f"when pool {problem.pool} is complete" for problem in node.problems if problem.incomplete]
    return told


def _distance(node: NodeReport) -> tuple[object, ...]:
    blocked = sum(_is_blocked(device) for device in node.devices)
    return (not node.matching, node.missing, not node.fits_without, -node.free, blocked, node.node)


def _is_blocked(device: DeviceReport) -> bool:
    wanted = not isinstance(device.check, reasons.SelectorFalse | reasons.OutOfReach)
    return device.check is not None and wanted


def _tainting(node: NodeReport) -> list[str]:
    """Rules that keep devices from being taken."""
    checks = [device.check for device in node.devices]
    return sorted({check.rule for check in checks if isinstance(check, reasons.Tainted) and check.rule})


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


def _tell_release(help_: _Help) -> str:
    listed = _list_held(help_.devices)
    if len(help_.devices) > help_.needed:
        listed = f"{'one' if help_.needed == 1 else help_.needed} of {listed}"
    return f"when {listed} {are(help_.needed)} released"


def _list_held(devices: Sequence[DeviceReport]) -> str:
    shown = []
    for device in devices:
        holders = device.check.claims if isinstance(device.check, reasons.InUse) else ()
        shown.append(f"{device.device} ({ends(holders)})" if holders else device.device)
    return names(shown, _MAX_DEVICES)

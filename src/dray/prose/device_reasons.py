"""The checks that devices fail, in words: one device, several devices of a node, and totals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from dray.allocator import reasons
from dray.allocator.reasons import AnyCheck, DeviceReport, NodeReport
from dray.api.quantity import Quantity
from dray.api.taints import taint_text
from dray.api.times import Time, TimeError
from dray.prose.wording import count, ends, local_name, names, shorten, since, tell_apart

MAX_REASONS = 3
_MAX_CONDITION = 80
_MAX_RULES = 16

_PATH = re.compile(r'device\.(?:attributes|capacity)\["[^"]*"\]\.\??(\w+)')
_CALLS = (
    (re.compile(r'\.compareTo\((?:quantity|semver)\("([^"]*)"\)\) (==|!=|<=|>=|<|>) 0'), r" \2 \1"),
    (re.compile(r'\.isGreaterThan\((?:quantity|semver)\("([^"]*)"\)\)'), r" > \1"),
    (re.compile(r'\.isLessThan\((?:quantity|semver)\("([^"]*)"\)\)'), r" < \1"),
)

# From what comes close to fitting to what was never meant.
_ORDER: tuple[type[reasons.Check], ...] = (
    reasons.ConstraintConflict,
    reasons.InUse,
    reasons.Tainted,
    reasons.CounterShort,
    reasons.CapacityShort,
    reasons.GroupsIncompatible,
    reasons.AttributeMissing,
    reasons.CapacityUnsuitable,
    reasons.OutOfReach,
    reasons.SelectorFailed,
    reasons.SelectorFalse,
)


def blocked_by(node: NodeReport, now: datetime | None, *, named: bool = True) -> str:
    """What keeps a node's devices from being taken. Without names it reads the same for nodes in the same state."""
    if node.error:
        return shorten(node.error, 200)
    groups = _relevant(node)
    parts = [_tell_group(group, now, named=named) for group in groups[:MAX_REASONS]]
    if len(groups) > MAX_REASONS:
        parts.append(count(len(groups) - MAX_REASONS, "more reason"))
    parts += [problem.message for problem in node.problems]
    return "; ".join(parts) or ("too few devices" if node.devices else "no devices here")


def tell_device(report: DeviceReport, now: datetime | None) -> str:
    """What is with one device."""
    if report.check is None:
        return "free" + _own_values(report)
    if isinstance(report.check, reasons.ConstraintConflict):
        return f"free{_own_values(report)}, but not with enough others"
    return tell_check(report.check, now) + _own_values(report)


def totals(devices: Iterable[DeviceReport]) -> list[str]:
    """`6 in use`, `2 tainted by rule x`: devices that match, counted by what keeps them from being taken."""
    tally: dict[str, int] = {}
    for device in devices:
        if device.check is not None and is_match(device):
            label = _label(device.check)
            tally[label] = tally.get(label, 0) + 1
    return [f"{number} {label}" for label, number in sorted(tally.items(), key=lambda item: -item[1])]


def is_match(device: DeviceReport) -> bool:
    """Whether the selectors want the device."""
    return not isinstance(device.check, reasons.SelectorFalse | reasons.SelectorFailed | reasons.OutOfReach)


def tell_condition(condition: str) -> str:
    """A condition of a selector as people would write it: `memory >= 80Gi`."""
    text = _PATH.sub(r"\1", condition)
    for pattern, replacement in _CALLS:
        text = pattern.sub(replacement, text)
    return shorten(text, _MAX_CONDITION)


def _relevant(node: NodeReport) -> list[list[DeviceReport]]:
    """Devices by what they fail, nearest to fitting first. Where devices match, others' classes are of no interest."""
    groups: dict[Any, list[DeviceReport]] = {}
    for device in node.devices:
        check = device.check
        if check is None or (node.matching and isinstance(check, reasons.SelectorFalse) and check.class_name):
            continue
        groups.setdefault((_ORDER.index(type(check)), _kind(check)), []).append(device)
    return [group for _, group in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1])))]


def _kind(check: AnyCheck) -> tuple[object, ...]:
    """Checks of the same kind are told together."""
    match check:
        case reasons.SelectorFalse():
            return (check.class_name, check.index, check.condition)
        case reasons.SelectorFailed():
            return (check.class_name, check.index, check.message)
        case reasons.Tainted():
            who = (check.rule, check.more_rules, check.by_driver_too)
            return (check.effect, *who, None if check.rule else (check.key, check.value))
        case reasons.CounterShort():
            return (check.counter_set, check.counter)
        case reasons.CapacityShort():
            return (check.capacity,)
        case reasons.CapacityUnsuitable():
            return (check.capacity, check.value is None, check.at_most, check.choices)
        case reasons.GroupsIncompatible():
            return (check.counter_set, check.groups, check.present)
        case reasons.ConstraintConflict() | reasons.AttributeMissing():
            return (check.attribute,)
    return ()


def _tell_group(group: Sequence[DeviceReport], now: datetime | None, *, named: bool) -> str:
    check = group[0].check
    checks = [device.check for device in group]
    match check:
        case reasons.InUse():
            holders = sorted({claim for one in checks if isinstance(one, reasons.InUse) for claim in one.claims})
            return f"{len(group)} held ({ends(holders)})" if named else f"{len(group)} held"
        case reasons.ConstraintConflict():
            relation = "is not distinct" if check.distinct else "differs"
            attribute = local_name(check.attribute)
            called = tell_apart((device.driver, device.pool, device.device) for device in group)
            seen = [
                f"{name} {attribute} {_values(device.values.get(check.attribute, ()))}"
                for name, device in zip(called, group, strict=True)
            ]
            text = f"{attribute} {relation}"
            return f"{text}: {names(seen, 4)}" if named else text
        case reasons.SelectorFalse():
            seen = sorted({_seen(one) for one in checks if isinstance(one, reasons.SelectorFalse)})
            return f"{len(group)} fail {_selector(check)}: {tell_condition(check.condition)}{_brackets(seen)}"
        case None:
            return ""
    return f"{len(group)} {tell_check(_together(group, named=named), now)}"


def _together(group: Sequence[DeviceReport], *, named: bool) -> AnyCheck:
    """One check that is true of all devices of a group: with every amount, every claim, and no more than they share."""
    checks = [device.check for device in group if device.check is not None]
    first = checks[0]
    match first:
        case reasons.CounterShort() | reasons.CapacityShort():
            alike = [check for check in checks if isinstance(check, reasons.CounterShort | reasons.CapacityShort)]
            return msgspec.structs.replace(
                first,
                needed=_amounts(check.needed for check in alike),
                left=_amounts(check.left for check in alike),
                short_by=_amounts(check.short_by for check in alike),
                claims=_claims(check.claims for check in alike) if named else (),
            )
        case reasons.GroupsIncompatible():
            users = [check.claims for check in checks if isinstance(check, reasons.GroupsIncompatible)]
            return msgspec.structs.replace(first, claims=_claims(users) if named else ())
        case reasons.CapacityUnsuitable() if first.value is not None:
            values = [check.value for check in checks if isinstance(check, reasons.CapacityUnsuitable)]
            return msgspec.structs.replace(first, value=_amounts(value for value in values if value is not None))
        case reasons.Tainted():
            moments = {check.time_added for check in checks if isinstance(check, reasons.Tainted)}
            return first if len(moments) == 1 else msgspec.structs.replace(first, time_added=None)
    return first


def _amounts(listed: Iterable[str]) -> str:
    """`10Gi`, `10Gi or 40Gi`, or `10Gi to 80Gi` for more."""
    ordered = sorted(set(listed), key=Quantity.parse)
    return f" {'to' if len(ordered) > 2 else 'or'} ".join(dict.fromkeys((ordered[0], ordered[-1])))


def _claims(listed: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted({claim for claims in listed for claim in claims}))


def tell_check(check: AnyCheck, now: datetime | None) -> str:
    """The check that one device fails; goes on after "3 devices are"."""
    match check:
        case reasons.SelectorFalse():
            return f"fails {_selector(check)}: {tell_condition(check.condition)}{_brackets([_seen(check)])}"
        case reasons.SelectorFailed():
            return f"with an error in {_selector(check)}: {shorten(check.message, 200)}"
        case reasons.OutOfReach():
            return "not reachable from the node"
        case reasons.CapacityUnsuitable():
            return _tell_unsuitable(check)
        case reasons.Tainted():
            return _tell_taint(check, now)
        case reasons.InUse():
            return f"held by {names(check.claims)}"
        case reasons.CounterShort():
            short = f"short of counter {check.counter_set}/{check.counter}: needs {check.needed}, left {check.left}"
            return f"{short} (used by {names(check.claims)})" if check.claims else short
        case reasons.CapacityShort():
            short = f"short of {local_name(check.capacity)} by {check.short_by}"
            return f"{short} (shared with {names(check.claims)})" if check.claims else short
        case reasons.GroupsIncompatible():
            users = f" ({names(check.claims)})" if check.claims else ""
            against = f"{ends(check.groups)} against {ends(check.present)}"
            return f"incompatible with what uses {check.counter_set}{users}: {against}"
        case reasons.AttributeMissing():
            return f"without {local_name(check.attribute)}"
        case reasons.ConstraintConflict():
            return f"{local_name(check.attribute)} {'is not distinct' if check.distinct else 'differs'}"


def _tell_unsuitable(check: reasons.CapacityUnsuitable) -> str:
    capacity = local_name(check.capacity)
    if check.value is None:
        return f"without {capacity}, needs {check.requested}"
    text = f"with {capacity} {check.value}"
    if check.choices:
        text += f", of which one request gets {' or '.join(check.choices)}"
    elif check.at_most is not None:
        text += f", of which one request gets at most {check.at_most}"
    return f"{text}, needs {check.requested}" if check.requested else f"{text}, needs an amount named"


def _tell_taint(check: reasons.Tainted, now: datetime | None) -> str:
    if check.rule:
        text = f"tainted {check.effect} by rule {check.rule}"
    else:
        text = f"tainted {taint_text(check)} by the driver"
    age = _age_of(check, now)
    if age:
        text += f" ({age})"
    also = [called_rules(check.more_rules)] if check.more_rules else []
    also += ["the driver"] if check.by_driver_too else []
    return f"{text}, and by {' and '.join(also)}" if also else text


def _age_of(check: reasons.Tainted, now: datetime | None) -> str:
    if check.time_added is None:
        return ""
    try:
        return since(Time.parse(check.time_added).datetime(), now)
    except TimeError:
        return ""


def called_rules(rules: Sequence[str]) -> str:
    """`rule a`, `rules a, b`: all of them, as far as a line can hold them, for each must be lifted."""
    return f"{'rule' if len(rules) == 1 else 'rules'} {names(rules, _MAX_RULES)}"


def _label(check: AnyCheck) -> str:
    """What a check is called in totals."""
    match check:
        case reasons.InUse():
            return "in use"
        case reasons.Tainted():
            by = [called_rules(check.rules)] if check.rules else []
            by += ["the driver"] if check.by_driver_too or not check.rule else []
            return f"tainted by {' and '.join(by)}"
        case reasons.ConstraintConflict():
            return f"free but of {'the same' if check.distinct else 'different'} {local_name(check.attribute)}"
        case reasons.AttributeMissing():
            return f"without {local_name(check.attribute)}"
        case reasons.CounterShort():
            return f"short of counter {check.counter_set}/{check.counter}"
        case reasons.CapacityShort():
            return f"short of {local_name(check.capacity)}"
        case reasons.CapacityUnsuitable():
            return f"with unsuitable {local_name(check.capacity)}"
    return "incompatible with others"


def _selector(check: reasons.SelectorFalse | reasons.SelectorFailed) -> str:
    where = f"class {check.class_name} selector" if check.class_name else "selector"
    return f"{where} {check.index + 1}"


def _seen(check: reasons.SelectorFalse) -> str:
    shown = [f"{local_name(name)} {_plain(value)}" for name, value in check.values.items()]
    return names(shown, 4)


def _plain(value: object) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return shorten(f"[{', '.join(map(_plain, value))}]")
    return shorten(str(value))


def _brackets(seen: Sequence[str]) -> str:
    shown = [text for text in seen if text]
    more = [count(len(shown) - 2, "other")] if len(shown) > 2 else []
    return f" ({'; '.join([*shown[:2], *more])})" if shown else ""


def _values(texts: Sequence[str]) -> str:
    return names([shorten(text) for text in texts]) or "unset"


def _own_values(report: DeviceReport) -> str:
    return "".join(f", {local_name(name)} {_values(texts)}" for name, texts in report.values.items())

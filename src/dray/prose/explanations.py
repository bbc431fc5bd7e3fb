"""Reasons in words: who is pending and why, a table of nodes, the closest node and what would make it fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from dray.allocator.reasons import ClaimReport, DeviceReport, Explanation, NodeReport, RequestReport
from dray.prose.device_reasons import blocked_by, is_match, tell_device, totals
from dray.prose.remedies import Trials, find_advice, find_closest, tell_hopeless
from dray.prose.remedy import MOST_NAMED, tell_remedy
from dray.prose.tables import lay_out, wrap
from dray.prose.wording import count, local_name, names, rest, tell_apart

MAX_ROWS = 12
"""Nodes in a table; beyond that, nodes in the same state share a row."""
MAX_DEVICE_ROWS = 64
MAX_ALIKE = 4
MAX_PROBLEMS = 2
"""Pools that cannot be used that are named in a line."""
"""Devices in a row each; of more that do not match for the same reason, the first stands for all."""
MAX_SUMMARY = 1024
"""As long as the message of an event may be."""


class Style(msgspec.Struct, frozen=True):
    """How to tell: the current time for ages, and a width to keep to; without them moments and long lines."""

    now: datetime | None = None
    width: int | None = None
    trials: Trials | None = None
    """Tries what would help; without it nothing is said to."""


def tell(report: Explanation, style: Style) -> str:
    """The explanation of claims as text."""
    if report.error:
        return wrap(f"Nothing can be decided: {report.error}", style.width)
    if not report.claims:
        return "Nothing is pending."
    parts = [_tell_claim(claim, style) for claim in report.claims]
    alone = all(_fits(claim) for claim in report.claims)
    if len(report.claims) > 1 and alone and not any(node.status == "allocated" for node in report.nodes):
        parts.append(wrap("Each claim fits by itself, but no node has room for all of them together.", style.width))
    return "\n\n".join(parts)


def brief(report: Explanation, *, named: bool = False) -> str:
    """The reasons in one line; claims are named if there are several, or if asked for. Empty if everything fits."""
    if report.error:
        return report.error
    blocked = [claim for claim in report.claims if not _fits(claim)]
    if not blocked and not any(node.status == "allocated" for node in report.nodes) and len(report.claims) > 1:
        return "each claim fits by itself, but no node has room for all of them together"
    is_named = named or names_claims(report)
    return "; ".join(f"{claim.claim}: {_summarise(claim)}" if is_named else _summarise(claim) for claim in blocked)


def names_claims(report: Explanation) -> bool:
    """Whether `brief` begins with the name of a claim: there are several, and some do not fit by themselves."""
    return len(report.claims) > 1 and not report.error and not all(map(_fits, report.claims))


def _summarise(claim: ClaimReport) -> str:
    if claim.error:
        return claim.error
    if not claim.nodes:
        return "there is no node for it"
    blocked = [request for request in claim.requests if not any(node.fits for node in request.nodes)]
    if not blocked:
        return "no node has devices for all requests together"
    request = blocked[0]
    parts = [f"request {_called(request)}: {tell_totals(request)}"]
    closest = find_closest(request)
    if closest is not None and closest.matching:
        parts.append(f"nearest node is {closest.node}{_shortage(closest)}")
    problems = dict.fromkeys(one.message for node in request.nodes for one in node.problems)
    if problems:
        parts.append(names(list(problems), MAX_PROBLEMS))
    return "; ".join(parts)


def _called(request: RequestReport) -> str:
    return f'"{request.name}" for {request.resource}' if request.resource else f'"{request.name}"'


def _fits(claim: ClaimReport) -> bool:
    return not claim.error and any(node.status == "allocated" for node in claim.nodes)


def _tell_claim(claim: ClaimReport, style: Style) -> str:
    if claim.error:
        return "\n\n".join(wrap(text, style.width) for text in _tell_error(claim))
    if not claim.nodes:
        return wrap(f"{claim.claim} is pending: there is no node for it.", style.width)
    fitting = [node.node for node in claim.nodes if node.status == "allocated"]
    where = count(len(claim.nodes), "node")
    if fitting:
        return wrap(f"{claim.claim} fits on {names(fitting)} ({len(fitting)} of {where}).", style.width)
    place = f"node {claim.nodes[0].node}" if len(claim.nodes) == 1 else f"any of {where}"
    if len(claim.requests) == 1:
        request = claim.requests[0]
        head = f"{claim.claim} is pending: request {_called(request)} ({tell_wish(request)}) does not fit on {place}."
        return "\n\n".join([wrap(head, style.width), *_tell_reasons(claim.claim, request, style)])
    parts = [wrap(f"{claim.claim} is pending: it does not fit on {place}.", style.width)]
    for request in claim.requests:
        parts += _tell_request(claim.claim, request, style)
    return "\n\n".join([*parts, *_tell_together(claim, style)])


def _tell_error(claim: ClaimReport) -> Iterator[str]:
    """Where it would fit is said, because it gets nothing there either: something is wrong with it."""
    if claim.missing_class is not None:
        request, name = claim.missing_class
        yield f"{claim.claim} is pending: request {request}: device class {name} does not exist."
        return
    yield f"{claim.claim} cannot be judged: {claim.error}"
    fitting = [node.node for node in claim.nodes if node.status == "allocated"]
    faulty = [node.node for node in claim.nodes if node.status == "error"]
    if fitting and faulty:
        yield f"It would fit on {names(fitting)}, but gets nothing while it cannot be judged on {names(faulty)}."


def _tell_request(claim: str, request: RequestReport, style: Style) -> Iterator[str]:
    """One of several requests of a claim, by itself."""
    title = f"Request {_called(request)} ({tell_wish(request)})"
    fitting = [node.node for node in request.nodes if node.fits]
    if fitting:
        yield wrap(f"{title} by itself fits on {names(fitting)}.", style.width)
        return
    yield wrap(f"{title} fits nowhere.", style.width)
    yield from _tell_reasons(claim, request, style)


def _tell_together(claim: ClaimReport, style: Style) -> Iterator[str]:
    """If every request fits somewhere: which of them is missing on which node."""
    if not all(any(node.fits for node in request.nodes) for request in claim.requests):
        return
    missing: dict[tuple[str, ...], list[str]] = {}
    for number, verdict in enumerate(claim.nodes):
        lacking = tuple(request.name for request in claim.requests if not request.nodes[number].fits)
        missing.setdefault(lacking, []).append(verdict.node)
    rows = [("node", "what does not fit")]
    for lacking, nodes in missing.items():
        rows.append((names(nodes), names(lacking) if lacking else "each request fits by itself, but not all together"))
    yield "\n".join(lay_out(rows, style.width))


def tell_wish(request: RequestReport) -> str:
    """`class gpu, 2 devices, same numa`: what a request asks for."""
    number = "all devices" if request.count is None else count(request.count, "device")
    parts = [f"class {request.device_class}", number]
    parts += [f"same {local_name(attribute)}" for attribute in request.matching_attributes]
    parts += [f"distinct {local_name(attribute)}" for attribute in request.distinct_attributes]
    return ", ".join([*parts, "admin access"] if request.admin_access else parts)


def _tell_reasons(claim: str, request: RequestReport, style: Style) -> Iterator[str]:
    blocked = [node for node in request.nodes if not node.fits]
    if len(request.nodes) == 1:
        yield from _tell_devices(blocked[0], style)
    else:
        yield "\n".join(_node_table(blocked, style))
    yield wrap(f"{tell_totals(request)}.", style.width)
    hint = _hint(claim, request, style)
    if hint:
        yield wrap(hint, style.width)


def _node_table(nodes: Sequence[NodeReport], style: Style) -> list[str]:
    rows = [("node", "match", "free", "blocked by")]
    if len(nodes) <= MAX_ROWS:
        rows += [(node.node, *_numbers(node), blocked_by(node, style.now)) for node in nodes]
        return lay_out(rows, style.width)
    states: dict[tuple[str, str, str], list[NodeReport]] = {}
    for node in nodes:
        states.setdefault((*_numbers(node), blocked_by(node, style.now, named=False)), []).append(node)
    ordered = sorted(states.items(), key=lambda item: (not item[1][0].matching, item[1][0].missing, -item[1][0].free))
    for (match, free, why), alike in ordered[:MAX_ROWS]:
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        rows.append((f"{alike[0].node}{more}", match, free, why))
    lines = lay_out(rows, style.width)
    return [*lines, *rest(sum(len(alike) for _, alike in ordered[MAX_ROWS:]), "node")]


def _numbers(node: NodeReport) -> tuple[str, str]:
    return str(node.matching), str(node.free) if node.matching else "–"


def _tell_devices(node: NodeReport, style: Style) -> Iterator[str]:
    """Everything about one node."""
    if node.error:
        yield wrap(node.error, style.width)
    if node.devices:
        rows = list(_device_rows(node, style.now))
        lines = lay_out([("device", "what is with it"), *rows[:MAX_DEVICE_ROWS]], style.width)
        yield "\n".join([*lines, *rest(len(rows) - MAX_DEVICE_ROWS, "row")])
    for problem in node.problems:
        yield wrap(f"Its devices do not count: {problem.message}.", style.width)


def _device_rows(node: NodeReport, now: datetime | None) -> Iterator[tuple[str, str]]:
    """Each device that matches; then those that do not, many in the same state in one row."""
    others: dict[str, list[str]] = {}
    called = tell_apart(((one.driver, one.pool, one.device) for one in node.devices), least=2)
    for name, device in zip(called, node.devices, strict=True):
        told = tell_device(device, now)
        if is_match(device):
            yield name, told
        else:
            others.setdefault(told, []).append(name)
    for told, listed in others.items():
        if len(listed) > MAX_ALIKE:
            yield f"{listed[0]} and {len(listed) - 1} more", told
        else:
            yield from ((name, told) for name in listed)


def tell_totals(request: RequestReport) -> str:
    """`8 of 40 devices match; 6 in use, 2 tainted by rule x`. A device that many nodes see counts once."""
    devices: dict[tuple[str, str, str, str], DeviceReport] = {}
    for node in request.nodes:
        for device in node.devices:
            key = (device.driver, device.pool, device.device, device.node)
            if key not in devices or not is_match(devices[key]):
                devices[key] = device
    matching = [device for device in devices.values() if is_match(device)]
    verb = "matches" if len(devices) == 1 else "match"
    text = f"{len(matching)} of {count(len(devices), 'device')} {verb}"
    parts = totals(matching)
    free = sum(device.check is None for device in matching)
    if matching and free:
        parts.append(f"{free} free")
    return f"{text}; {', '.join(parts)}" if parts else text


def _hint(claim: str, request: RequestReport, style: Style) -> str:
    closest = find_closest(request)
    if closest is None:
        return ""
    advice = find_advice(claim, request, style.trials) if style.trials is not None else None
    text = f"Closest: {closest.node}{_shortage(closest)}." if closest.matching or advice is not None else ""
    if advice is not None:
        where = "It" if advice.node is closest else f"On {advice.node.node} it"
        most = None if len(request.nodes) == 1 else MOST_NAMED
        return f"{text} {where} would fit {', or '.join(tell_remedy(one, most) for one in advice.remedies)}."
    return f"{text} {tell_hopeless(request)}".strip() if style.trials is not None else text


def _shortage(node: NodeReport) -> str:
    return f", short by {count(node.missing, 'device')}" if node.missing else ""

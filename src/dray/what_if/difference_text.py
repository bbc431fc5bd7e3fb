"""The difference of two snapshots in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from dray.api.resource.taint import EFFECT_NO_EXECUTE
from dray.api.times import Time
from dray.prose.tables import lay_out, wrap
from dray.prose.wording import count, ends, local_name, names, shorten, span
from dray.what_if.device_changes import ADDED, CHANGED, REMOVED, UNUSABLE, USABLE, DeviceChange
from dray.what_if.evictions import Eviction

if TYPE_CHECKING:
    from dray.what_if.difference import Difference, RuleForecast

MAX_ROWS = 20

_TITLES = {
    UNUSABLE: "unusable for claims without toleration",
    REMOVED: "gone",
    USABLE: "usable again",
    ADDED: "new",
    CHANGED: "changed",
}


def tell(difference: Difference, width: int | None = None) -> str:
    """The whole difference as text."""
    parts = [
        *_tell_rules(difference, width),
        *_tell_nodes(difference, width),
        *_tell_devices(difference, width),
        *_tell_claims(difference, width),
        *_tell_evictions(difference, width),
        *_tell_pending(difference, width),
        *_tell_workloads(difference, width),
        *_tell_quotas(difference, width),
        *_tell_unjudged(difference, width),
        *(wrap(f"Note: {note}.", width) for note in difference.notes),
    ]
    changed = [f"{change.object} {change.change}" for change in difference.objects]
    title = wrap(f"What if: {names(changed, 5)}." if changed else "What if nothing is different?", width)
    return "\n\n".join([title, *(parts or ["No device, claim or pod would notice."])])


def _tell_rules(difference: Difference, width: int | None) -> Iterator[str]:
    for rule in difference.rules:
        yield wrap(_tell_rule(rule), width)


def _tell_rule(rule: RuleForecast) -> str:
    selected = f"Rule {rule.rule} selects {count(rule.devices, 'device')}, {rule.allocated} of them allocated."
    pods = f"{count(rule.pods, 'pod')} in {count(rule.namespaces, 'namespace')}"
    if rule.effect == EFFECT_NO_EXECUTE:
        return f"{selected} It evicts {pods}."
    return f"{selected} Its effect is {rule.effect}; with NoExecute it would evict {pods}."


def _tell_nodes(difference: Difference, width: int | None) -> Iterator[str]:
    rows = [(change.node, names(change.reasons, 4), str(change.pods)) for change in difference.nodes]
    if rows:
        yield _table(f"{count(len(rows), 'node')} different:", ("node", "what", "pods there"), rows, width)


def _tell_devices(difference: Difference, width: int | None) -> Iterator[str]:
    for kind, title in _TITLES.items():
        changes = [change for change in difference.devices if change.change == kind]
        if not changes:
            continue
        alike: dict[tuple[str, str], list[str]] = {}
        for change in changes:
            alike.setdefault((change.node or change.pool, _tell_change(change)), []).append(change.device)
        wheres: dict[tuple[str, str], list[str]] = {}
        for (where, reason), devices in alike.items():
            wheres.setdefault((ends(devices), reason), []).append(where)
        rows = [(names(places, 2), devices, reason) for (devices, reason), places in wheres.items()]
        why = "what stood in the way" if kind == USABLE else "why"
        yield _table(f"{count(len(changes), 'device')} {title}:", ("where", "devices", why), rows, width)


def _tell_change(change: DeviceChange) -> str:
    told = [shorten(reason, 200) for reason in change.reasons]
    told += [
        f"{local_name(name)} {shorten(value.before or 'unset')} → {shorten(value.after or 'unset')}"
        for name, value in change.values.items()
    ]
    if change.values and change.patches:
        told.append(f"patched by {names(change.patches)}")
    told += [f"no longer of class {name}" for name in change.classes_lost]
    told += [f"now of class {name}" for name in change.classes_gained]
    return "; ".join(told) or "–"


def _tell_claims(difference: Difference, width: int | None) -> Iterator[str]:
    """Claims stay allocated; those whose pods are evicted are told with these."""
    evicted = {claim for eviction in difference.evictions for claim in eviction.claims}
    rows = [
        (change.claim, _short(change.device), names(change.reasons, 2), names(change.pods) or "nobody")
        for change in difference.claims
        if change.gone or change.claim not in evicted
    ]
    if rows:
        title = f"{count(len(rows), 'allocated device')} affected; the claims keep what they have:"
        yield _table(title, ("claim", "device", "why", "used by"), rows, width)


def _tell_evictions(difference: Difference, width: int | None) -> Iterator[str]:
    if difference.spared:
        yield wrap(f"{count(len(difference.spared), 'pod')} may stay: {names(difference.spared)}.", width)
    if not difference.evictions:
        if difference.protected:
            yield wrap(f"No pod has to leave; {difference.protected} protected by tolerations.", width)
        return
    now = Time.parse(difference.now).datetime()
    namespaces = {eviction.pod.partition("/")[0] for eviction in difference.evictions}
    title = (
        f"{count(len(difference.evictions), 'pod')} in {count(len(namespaces), 'namespace')} evicted"
        f"{_until(difference.finished, now)}; {difference.protected} protected by tolerations:"
    )
    with_owner = any(eviction.owner for eviction in difference.evictions)
    header = ["pod", *(["owner"] if with_owner else []), "claims", "devices", "when", "fits elsewhere"]
    rows = [_eviction_row(eviction, now, with_owner=with_owner) for eviction in difference.evictions]
    yield _table(title, header, rows, width)


def _eviction_row(eviction: Eviction, now: datetime, *, with_owner: bool) -> list[str]:
    devices = ends([_short(device) for device in eviction.devices])
    owner = [eviction.owner or "–"] if with_owner else []
    return [eviction.pod, *owner, names(eviction.claims, 2), devices, _when(eviction, now), _elsewhere(eviction)]


def _tell_pending(difference: Difference, width: int | None) -> Iterator[str]:
    for title, column in (("Pending claims:", "claim"), ("Pending pods:", "pod")):
        rows = []
        for change in difference.pending:
            if not getattr(change, column):
                continue
            before = "new" if change.fitted_before is None else "fitted" if change.fitted_before else "did not fit"
            after = f"fits on {change.node}" if change.fits else f"does not fit: {shorten(change.message, 200)}"
            rows.append((getattr(change, column), before, after))
        if rows:
            yield _table(title, (column, "before", "after"), rows, width)


def _tell_workloads(difference: Difference, width: int | None) -> Iterator[str]:
    rows = []
    for change in difference.workloads:
        what = "all made anew" if change.replaced else f"{change.pods} → {change.wanted}"
        fits = f"{change.fitting} of {change.tried} new ones" if change.tried else "–"
        rows.append((change.workload, what, fits, shorten(change.why_not, 200) or "–"))
    if rows:
        title = "Pods of workloads, if everything else stays as it is:"
        yield _table(title, ("workload", "pods", "fit", "why not all"), rows, width)


def _tell_quotas(difference: Difference, width: int | None) -> Iterator[str]:
    rows = []
    for change in difference.quotas:
        effect = "nothing more is let in" if change.is_full else "there is room"
        if change.after is None:
            effect = "no limit"
        elif change.unknown:
            effect = "not known: what uses it up is not looked at"
        limits = f"{change.before or 'none'} → {change.after or 'none'}"
        rows.append((change.quota, change.resource, limits, "?" if change.unknown else change.used, effect))
    if rows:
        yield _table("Quotas:", ("quota", "resource", "limit", "used", "effect"), rows, width)


def _tell_unjudged(difference: Difference, width: int | None) -> Iterator[str]:
    if difference.unjudged:
        yield wrap(f"What a change of {names(difference.unjudged, 5)} does was not looked at.", width)


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> str:
    lines = [wrap(title, width), "", *lay_out([header, *rows[:MAX_ROWS]], width)]
    if len(rows) > MAX_ROWS:
        lines.append(f"  … and {len(rows) - MAX_ROWS} more")
    return "\n".join(lines)


def _short(device: str) -> str:
    """A device without its driver."""
    return device.partition("/")[2]


def _when(eviction: Eviction, now: datetime) -> str:
    wait = Time.parse(eviction.expected).datetime() - now
    return f"in {span(wait)}" if wait.total_seconds() >= 1 else "at once"


def _until(finished: str | None, now: datetime) -> str:
    if finished is None:
        return ""
    wait = Time.parse(finished).datetime() - now
    return f" within {span(wait)}" if wait.total_seconds() >= 1 else " at once"


def _elsewhere(eviction: Eviction) -> str:
    if eviction.fits is None:
        return f"not known: {eviction.why_not}" if eviction.why_not else "not tried"
    return f"yes: {eviction.fits_on}" if eviction.fits else "no"

"""The difference of two snapshots in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from dray.api.resource.taint import EFFECT_NO_EXECUTE
from dray.api.times import Time
from dray.prose import wording
from dray.prose.tables import lay_out, wrap
from dray.prose.wording import count, ends, local_name, names, shorten, span, tell_apart
from dray.what_if.device_changes import ADDED, CHANGED, REMOVED, UNUSABLE, USABLE, DeviceChange
from dray.what_if.elsewhere_text import tell_homeless, tell_place, tell_victims
from dray.what_if.evictions import Eviction

if TYPE_CHECKING:
    from dray.what_if.budget_changes import BudgetChange
    from dray.what_if.difference import Difference, RuleForecast
    from dray.what_if.pending_changes import PendingChange
    from dray.what_if.workload_changes import WorkloadChange

MAX_ROWS = 20

_TITLES = {
    # By what happened, and whether nothing but taints stands in the way then.
    (UNUSABLE, True): "unusable for claims without toleration",
    (UNUSABLE, False): "unusable",
    (REMOVED, False): "gone",
    (USABLE, False): "usable again",
    (ADDED, False): "new",
    (CHANGED, False): "changed",
}

_VERDICTS = {True: "fits", False: "does not fit", None: "cannot be judged"}


class Rows(NamedTuple):
    """A table."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def tell(difference: Difference, width: int | None, rest: str) -> str:
    """The whole difference as text; `rest` says where the rows are that a table leaves out."""
    parts = [_lay_out(one, width, rest) if isinstance(one, Rows) else wrap(one, width) for one in sections(difference)]
    return "\n\n".join([wrap(headline(difference), width), *parts])


def headline(difference: Difference) -> str:
    """What is different to begin with."""
    changed = [f"{change.object} {change.change}" for change in difference.objects]
    return f"What if: {names(changed, 5)}." if changed else "What if nothing is different?"


def sections(difference: Difference) -> list[str | Rows]:
    """What comes of it: paragraphs and tables, for whoever shows them."""
    parts: list[str | Rows] = [
        *map(_tell_rule, difference.rules),
        *_tell_nodes(difference),
        *_tell_devices(difference),
        *_tell_claims(difference),
        *_tell_evictions(difference),
        *_tell_deleted(difference),
        *_tell_relabelled(difference),
        *_tell_pending(difference),
        *_tell_workloads(difference),
        *_tell_next_pods(difference),
        *_tell_quotas(difference),
        *_tell_budgets(difference),
        *_tell_groups(difference),
        *_tell_namespaces(difference),
        *_tell_services(difference),
        *_tell_orphaned(difference),
        *_tell_unjudged(difference),
        *(f"Note: {note}." for note in difference.notes),
    ]
    return parts or ["No device, claim or pod would notice."]


def _tell_rule(rule: RuleForecast) -> str:
    selected = f"Rule {rule.rule} selects {count(rule.devices, 'device')}, {rule.allocated} of them allocated."
    pods = f"{count(rule.pods, 'pod')} in {count(rule.namespaces, 'namespace')}"
    if rule.effect == EFFECT_NO_EXECUTE:
        return f"{selected} It evicts {pods}."
    return f"{selected} Its effect is {rule.effect}; with NoExecute it would evict {pods}."


def _tell_nodes(difference: Difference) -> Iterator[str | Rows]:
    rows = [(change.node, names(change.reasons, 4), str(change.pods)) for change in difference.nodes]
    if rows:
        yield Rows(f"{count(len(rows), 'node')} different:", ("node", "what", "pods there"), rows)


def _tell_devices(difference: Difference) -> Iterator[str | Rows]:
    for (kind, is_tolerable), title in _TITLES.items():
        changes = [one for one in difference.devices if (one.change, one.is_tolerable) == (kind, is_tolerable)]
        if not changes:
            continue
        places: dict[str, list[DeviceChange]] = {}
        for change in changes:
            places.setdefault(change.node or change.pool, []).append(change)
        wheres: dict[tuple[str, str], list[str]] = {}
        for where, there in places.items():
            alike: dict[str, list[str]] = {}
            called = tell_apart((change.driver, change.pool, change.device) for change in there)
            for name, change in zip(called, there, strict=True):
                alike.setdefault(_tell_change(change), []).append(name)
            for reason, devices in alike.items():
                wheres.setdefault((ends(devices), reason), []).append(where)
        rows = [(names(where, 2), devices, reason) for (devices, reason), where in wheres.items()]
        why = "what stood in the way" if kind == USABLE else "why"
        yield Rows(f"{count(len(changes), 'device')} {title}:", ("where", "devices", why), rows)


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


def _tell_claims(difference: Difference) -> Iterator[str | Rows]:
    """Claims stay allocated; those whose pods are evicted are told with these."""
    evicted = {claim for eviction in difference.evictions for claim in eviction.claims}
    kept = [change for change in difference.claims if change.gone or change.claim not in evicted]
    rows = [
        (change.claim, device, names(change.reasons, 2), names(change.pods) or "nobody")
        for change, device in zip(kept, _short(change.device for change in kept), strict=True)
    ]
    if rows:
        title = f"{count(len(rows), 'allocated device')} affected; the claims keep what they have:"
        yield Rows(title, ("claim", "device", "why", "used by"), rows)


def _tell_evictions(difference: Difference) -> Iterator[str | Rows]:
    if difference.spared:
        yield f"{count(len(difference.spared), 'pod')} may stay: {names(difference.spared)}."
    if not difference.evictions:
        if difference.protected:
            yield f"No pod has to leave; {difference.protected} protected by tolerations."
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
    yield Rows(title, header, rows)
    yield from (f"Note: {one}." for one in tell_homeless(difference.evictions))


def _eviction_row(eviction: Eviction, now: datetime, *, with_owner: bool) -> list[str]:
    devices = ends(_short(eviction.devices or eviction.held)) or "–"
    owner = [eviction.owner or "–"] if with_owner else []
    return [eviction.pod, *owner, names(eviction.claims, 2) or "–", devices, _when(eviction, now), tell_place(eviction)]


def _tell_pending(difference: Difference) -> Iterator[str | Rows]:
    for title, column in (("Pending claims", "claim"), ("Pending pods", "pod")):
        rows = []
        for change in difference.pending:
            if not getattr(change, column):
                continue
            rows.append((getattr(change, column), _tell_before(change), _tell_chance(change)))
        if rows:
            alone = ", each as if the others did not wait:" if len(rows) > 1 else ":"
            yield Rows(f"{title}{alone}", (column, "before", "after"), rows)


def _tell_before(change: PendingChange) -> str:
    if change.fitted_before is not None:
        return "fitted" if change.fitted_before else "did not fit"
    if change.is_new:
        return "new"
    return "was allocated" if change.was_allocated else "not known"


def _tell_chance(change: PendingChange) -> str:
    if change.fits:
        return f"fits on {change.node}"
    if change.victims:
        return tell_victims(change.victims)
    verdict = "cannot be judged" if change.fits is None else "does not fit"
    return f"{verdict}: {shorten(change.message, 200)}"


def _tell_deleted(difference: Difference) -> Iterator[str | Rows]:
    rows = [(one.pod, one.node or "–", one.owner or "–", one.comes_again) for one in difference.deleted]
    if rows:
        yield Rows(f"{count(len(rows), 'pod')} deleted:", ("pod", "node", "owner", "comes again"), rows)


def _tell_relabelled(difference: Difference) -> Iterator[str | Rows]:
    rows = [
        (
            one.pod,
            names(one.labels, 3),
            "; ".join(one.effects) or "no budget, Service or workload selects by them",
        )
        for one in difference.relabelled
    ]
    if rows:
        yield Rows(f"{count(len(rows), 'pod')} labelled otherwise:", ("pod", "labels", "what comes of it"), rows)


def _tell_workloads(difference: Difference) -> Iterator[str | Rows]:
    rows = []
    for change in difference.workloads:
        fits = f"{change.fitting} of {change.tried} new ones" if change.tried else "–"
        why_not = [shorten(change.why_not, 200)] if change.why_not else []
        told = [*why_not, *([tell_victims(change.victims)] if change.victims else [])]
        rows.append((change.workload, _tell_number(change), fits, "; ".join(told) or "–"))
    if rows:
        title = "Pods of workloads, if everything else stays as it is:"
        yield Rows(title, ("workload", "pods", "fit", "why not all"), rows)


def _tell_number(change: WorkloadChange) -> str:
    what = "all made anew" if change.replaced else f"{change.pods} → {change.wanted}"
    what = f"all but {change.kept} made anew" if change.kept else what
    if change.comes_to:
        what += f", new on {names(change.comes_to, 3)}"
    if change.goes_from:
        what += f", gone from {names(change.goes_from, 3)}"
    return what


def _tell_next_pods(difference: Difference) -> Iterator[str | Rows]:
    rows = []
    for one in difference.next_pods:
        before, after = (_VERDICTS[fits] for fits in (one.fitted_before, one.fits))
        why = f": {shorten(one.why_not, 200)}" if one.why_not else ""
        why += f", and {tell_victims(one.victims)}" if one.victims else ""
        rows.append((one.workload, names(one.names, 3), before, f"{after}{why}"))
    if rows:
        yield Rows(
            "Pods that are there stay as they are. The next one of these workloads, in the place of one that it has:",
            ("workload", "names", "before", "after"),
            rows,
        )


def _tell_quotas(difference: Difference) -> Iterator[str | Rows]:
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
        yield Rows("Quotas:", ("quota", "resource", "limit", "used", "effect"), rows)


def _tell_budgets(difference: Difference) -> Iterator[str | Rows]:
    rows = [
        (change.budget, str(change.pods), _step(change.before, change.after), _tell_budget(change))
        for change in difference.budgets
    ]
    if rows:
        title = "Disruption budgets, counted with the pods that are there:"
        yield Rows(title, ("budget", "pods", "may leave", "what comes of it"), rows)


def _tell_budget(change: BudgetChange) -> str:
    told = []
    if not change.pods:
        told.append("it is about no pod" if change.after is not None else "none of its pods stays")
    elif change.several:
        verb = "is" if len(change.several) == 1 else "are"
        told.append(f"{names(change.several, 3)} {verb} under several budgets, and cannot be evicted at all")
    if change.held:
        where = f"of {names(change.nodes, 3)} " if change.nodes else ""
        verb = "waits" if len(change.nodes) == 1 else "wait"
        noun = "a drain" if len(change.nodes) == 1 else "drains"
        told.append(f"{noun} {where}{verb} for {names(change.held, 3)}")
    if change.let_go:
        told.append(f"{names(change.let_go, 3)} could not be evicted, and can be now")
    if not told:
        gone = change.after is None
        told.append("its pods can be evicted without asking it" if gone else "evictions go on as far as it allows")
    return "; ".join(told)


def _tell_groups(difference: Difference) -> Iterator[str | Rows]:
    rows = []
    for change in difference.groups:
        after = change.after or "gone"
        why = f": {shorten(change.message, 200)}" if change.message else ""
        how = {True: "; who leaves takes all others along", False: "; its pods leave one by one", None: ""}
        counts = f"{change.pods}, {change.needed} needed at once, {change.placed} with a node"
        rows.append((change.group, counts, change.before or "new", f"{after}{why}{how[change.leaves_as_a_whole]}"))
    if rows:
        yield Rows("PodGroups:", ("group", "pods", "before", "after"), rows)


def _tell_namespaces(difference: Difference) -> Iterator[str | Rows]:
    rows = [
        (one.namespace, names(one.labels, 3), "; ".join(one.effects) or "nobody who is there looks at them")
        for one in difference.namespaces
    ]
    if rows:
        title = f"{count(len(rows), 'namespace')} labelled otherwise; what runs stays:"
        yield Rows(title, ("namespace", "labels", "who notices"), rows)


def _tell_services(difference: Difference) -> Iterator[str | Rows]:
    rows = [(one.service, _step(one.before, one.after)) for one in difference.services]
    if rows:
        title = "Services, by which nothing is decided about pods and devices:"
        yield Rows(title, ("service", "ready pods behind it"), rows)


def _tell_orphaned(difference: Difference) -> Iterator[str | Rows]:
    rows = [(one.gone, names(one.referred_by, 6)) for one in difference.orphaned]
    if rows:
        yield Rows("Gone, and still referred to:", ("gone", "by"), rows)


def _step(before: int | None, after: int | None) -> str:
    return f"{'–' if before is None else before} → {'–' if after is None else after}"


def _tell_unjudged(difference: Difference) -> Iterator[str | Rows]:
    if difference.unjudged:
        yield f"What a change of {names(difference.unjudged, 5)} does was not looked at."


def _lay_out(table: Rows, width: int | None, rest: str) -> str:
    lines = lay_out([table.header, *table.rows[:MAX_ROWS]], width)
    more = wording.rest(len(table.rows) - MAX_ROWS, "row", rest)
    return "\n".join([wrap(table.title, width), "", *lines, *more])


def _short(devices: Iterable[str]) -> list[str]:
    """Devices without their drivers, unless these alone tell them apart."""
    return tell_apart((tuple(device.split("/", 2)) for device in devices), least=2)


def _when(eviction: Eviction, now: datetime) -> str:
    wait = Time.parse(eviction.expected).datetime() - now
    return f"in {span(wait)}" if wait.total_seconds() >= 1 else "at once"


def _until(finished: str | None, now: datetime) -> str:
    if finished is None:
        return ""
    wait = Time.parse(finished).datetime() - now
    return f" within {span(wait)}" if wait.total_seconds() >= 1 else " at once"

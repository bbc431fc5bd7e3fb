"""The preview of a taint in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from dray.api.times import Time
from dray.prose import wording
from dray.prose.tables import lay_out, wrap
from dray.prose.wording import count, ends, names, span
from dray.what_if.elsewhere_text import tell_homeless, tell_place
from dray.what_if.evictions import Eviction
from dray.what_if.guard_preview import tell_guard
from dray.what_if.taint_preview import TaintPreview

MAX_ROWS = 20
NOTHING = "–"


def tell(preview: TaintPreview, width: int | None = None, *, is_done: bool = False, rest: str = "") -> str:
    """What is tainted, who leaves, and a table of these; or would be, unless it `is_done`.

    `rest` says where the rows are that a table leaves out.
    """
    lines = [wrap(_tell_target(preview), width), wrap(_tell_pods(preview, is_done=is_done), width)]
    if preview.pods:
        lines += ["", *_table(preview, width, rest)]
    if len(preview.namespaces) > 1:
        lines += ["", *_by_namespace(preview, width, rest)]
    if preview.guard is not None and preview.evicts:
        lines.append(wrap(tell_guard(preview.guard), width))
    notes = (*_tell_unowned(preview), *tell_homeless(preview.pods), *preview.notes)
    lines += [wrap(f"Note: {note}.", width) for note in notes]
    return "\n".join(lines)


def _tell_target(preview: TaintPreview) -> str:
    taints = ", ".join(preview.taints)
    if preview.nodes:
        one, *others = preview.nodes
        return (
            f"{len(preview.nodes)} nodes get {taints}: {ends(preview.nodes)}."
            if others
            else f"Node {one} gets {taints}."
        )
    rules = f"Rule {preview.rules[0]} selects" if len(preview.rules) == 1 else f"{len(preview.rules)} rules select"
    return f"{rules} {count(len(preview.devices), 'device')}: {tell_devices(preview.devices)}; {preview.held} held."


def tell_devices(devices: tuple[str, ...]) -> str:
    """`node-3/gpu-5 (gpu.example.com)`, `node-3/gpu-0 … gpu-7 (gpu.example.com)`, or by pool."""
    pools: dict[tuple[str, str], list[str]] = {}
    for device in devices:
        driver, pool, name = device.split("/", 2)
        pools.setdefault((driver, pool), []).append(name)
    return names([f"{pool}/{ends(found)} ({driver})" for (driver, pool), found in pools.items()], 4) or "none"


def _tell_pods(preview: TaintPreview, *, is_done: bool) -> str:
    pods = f"{count(len(preview.pods), 'pod')} in {count(len(preview.namespaces), 'namespace')}"
    protected = f"{len(preview.protected)} protected by tolerations"
    if preview.evicts:
        return f"{'Evicts' if is_done else 'Would evict'} {pods}{_until(preview)}; {protected}."
    effects = " and ".join(dict.fromkeys(taint.rpartition(":")[2] for taint in preview.taints))
    return f"Evicts nobody: the effect is {effects}. With NoExecute it would evict {pods}; {protected}."


def _tell_unowned(preview: TaintPreview) -> Iterator[str]:
    """Where it fits elsewhere is no comfort for a pod that nobody makes again."""
    unowned = [pod.pod for pod in preview.pods if not pod.owner]
    if unowned and preview.evicts:
        verb, whose = ("has", "its") if len(unowned) == 1 else ("have", "their")
        yield f"{names(unowned, 5)} {verb} no controller: nobody makes another in {whose} place"


def _until(preview: TaintPreview) -> str:
    if preview.finished is None:
        return ""
    wait = Time.parse(preview.finished).datetime() - _now(preview)
    if wait.total_seconds() < 1:
        return ""
    return f" in {span(wait)} or later" if preview.may_wait else f" within {span(wait)}"


def _table(preview: TaintPreview, width: int | None, rest: str) -> Iterator[str]:
    now = _now(preview)
    timed = any(Time.parse(pod.expected).datetime() > now for pod in preview.pods)
    header = [
        "pod",
        "owner",
        "priority",
        "disruption budget",
        *(["leaves, earliest" if preview.may_wait else "leaves"] if timed else []),
        "fits elsewhere",
    ]
    rows = [_row(pod, now, timed=timed) for pod in preview.pods[:MAX_ROWS]]
    yield from lay_out([header, *rows], width)
    yield from wording.rest(len(preview.pods) - MAX_ROWS, "pod", rest)


def _row(pod: Eviction, now: datetime, *, timed: bool) -> list[str]:
    wait = Time.parse(pod.expected).datetime() - now
    leaves = f"in {span(wait)}" if wait.total_seconds() >= 1 else "at once"
    budget = NOTHING if pod.budget is None else f"{pod.budget.granted} of {pod.budget.needed} allowed"
    budget += f", {len(pod.more_budgets) + 1} budgets" if pod.more_budgets else ""
    priority = NOTHING if pod.priority is None else str(pod.priority)
    return [pod.pod, pod.owner or NOTHING, priority, budget, *([leaves] if timed else []), tell_place(pod)]


def _by_namespace(preview: TaintPreview, width: int | None, rest: str) -> list[str]:
    fitting: dict[str, int] = {}
    unknown: dict[str, int] = {}
    owners: dict[str, set[str]] = {}
    for pod in preview.pods:
        namespace = pod.pod.partition("/")[0]
        fitting[namespace] = fitting.get(namespace, 0) + bool(pod.fits)
        unknown[namespace] = unknown.get(namespace, 0) + (pod.fits is None)
        owners.setdefault(namespace, set()).add(pod.owner)
    header = ["namespace", "pods", "fit elsewhere", "owners"]
    rows = [
        [name, str(pods), _fitting(fitting[name], unknown[name]), names(sorted(filter(None, owners[name]))) or NOTHING]
        for name, pods in preview.namespaces.items()
    ]
    return [*lay_out([header, *rows[:MAX_ROWS]], width), *wording.rest(len(rows) - MAX_ROWS, "namespace", rest)]


def _fitting(number: int, unknown: int) -> str:
    return f"{number}, of {unknown} not known" if unknown else str(number)


def _now(preview: TaintPreview) -> datetime:
    return Time.parse(preview.now).datetime()

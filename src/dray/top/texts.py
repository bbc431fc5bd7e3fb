"""Texts to read: the keys, a device in full. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dray.prose.tables import lay_out, wrap
from dray.prose.wording import count
from dray.views.device import DevicePage
from dray.views.service import NodeRow, RuleRow
from dray.views.timeline import TimelineEntry

HELP: Final = """\
1 2 3 4, Tab    fleet, devices, pending pods, evictions
arrows, j k     move; PgUp PgDn Home End (g G) move further
Enter, e        a node's devices, a device in full, why a pod waits
/               filter: devices by CEL, as in claims; pods and rules by words
s, r            sort by something else; turn the order around
Space           mark devices or nodes
d               take what is marked, or at the cursor, out of service:
                shows who is hit first, and asks
c x u           of a rule: confirm what the guard holds, stop it, put back;
                c and x of a node that pods have to leave, too
Esc             back: marks, node, filter, one after the other
Ctrl-L          draw everything again
q, Ctrl-C       end

On the map: . free  # held  T tainted  x blocked  L leaving (a pod that uses
it is being deleted)  + more devices than fit

Taking out of service writes rules with the effect NoExecute: controllers
make the pods leave, within the guard's limit. `dray drain device` keeps
disruption budgets, too, and goes on for as long as that takes."""


def tell_rule(rule: RuleRow, width: int) -> str:
    """A rule in full."""
    lines = [f"{rule.taint} on {count(rule.devices, 'device')}"]
    lines += [f"since {rule.since}"] if rule.since else []
    lines += [f"until {rule.until}"] if rule.until else []
    lines += [f"at most {rule.rate} pods a second"] if rule.rate is not None else []
    lines += ["", wrap(f"Held: {rule.held}", width)] if rule.held else []
    return "\n".join([*lines, "", wrap(rule.progress or "Nothing was said of its progress yet.", width)])


def tell_node(node: NodeRow, width: int) -> str:
    """A node that pods have to leave, in full."""
    lines = [*node.taints, f"{count(node.pods, 'pod')} to leave"]
    told = f"Held: {node.held}" if node.held else node.progress
    return "\n".join([*lines, *(["", wrap(told, width)] if told else [])])


def tell_device(page: DevicePage, history: list[TimelineEntry], width: int) -> str:
    """A device in full."""
    return "\n".join(_device(page, history, width))


def _device(page: DevicePage, history: list[TimelineEntry], width: int) -> Iterator[str]:
    yield f"{page.id}: {', '.join(page.state)}"
    yield f"on {page.node or 'several nodes'}, slice {page.slice}"
    if page.blocked_by:
        yield wrap(f"Blocked: {page.blocked_by}.", width)
    yield ""
    yield "Held by" if page.holders else "Nobody holds it."
    for one in page.holders:
        users = f", used by {', '.join(one.pods)}" if one.pods else ""
        yield wrap(f"  {one.claim}{users}", width)
        yield from (f"    Health: {text}" for text in one.health)
        yield from (f"    {text}" for text in one.conditions)
    for taint in page.taints:
        yield f"Taint {taint.taint}, {f'by rule {taint.rule}' if taint.rule else 'published by its driver'}"
        if taint.progress:
            yield wrap(f"  {taint.progress}", width)
    for counter in page.counters:
        yield f"Draws {counter.draws} of {counter.of} from {counter.counter_set}/{counter.counter}"
    for part in page.partitions.tree:
        yield f"{'  ' * part.depth}{'>' if part.is_own else ' '} {part.name}: {part.state}"
    if page.partitions.more:
        yield f"  and {count(page.partitions.more, 'more device')} that share its counters"
    yield ""
    rows = [["name", "published", "in effect", "patched by"]]
    rows += [[one.name, one.published or "–", one.effective or "removed", one.patch or ""] for one in page.values]
    yield from lay_out(rows, width)
    yield ""
    yield "The last hour" if history else "Nothing happened to it in the last hour."
    if history:
        rows = [["time", "kind", "of", "what"]]
        yield from lay_out([*rows, *([one.time, one.kind, one.subject, one.text] for one in history)], width)

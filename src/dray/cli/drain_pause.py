"""Pausing and resuming drains: an annotation on the rule or the node, which whoever drains looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dray.cli import live, output, targets
from dray.cli.running_cluster import RunningCluster
from dray.eviction.drain import PAUSED_ANNOTATION, is_paused
from dray.maintenance.confirmation import evicts, has_drain

if TYPE_CHECKING:
    from dray.cli.targets import Found
    from dray.client.http import HttpClient

HINT: Final = "is no drain. Write node/NODE, or rule/RULE with the name that dray drain device told."


def set_paused(words: Sequence[str], cluster: RunningCluster, format_: output.Format, *, is_so: bool) -> None:
    """Lets the drains of `node/NAME` and `rule/NAME` stand still, or go on. Ends with exit code 2 if one cannot."""

    async def work(client: HttpClient) -> None:
        found = await targets.find(client, words, HINT, ("node", "rule"))
        for target in found if is_so else ():
            _check(target)
        items = []
        for target in found:
            changed, told = await _set(client, target, is_so=is_so)
            items.append({"target": target.text, "paused": is_so, "changed": changed, "told": told})
            if format_ is output.Format.TEXT:
                print(told, flush=True)
        if format_ is output.Format.JSON:
            output.print_json(items, "DrainPauseList")

    live.call(work, "drain", cluster)


def _check(target: Found) -> None:
    """Nobody would look at a pause of what is not drained, and pods would leave, now or at the next drain."""
    if has_drain(target.obj):
        return
    told = f"{target.text} is not drained, so nothing is paused"
    if evicts(target.obj):
        output.fail(
            f"{told}: controllers have pods leave for its NoExecute taint. Stop them: dray cancel {target.text}"
        )
    word, _, name = target.text.partition("/")
    begin = f"node {name}" if word == "node" else "device, with what selects its devices"
    output.fail(f"{told}. Begin with: dray drain {begin}")


async def _set(client: HttpClient, target: Found, *, is_so: bool) -> tuple[bool, str]:
    """Whether it was otherwise before, and what to say."""
    meta = target.obj.metadata
    changed = is_paused(meta.annotations) != is_so
    if changed:
        patch = {"uid": meta.uid, "annotations": {PAUSED_ANNOTATION: "true" if is_so else None}}
        await client.patch(target.kind, "", meta.name, {"metadata": patch})
    elif not is_so:
        return changed, f"Drains of {target.text} were not paused."
    if is_so:
        return changed, f"Drains of {target.text} stand still; go on with: dray drain resume {target.text}"
    return changed, f"Drains of {target.text} go on."

"""Pausing and resuming a drain: an annotation on the rule or the node, which whoever drains looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dray.api.generated.core import Node
from dray.api.kinds import NODES, RULES
from dray.cli import live, output
from dray.cli.running_cluster import RunningCluster
from dray.eviction.drain import PAUSED_ANNOTATION, is_drained, is_paused

if TYPE_CHECKING:
    from dray.client.http import HttpClient

KINDS = {"node": NODES, "nodes": NODES, "no": NODES, "rule": RULES, "devicetaintrule": RULES, "devicetaintrules": RULES}


def set_paused(target: str, cluster: RunningCluster, *, is_so: bool) -> None:
    """Lets the drain of `node/NAME` or `rule/NAME` stand still, or go on. Ends with exit code 2."""
    word, _, name = target.partition("/")
    kind = KINDS.get(word.lower())
    if kind is None or not name:
        output.fail(f"{target!r} is no drain. Write node/NODE, or rule/RULE with the name that dray drain device told.")

    async def work(client: HttpClient) -> bool:
        found = await client.get(kind, "", name)
        if is_so and isinstance(found, Node) and not is_drained(found):
            output.fail(f"node {name} is not drained, so nothing is paused. Begin with: dray drain node {name}")
        if is_paused(found.metadata.annotations) == is_so:
            return False
        said = "true" if is_so else None
        await client.patch(kind, "", name, {"metadata": {"annotations": {PAUSED_ANNOTATION: said}}})
        return True

    is_new = live.call(work, "drain", cluster)
    if is_so:
        print(f"Drains of {target} stand still; go on with: dray drain resume {target}")
    else:
        print(f"Drains of {target} go on." if is_new else f"Drains of {target} were not paused.")

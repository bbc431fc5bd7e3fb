"""`dray stop-evictions`: nobody leaves any more, at once and everywhere, until it is taken back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dray.api.well_known import OWN_SERVER
from dray.cli import live, output
from dray.cli.running_cluster import RunningCluster
from dray.cli.taint_options import Format

if TYPE_CHECKING:
    from dray.client.http import HttpClient

SOFT: Final = "rules that were made NoSchedule stay that; `dray taint` makes them NoExecute again"


def run(
    resume: Annotated[bool, typer.Option("--resume", help="Let evictions go on.")] = False,
    format_: Format = output.Format.TEXT,
    *,
    cluster: RunningCluster,
) -> None:
    """Stop all evictions of a cluster at once: those of rules, of drivers' taints, of node taints, and drains.

    Taints stay, and keep new work away. One annotation of the namespace kube-system says it, and dray's controllers and
    drains obey; on a cluster with other eviction controllers, NoExecute rules are changed to NoSchedule as well, and
    what goes on evicting is said. Pods that are being deleted already are gone. Exit code 0: done; 2: cannot.
    """
    live.call(lambda client: _set(client, format_, is_so=not resume), "stop-evictions", cluster)


async def _set(client: HttpClient, format_: output.Format = output.Format.TEXT, *, is_so: bool) -> None:
    from dray.api.generated.core import Namespace
    from dray.api.kinds import NAMESPACES
    from dray.api.status import ApiError
    from dray.eviction.stop import OTHERS_GO_ON, PLACE, STOP_ANNOTATION, is_stopped

    try:
        place = await client.get(NAMESPACES, "", PLACE)
        was = isinstance(place, Namespace) and is_stopped(place)
    except ApiError:  # who may only write does not have to know
        was = not is_so
    patch = {"metadata": {"annotations": {STOP_ANNOTATION: "true" if is_so else None}}}
    await client.patch(NAMESPACES, "", PLACE, patch)
    others = OWN_SERVER not in await client.server_version()
    softened = await _soften_rules(client) if is_so and others else []
    if format_ is output.Format.JSON:
        output.print_json({"stopped": is_so, "othersGoOn": others, "softenedRules": softened}, "EvictionStop")
    elif is_so:
        whose = "Evictions by dray" if others else "All evictions"
        print(f"{whose} are stopped. Let them go on with: dray stop-evictions --resume")
    else:
        print("Evictions go on." if was else "Evictions were not stopped.")
    if others:
        print(f"dray: {OTHERS_GO_ON if is_so else SOFT}.", file=sys.stderr)


async def _soften_rules(client: HttpClient) -> list[str]:
    """Kubernetes' own controller does not know the switch: it stops when rules do not evict any more. Their names."""
    from dray.api.kinds import RULES
    from dray.api.resource import DeviceTaintRule
    from dray.api.resource.taint import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE
    from dray.client.calls import list_if_served

    softened = []
    for rule in await list_if_served(client, RULES) or ():
        if isinstance(rule, DeviceTaintRule) and rule.spec.taint.effect == EFFECT_NO_EXECUTE:
            name = rule.metadata.name
            await client.patch(RULES, "", name, {"spec": {"taint": {"effect": EFFECT_NO_SCHEDULE}}})
            print(f"dray: rule {name} is NoSchedule now; it was NoExecute.", file=sys.stderr)
            softened.append(name)
    return softened

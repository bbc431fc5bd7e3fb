"""`dray stop-evictions`: nobody leaves any more, at once and everywhere, until it is taken back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from dray.cli import component, live

if TYPE_CHECKING:
    from dray.client.http import HttpClient


def run(
    resume: Annotated[bool, typer.Option("--resume", help="Let evictions go on.")] = False,
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
) -> None:
    """Stop all evictions of a cluster at once: those of rules, of drivers' taints, of node taints, and drains.

    Taints stay, and keep new work away. One annotation of the namespace kube-system says it, and dray's controllers and
    drains obey; on a cluster with other eviction controllers, NoExecute rules are changed to NoSchedule as well. Pods
    that are being deleted already are gone. Exit code 0: done; 2: cannot.
    """
    is_new = live.call(
        lambda client: _set(client, is_so=not resume), "stop-evictions", kubeconfig=kubeconfig, context=context
    )
    if not resume:
        print("All evictions are stopped. Let them go on with: dray stop-evictions --resume")
    else:
        print("Evictions go on." if is_new else "Evictions were not stopped.")


async def _set(client: HttpClient, *, is_so: bool) -> bool:
    """Whether that is new."""
    from dray.api.generated.core import Namespace
    from dray.api.kinds import NAMESPACES
    from dray.api.status import ApiError
    from dray.eviction.stop import PLACE, STOP_ANNOTATION, is_stopped

    try:
        place = await client.get(NAMESPACES, "", PLACE)
        was = isinstance(place, Namespace) and is_stopped(place)
    except ApiError:  # who may only write does not have to know
        was = not is_so
    patch = {"metadata": {"annotations": {STOP_ANNOTATION: "true" if is_so else None}}}
    await client.patch(NAMESPACES, "", PLACE, patch)
    if is_so and "+dray" not in await client.server_version():
        await _soften_rules(client)
    return was != is_so


async def _soften_rules(client: HttpClient) -> None:
    """Kubernetes' own controller does not know the switch: it stops when rules do not evict any more."""
    from dray.api.kinds import RULES
    from dray.api.resource import DeviceTaintRule
    from dray.api.resource.taint import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE
    from dray.client.calls import list_if_served

    for rule in await list_if_served(client, RULES) or ():
        if isinstance(rule, DeviceTaintRule) and rule.spec.taint.effect == EFFECT_NO_EXECUTE:
            name = rule.metadata.name
            await client.patch(RULES, "", name, {"spec": {"taint": {"effect": EFFECT_NO_SCHEDULE}}})
            print(f"dray: rule {name} is NoSchedule now; it was NoExecute.", file=sys.stderr)
    print("dray: node taints with NoExecute, and those of drivers, go on evicting on this cluster.", file=sys.stderr)

"""`dray controllers`: the controllers alone, against dray's API server or any other."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from dray.cli import component, output

LEASE = "kube-controller-manager"

Controllers: TypeAlias = Annotated[
    str,
    typer.Option("--controllers", metavar="LIST", help="What to run: names, * for all, -name for all but that one."),
]


def read_list(text: str) -> tuple[str, ...]:
    """The words of a `--controllers` list. Ends with exit code 2 for a name that no controller has."""
    from dray.controllers import SelectionError, select
    from dray.controllers.catalog import CATALOG

    words = tuple(word.strip() for word in text.split(",") if word.strip())
    try:
        select(words, tuple(CATALOG))
    except SelectionError as error:
        output.fail(f"--controllers: {error}")
    return words


def run(
    kubeconfig: component.Kubeconfig = None,
    context: component.Context = "",
    controllers: Controllers = "*",
    leader_elect: component.LeaderElect = True,
    lease: Annotated[
        str, typer.Option("--lease", help="The lease (in kube-system) that replicas compete for.")
    ] = LEASE,
) -> None:
    """Run controllers: claims from templates, evictions, garbage collection and the rest of --controllers."""
    from dray.client import Client
    from dray.controllers import Manager
    from dray.reconcile import Clock

    wanted = read_list(controllers)

    async def work(client: Client, clock: Clock) -> None:
        await Manager(client, clock, wanted=wanted).run()

    connection = component.connect(kubeconfig, context)
    component.run(component.Component("controllers", work, lease if leader_elect else ""), connection)

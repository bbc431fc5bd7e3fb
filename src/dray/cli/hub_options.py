"""Options of `dray up` for joining a hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from dray.cli import output
from dray.files import home

if TYPE_CHECKING:
    from dray.hub_agent import Membership

Cluster: TypeAlias = Annotated[
    str, typer.Option("--cluster", metavar="NAME", help="Join the hub of --hub under this name.")
]
Hub: TypeAlias = Annotated[
    Path | None,
    typer.Option("--hub", metavar="KUBECONFIG", help="The hub to join: its placements can choose this cluster."),
]
HubLease: TypeAlias = Annotated[
    int,
    typer.Option("--hub-lease", metavar="SECONDS", help="How often to renew the lease on a hub that is new.", min=1),
]
DEFAULT_LEASE = 60


def membership(cluster: str, hub: Path | None, lease_seconds: int) -> Membership | None:
    """The hub to join, if any. Ends with exit code 2 if only half of it is given, or if it cannot be used."""
    if not cluster and hub is None:
        return None
    if not cluster or hub is None:
        output.fail("--cluster NAME and --hub KUBECONFIG go together: under which name to join which hub.")
    from dray.api.names import validate_dns1123_label
    from dray.client.kubeconfig import KubeconfigError, load_kubeconfig
    from dray.hub_agent import Membership

    problems = validate_dns1123_label(cluster)
    if problems:
        output.fail(f"--cluster {cluster}: {problems[0]}.")
    try:
        connection = load_kubeconfig([home.expand(hub)])
    except KubeconfigError as error:
        output.fail(f"--hub: {error}")
    return Membership(cluster, connection, lease_seconds)

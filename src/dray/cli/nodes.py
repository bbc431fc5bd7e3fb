"""`dray nodes`: simulated nodes lose power and come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dray.api.kinds import NODES
from dray.cli import completion, live, output
from dray.cli.names import node_name
from dray.cli.running_cluster import RunningCluster
from dray.cli.taint_options import Format

if TYPE_CHECKING:
    from dray.client import Client

app = typer.Typer(help="Stop and start simulated nodes.", no_args_is_help=True, rich_markup_mode=None)

Names = Annotated[list[str], typer.Argument(metavar="NODE", help="Simulated nodes.", autocompletion=completion.nodes)]


@app.command("stop")
def stop(names: Names, format_: Format = output.Format.TEXT, *, cluster: RunningCluster) -> None:
    """Switch simulated nodes off, as if they had lost power: no heartbeats, no status.

    What follows (not ready, unreachable, evictions) is the controllers' doing, and takes as long as with real nodes.
    """
    _switch(names, cluster, format_, stopped=True)


@app.command("start")
def start(names: Names, format_: Format = output.Format.TEXT, *, cluster: RunningCluster) -> None:
    """Switch simulated nodes on again."""
    _switch(names, cluster, format_, stopped=False)


def _switch(names: list[str], cluster: RunningCluster, format_: output.Format, *, stopped: bool) -> None:
    wanted = list(dict.fromkeys(map(node_name, names)))
    state = "stopped" if stopped else "running"

    async def work(client: Client) -> list[str]:
        await _check(client, wanted)
        return [name for name in wanted if await _set(client, name, stopped=stopped)]

    changed = live.call(work, "nodes", cluster)
    if format_ is output.Format.JSON:
        output.print_json(
            [{"node": one, "state": state, "changed": one in changed} for one in wanted], "SwitchedNodeList"
        )
        return
    for name in wanted:
        print(f"{name} {'is' if name in changed else 'was already'} {state}.")


async def _check(client: Client, names: list[str]) -> None:
    """Ends with exit code 2, before anything was changed, if a node is not there or not simulated."""
    from dray.api.generated.core import Node
    from dray.api.nodes import is_simulated
    from dray.cli import targets

    for name in names:
        node = await targets.get(client, "node", name)
        assert isinstance(node, Node)
        if not is_simulated(node):
            output.fail(f"node {name} is not simulated, so it cannot be switched from here.")


async def _set(client: Client, name: str, *, stopped: bool) -> bool:
    """Whether the node was in the other state."""
    from dray.client import PatchFormat
    from dray.simulation import names as marks

    kind = NODES
    before = (await client.get(kind, "", name)).metadata.annotations.get(marks.STATE) == marks.STOPPED
    if before == stopped:
        return False
    patch = {"metadata": {"annotations": {marks.STATE: marks.STOPPED if stopped else None}}}
    await client.patch(kind, "", name, patch, format=PatchFormat.MERGE)
    return True

"""A taint eviction controller of one's own, instead of the default one: no pod needs a toleration for it (3902-22).

    dray up --controllers='*,-taint-eviction-controller'
    python custom_controller.py --kubeconfig ~/.local/share/dray/default/kubeconfig

Pods on a node with a NoExecute taint leave one at a time, the least important first.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from dray.api.generated.core import Node, Pod
from dray.api.meta import DeleteOptions, Preconditions
from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.client import Client
from dray.client.http import HttpClient
from dray.client.kubeconfig import find_connection

NODES, PODS = by_kind("v1", "Node"), by_kind("v1", "Pod")
PAUSE = 1.0


def choose(nodes: list[Node], pods: list[Pod]) -> Pod | None:
    """The pod to delete next: none while one is leaving."""
    tainted = {node.metadata.name for node in nodes if any(taint.effect == "NoExecute" for taint in node.spec.taints)}
    there = [pod for pod in pods if pod.spec.node_name in tainted]
    if any(pod.metadata.deletion_timestamp for pod in there):
        return None
    running = [pod for pod in there if pod.status.phase not in ("Succeeded", "Failed")]
    return min(running, key=lambda pod: (pod.spec.priority or 0, pod.metadata.name), default=None)


async def run(client: Client, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    """Looks again and again, until cancelled."""
    while True:
        nodes = [node for node in (await client.list(NODES)).items if isinstance(node, Node)]
        pods = [pod for pod in (await client.list(PODS)).items if isinstance(pod, Pod)]
        chosen = choose(nodes, pods)
        if chosen is not None:
            meta = chosen.metadata
            try:
                options = DeleteOptions(preconditions=Preconditions(uid=meta.uid))
                await client.delete(PODS, meta.namespace, meta.name, options)
            except ApiError as error:
                print(f"{meta.namespace}/{meta.name}: {error}")
        await sleep(PAUSE)


async def main() -> None:
    """Runs against a cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path)
    async with HttpClient(find_connection(parser.parse_args().kubeconfig, "")) as client:
        await run(client)


if __name__ == "__main__":
    asyncio.run(main())

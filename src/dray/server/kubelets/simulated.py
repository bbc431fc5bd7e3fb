"""Pods that only pretend to run: what is there to tell instead of logs, and why nothing can be run in them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from dray.api.generated.core import Pod
from dray.process.health import TEXT
from dray.process.http import Stream
from dray.server import errors


def log(pod: Pod, container: str) -> Stream:
    """What is there instead of a log."""
    lines = (
        f"(simulated) {pod.metadata.namespace}/{pod.metadata.name} runs on the simulated node {pod.spec.node_name}:\n"
        f"(simulated) container {container} was never started, so it has written nothing. `dray node` runs real ones.\n"
    )

    async def chunks() -> AsyncIterator[bytes]:
        yield lines.encode()

    return Stream(chunks(), TEXT)


def refused(pod: Pod, what: str) -> errors.ApiError:
    """Why there is nothing to talk to."""
    return errors.bad_request(
        f"{what} is not possible: pod {pod.metadata.name} runs on the simulated node {pod.spec.node_name}, where "
        "nothing really runs. Use `dray node` for real containers."
    )

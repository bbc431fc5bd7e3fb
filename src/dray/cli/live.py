"""A running cluster as input: the way in, a snapshot of what is there, and one way to fail."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from dray.cli import component, output

if TYPE_CHECKING:
    from dray.client import Client
    from dray.client.http import HttpClient
    from dray.snapshot import Snapshot

T = TypeVar("T")

NEEDED: Final = (
    ("v1", "Node"),
    ("v1", "Pod"),
    ("resource.k8s.io/v1", "DeviceClass"),
    ("resource.k8s.io/v1", "ResourceSlice"),
    ("resource.k8s.io/v1", "ResourceClaim"),
)
"""What a snapshot is made of; who may not read it gets no answer."""

OPTIONAL: Final = (
    ("resource.k8s.io/v1", "DeviceTaintRule"),
    ("resource.k8s.io/v1alpha3", "ResourceSlicePatch"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"),
    ("policy/v1", "PodDisruptionBudget"),
)
"""What some servers do not serve: then there is none of it."""

GARBAGE_AT: Final = 50_000
"""So many new objects before Python looks for cycles: what is loaded has none, and looking takes as long as loading."""


def call(
    work: Callable[[HttpClient], Awaitable[T]], command: str, *, kubeconfig: Path | None = None, context: str = ""
) -> T:
    """What `work` finds through a client of the cluster. Ends with exit code 2 if there is no way there or back.

    The server's warnings are said on standard error.
    """
    import uvloop

    connection = component.connect(kubeconfig, context)

    async def connected() -> T:
        from dray.api.status import ApiError
        from dray.client.http import HttpClient
        from dray.client.kubeconfig import KubeconfigError

        try:
            client = HttpClient(connection, agent=f"dray {command}", warn=_warn)
        except KubeconfigError as error:
            output.fail(str(error))
        async with client:
            try:
                return await work(client)
            except ApiError as error:
                output.fail(f"{connection.server}: {error}")
            except TimeoutError as error:
                output.fail(f"{connection.server} does not answer{f': {error}' if str(error) else ''}.")
            except OSError as error:
                output.fail(f"cannot reach the cluster: {error}")

    return uvloop.run(connected())


async def load_snapshot(client: Client) -> Snapshot:
    """The cluster as it is now, for everything that a snapshot answers. Raises ApiError or OSError."""
    import gc

    from dray.api.registry import by_kind
    from dray.api.status import ApiError
    from dray.snapshot import from_objects

    gc.set_threshold(GARBAGE_AT)
    listed = [await client.list(by_kind(*kind)) for kind in NEEDED]
    for kind in OPTIONAL:
        try:
            listed.append(await client.list(by_kind(*kind)))
        except ApiError as error:
            if error.code != 404:
                raise
    gc.freeze()  # all of it stays to the end, and looking through it again and again takes as long as the answer
    return from_objects(obj for listing in listed for obj in listing.items)


def _warn(text: str) -> None:
    print(f"dray: the server warns: {text}", file=sys.stderr)

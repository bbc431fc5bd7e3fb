"""A running cluster as input: the way in, a snapshot of what is there, and one way to fail."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND
from dray.api.well_known import OWN_SERVER
from dray.cli import inputs, output
from dray.cli.running_cluster import RunningCluster

if TYPE_CHECKING:
    from dray.api.registry import Kind
    from dray.api.status import ApiError
    from dray.client.http import HttpClient
    from dray.client.kubeconfig import Connection
    from dray.snapshot import Snapshot

T = TypeVar("T")

READER_HINT: Final = "The ClusterRole dray-reader (dray install) may."

GARBAGE_AT: Final = 50_000
"""So many new objects before Python looks for cycles: what is loaded has none, and looking takes as long as loading."""


class Source(RunningCluster, frozen=True):
    """A cluster in files, else the running one."""

    files: inputs.Files = None

    @property
    def given(self) -> list[str]:
        """What is named: files, directories, or standard input."""
        return list(self.files or ())

    def read(self, command: str, load: Callable[[HttpClient], Awaitable[Snapshot]] | None = None) -> Snapshot:
        """What is there. Ends with exit code 2 if it cannot be read, or both are given."""
        self.check_alone(self.given)
        return inputs.load(self.given) if self.given else call(load or load_snapshot, command, self)


class NamedSource(Source, frozen=True):
    """The same for commands that take files without -f, too."""

    sources: inputs.Sources = None

    @property
    def given(self) -> list[str]:
        """What is named, in either way."""
        return [*(self.sources or ()), *(self.files or ())]


def call(work: Callable[[HttpClient], Awaitable[T]], command: str, cluster: RunningCluster) -> T:
    """What `work` finds through a client of the cluster. Ends with exit code 2 if there is no way there or back.

    The server's warnings are said on standard error.
    """
    import uvloop

    connection = cluster.connect()

    async def connected() -> T:
        async with client_of(connection, command, warn=_warner()) as client:
            with failing(connection):
                return await work(client)

    return uvloop.run(connected())


def client_of(connection: Connection, command: str, *, warn: Callable[[str], None] | None = None) -> HttpClient:
    """The client of a command. Ends with exit code 2 if what the kubeconfig says cannot be used."""
    from dray.client.http import HttpClient
    from dray.client.kubeconfig import KubeconfigError

    try:
        return HttpClient(connection, agent=f"dray {command}", warn=warn)
    except KubeconfigError as error:
        output.fail(str(error))


@contextmanager
def failing(connection: Connection) -> Iterator[None]:
    """Ends with exit code 2, and says why, if the cluster cannot be reached, does not answer, or refuses."""
    from dray.api.status import ApiError

    try:
        yield
    except ApiError as error:
        output.fail(f"{connection.server}: {error}")
    except TimeoutError as error:
        output.fail(f"{connection.server} does not answer{f': {error}' if str(error) else ''}.")
    except OSError as error:
        output.fail(f"cannot reach the cluster: {error}")


async def load_snapshot(client: HttpClient) -> Snapshot:
    """The cluster as it is now, for everything that a snapshot answers. Raises ApiError or OSError.

    Says on standard error which kinds are left out because we may not read them, and which only dray goes by.
    """
    return await _load(client, ())


async def load_snapshot_with_workloads(client: HttpClient, left_out: list[Kind] | None = None) -> Snapshot:
    """The same with what makes pods and what finds them, for those who change it. Raises ApiError or OSError.

    Kinds that we may not read are added to `left_out`.
    """
    from dray.api import kinds

    workloads = (kinds.DEPLOYMENTS, kinds.REPLICA_SETS, kinds.STATEFUL_SETS, kinds.JOBS)
    makers = (*workloads, kinds.DAEMON_SETS, kinds.CRON_JOBS)
    return await _load(client, (*makers, kinds.SERVICES, *kinds.ADMISSION_KINDS), left_out)


async def _load(client: HttpClient, more: tuple[Kind, ...], left_out: list[Kind] | None = None) -> Snapshot:
    import gc
    from itertools import chain

    from dray.api import kinds
    from dray.api.status import ApiError
    from dray.client.calls import list_if_allowed
    from dray.snapshot import from_objects

    gc.set_threshold(GARBAGE_AT)
    needed = (kinds.NODES, kinds.PODS, kinds.CLASSES, kinds.SLICES, kinds.CLAIMS)
    volumes = (kinds.VOLUMES, kinds.VOLUME_CLAIMS, kinds.STORAGE_CLASSES)
    # What is not served, there is none of.
    others = (
        *(kinds.RULES, kinds.PATCHES, kinds.TEMPLATES, kinds.BUDGETS),
        *(kinds.NAMESPACES, kinds.POD_GROUPS, kinds.PRIORITY_CLASSES, kinds.QUOTAS),
    )
    optional = (*others, *volumes, *more)
    try:
        found = [(await client.list(kind)).items for kind in needed]
    except ApiError as error:
        raise ApiError(error.code, error.reason, tell_forbidden(error)) from None
    left_out = [] if left_out is None else left_out
    there = {kind: await list_if_allowed(client, kind, left_out) or () for kind in optional}
    if there[kinds.VOLUME_CLAIMS]:
        there |= {kind: await list_if_allowed(client, kind, left_out) or () for kind in kinds.STORAGE_LIMITS}
    found += there.values()
    note_left_out(left_out)
    await _note_unseen(client, [kind for kind in (kinds.RULES, kinds.PATCHES) if there[kind]])
    gc.freeze()  # all of it stays to the end, and looking through it again and again takes as long as the answer
    knows_volumes = not set(left_out) & set(volumes)
    return from_objects(chain.from_iterable(found), has_all_nodes=True, has_all_volumes=knows_volumes)


def tell_forbidden(error: ApiError) -> str:
    """What a server answered to somebody who reads; if they may not, with the role that may."""
    return f"{error}. {READER_HINT}" if error.code == 403 else str(error)


def note_left_out(kinds: Sequence[Kind]) -> None:
    """Says what an answer does without, because its kinds may not be read, and which role reads them all."""
    if kinds:
        names = ", ".join(kind.resource for kind in kinds)
        print(f"dray: left out, because you may not list them: {names}. {READER_HINT}", file=sys.stderr)


async def _note_unseen(client: HttpClient, kinds: Sequence[Kind]) -> None:
    """Says of what counts here and is dray's own on this server that others decide without it."""
    from dray.api.registry import DRAY_GROUP

    ours = [f"{kind.plural}.{DRAY_GROUP}" for kind in kinds if await client.group_of(kind) == DRAY_GROUP]
    if ours:
        who = "dray's scheduler and controllers go by them, those of Kubernetes do not, and may decide otherwise"
        print(f"dray: {' and '.join(ours)} count here: {who}.", file=sys.stderr)


def warn_of_rate(controller: str) -> None:
    """Says of a rate that is asked for on another server than dray's who keeps it."""
    note = f"the annotation {EVICTIONS_PER_SECOND} carries the rate, for dray's {controller} only"
    print(f"dray: {note}; that of kube-controller-manager evicts all pods at once.", file=sys.stderr)


async def warn_of_end(client: HttpClient | None, until: object) -> None:
    """Says of an end that is asked for on another server than dray's who has to keep it. Raises ApiError, OSError."""
    if client is None or until is None or await _keeps_ends(client):
        return
    from dray.api.well_known import CONTROLLERS_LEASE
    from dray.live.diagnosis import find_leases
    from dray.process.clock import RealClock

    held = await find_leases(client, RealClock().now(), [CONTROLLERS_LEASE])
    ends = (
        f"it ends at {until} if taint-expiry-controller is among dray's controllers, who have lease {min(held)}"
        if held
        else f"nothing on this server ends it at {until}. Run `dray controllers --controllers taint-expiry-controller` "
        "against it, or untaint by hand"
    )
    print(f"dray: {ends}.", file=sys.stderr)


async def tell_end(client: HttpClient | None, until: object) -> str:
    """`, until` an end that is kept, or that it is only written down. Raises ApiError, OSError."""
    if until is None:
        return ""
    return f", until {until}" if await _keeps_ends(client) else f", marked to end at {until}"


async def _keeps_ends(client: HttpClient | None) -> bool:
    return client is None or OWN_SERVER in await client.server_version()


def _warner() -> Callable[[str], None]:
    """Says what a server warns of, once: a command may write one thing in several requests."""
    said: set[str] = set()

    def warn(text: str) -> None:
        if text not in said:
            said.add(text)
            print(f"dray: the server warns: {text}", file=sys.stderr)

    return warn

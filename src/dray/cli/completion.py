"""What the shell offers when TAB is pressed: what the cluster at hand has, clusters of this machine, profiles.

The cluster at hand is that of --kubeconfig, --context or -f, as far as they are typed already. Whatever goes wrong,
nothing is offered: a shell is no place for error messages.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    from dray.api.meta import Object
    from dray.api.registry import Kind
    from dray.api.resource import ResourceSlice
    from dray.client.http import HttpClient

SECONDS: Final = 2.0
MOST: Final = 200
COMMON: Final = ("node", "devicetaintrule", "resourceslicepatch", "deviceclass", "namespace", "resourceclaim", "pod")
"""Kinds that are offered before a kind is typed; what is typed may be any."""


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of nodes."""
    from dray.api.kinds import NODES

    return _named(ctx, NODES, incomplete)


def drains(ctx: typer.Context, incomplete: str) -> list[str]:
    """`node/NAME` and `rule/NAME` of what is drained."""
    from dray.api.kinds import NODES, RULES
    from dray.maintenance.confirmation import has_drain

    return _fitting(_with_words(ctx, {"node": NODES, "rule": RULES}, has_drain), incomplete)


def evicting(ctx: typer.Context, incomplete: str) -> list[str]:
    """`node/NAME`, `rule/NAME` and `slice/NAME` of what has pods leave, so that it can be confirmed."""
    from dray.api.kinds import NODES, RULES, SLICES
    from dray.maintenance.confirmation import evicts

    return _fitting(_with_words(ctx, {"node": NODES, "rule": RULES, "slice": SLICES}, evicts), incomplete)


def cancellable(ctx: typer.Context, incomplete: str) -> list[str]:
    """The same and what is drained, without slices: what a driver says is not taken back here."""
    from dray.api.kinds import NODES, RULES
    from dray.maintenance.confirmation import evicts, has_drain

    found = _with_words(ctx, {"node": NODES, "rule": RULES}, lambda one: evicts(one) or has_drain(one))
    return _fitting(found, incomplete)


def pods(ctx: typer.Context, incomplete: str) -> list[str]:
    """`namespace/name` of pods; names, where the namespace is given."""
    from dray.api.kinds import PODS

    return _named(ctx, PODS, incomplete)


def claims(ctx: typer.Context, incomplete: str) -> list[str]:
    """`namespace/name` of claims; names, where the namespace is given."""
    from dray.api.kinds import CLAIMS

    return _named(ctx, CLAIMS, incomplete)


def pod_groups(ctx: typer.Context, incomplete: str) -> list[str]:
    """`namespace/name` of groups of pods; names, where the namespace is given."""
    from dray.api.kinds import POD_GROUPS

    return _named(ctx, POD_GROUPS, incomplete)


def placements(ctx: typer.Context, incomplete: str) -> list[str]:
    """`namespace/name` of placements; names, where the namespace is given."""
    from dray.api.kinds import PLACEMENTS

    return _named(ctx, PLACEMENTS, incomplete)


def members(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the clusters of a hub."""
    from dray.api.kinds import CLUSTERS

    return _named(ctx, CLUSTERS, incomplete)


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of namespaces."""
    from dray.api.kinds import NAMESPACES

    return _named(ctx, NAMESPACES, incomplete)


def classes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of device classes."""
    from dray.api.kinds import CLASSES

    return _named(ctx, CLASSES, incomplete)


def rules(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of taint rules."""
    from dray.api.kinds import RULES

    return _named(ctx, RULES, incomplete)


def objects(ctx: typer.Context, incomplete: str) -> list[str]:
    """`KIND/NAME` or `KIND/NAMESPACE/NAME`: of the kind that is typed, else of common ones that begin like it."""
    from dray.snapshot.snapshot import kinds_called

    typed, slash, _ = incomplete.partition("/")
    words = [typed] if slash else [word for word in COMMON if word.startswith(typed)]
    return _fitting(_with_words(ctx, {word: kind for word in words for kind in kinds_called(word)[:1]}), incomplete)


def contexts(ctx: typer.Context, incomplete: str) -> list[str]:
    """Contexts of the kubeconfig."""
    from dray.client.kubeconfig import KubeconfigError, context_names

    with contextlib.suppress(KubeconfigError):
        return _fitting(context_names(ctx.params.get("kubeconfig")), incomplete)
    return []


def drivers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of drivers that have devices."""
    return _in_slices(ctx, lambda found: [found.spec.driver], incomplete)


def pools(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of pools of devices."""
    return _in_slices(ctx, lambda found: [found.spec.pool.name], incomplete)


def devices(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of devices, each once; several pools may have one of that name."""
    return _in_slices(ctx, lambda found: [device.name for device in found.spec.devices], incomplete)


def running(incomplete: str) -> list[str]:
    """Names of the clusters of this machine that run."""
    return _clusters(incomplete, runs=True)


def stopped(incomplete: str) -> list[str]:
    """Names of the clusters of this machine that do not run, and can be started again."""
    return _clusters(incomplete, runs=False)


def profiles(incomplete: str) -> list[str]:
    """Names of the profiles that come with dray."""
    from dray.simulation.profile_files import shipped_profiles

    return _fitting(shipped_profiles(), incomplete)


def documents(incomplete: str) -> list[str]:
    """Kinds of documents that commands print."""
    from dray.cli.shapes import SHAPES

    return _fitting(SHAPES, incomplete)


def driver_rules(incomplete: str) -> list[str]:
    """Names of the rules that drivers are tested against."""
    from dray.driver_test import find_rules

    return _fitting((rule.name for rule in find_rules([])), incomplete)


def _clusters(incomplete: str, *, runs: bool) -> list[str]:
    from dray.cli import clusters

    place = clusters.place()
    found = [one.name for one in clusters.find_all() if bool(one.pid) is runs and one.directory.parent == place]
    return _fitting(found, incomplete)


def _fitting(offers: Iterable[str], incomplete: str) -> list[str]:
    return [offer for offer in offers if offer.startswith(incomplete)][:MOST]


def _named(ctx: typer.Context, kind: Kind, incomplete: str) -> list[str]:
    namespace = ctx.params.get("namespace") or ""
    found = [one.metadata for one in _read(ctx, [kind])[kind]]
    if namespace:
        return _fitting((one.name for one in found if one.namespace == namespace), incomplete)
    return _fitting((f"{one.namespace}/{one.name}" if one.namespace else one.name for one in found), incomplete)


def _with_words(
    ctx: typer.Context, kinds: dict[str, Kind], wanted: Callable[[Object], bool] = lambda _: True
) -> Iterator[str]:
    """`node/n`, `pod/ns/p`: each object with the word for its kind in front."""
    namespace = ctx.params.get("namespace") or ""
    found = _read(ctx, list(kinds.values()))
    for word, kind in kinds.items():
        for one in filter(wanted, found[kind]):
            place = "" if namespace and one.metadata.namespace == namespace else one.metadata.namespace
            yield "/".join(filter(None, (word, place, one.metadata.name)))


def _in_slices(ctx: typer.Context, pick: Callable[[ResourceSlice], list[str]], incomplete: str) -> list[str]:
    from dray.api.kinds import SLICES
    from dray.api.resource import ResourceSlice

    slices = [one for one in _read(ctx, [SLICES])[SLICES] if isinstance(one, ResourceSlice)]
    return _fitting(sorted({name for one in slices for name in pick(one)}), incomplete)


def _read(ctx: typer.Context, kinds: Sequence[Kind]) -> dict[Kind, list[Object]]:
    """What the cluster at hand has of each kind; nothing where that cannot be said quickly and quietly."""
    found: dict[Kind, list[Object]] = {kind: [] for kind in kinds}
    sources = ctx.params.get("sources")  # while an option lacks its value, they are what is left over
    files = [*(sources or ()), *(ctx.params.get("files") or ()), *(ctx.args if sources is not None else ())]
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit, Exception):
        found |= _from_files(files, kinds) if files else _from_cluster(ctx.params, kinds)
    return found


def _from_files(files: Sequence[str], kinds: Sequence[Kind]) -> dict[Kind, list[Object]]:
    from dray.api.meta import Object
    from dray.cli import inputs

    if "-" in files:  # standard input is the terminal's
        return {}
    there = list(inputs.load(files).objects(Object))
    return {kind: [one for one in there if one.kind == kind.kind] for kind in kinds}


def _from_cluster(given: dict[str, Any], kinds: Sequence[Kind]) -> dict[Kind, list[Object]]:
    from dray.cli import live
    from dray.cli.running_cluster import RunningCluster

    async def work(client: HttpClient) -> dict[Kind, list[Object]]:
        import asyncio

        from dray.client.calls import list_if_served

        async with asyncio.timeout(SECONDS):
            lists = await asyncio.gather(*(list_if_served(client, kind) for kind in kinds))
        return {kind: list(found or ()) for kind, found in zip(kinds, lists, strict=True)}

    cluster = RunningCluster(kubeconfig=given.get("kubeconfig"), context=given.get("context") or "")
    return live.call(work, "completion", cluster)

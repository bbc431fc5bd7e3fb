"""Every part of an object that has a path of its own has a strategy, and kinds that are posted but not stored, too."""

from __future__ import annotations

import pytest

from dray.api import registry
from dray.api.generated.core import Namespace, Pod
from dray.api.registry import Kind, by_kind
from dray.api.times import Time
from dray.server.routes import served_subresources
from dray.server.strategies import Strategies
from dray.server.subresources.table import UPDATES
from dray.validation import Context
from local_server import local_server, typed

NOW = Time("2026-01-01T00:00:00Z")
PARTS = [(kind, part) for kind in registry.kinds() for part in served_subresources(kind)]


@pytest.mark.parametrize(("kind", "part"), PARTS, ids=lambda it: getattr(it, "resource", getattr(it, "name", "")))
async def test_every_subresource_has_a_strategy(kind: Kind, part: registry.Subresource) -> None:
    async with local_server(with_roles=False) as server:
        strategies = server.engine.strategies
        if "create" in part.verbs:
            post = strategies.post(kind, part.name)
            assert post is not None
            assert post.takes.__name__ == part.kind
        else:
            view = strategies.update(kind, part.name).view
            assert (view.kind if view is not None else kind.kind) == part.kind


async def test_kinds_that_are_not_stored_have_a_strategy() -> None:
    async with local_server(with_roles=False) as server:
        for kind in registry.kinds():
            is_posted_only = "create" in kind.verbs and "get" not in kind.verbs
            assert (server.engine.strategies.post(kind, "") is not None) == is_posted_only, kind.resource


def test_a_part_that_a_kind_does_not_have() -> None:
    with pytest.raises(LookupError):
        Strategies(UPDATES).update(by_kind("v1", "Pod"), "approval")


def test_finalize_changes_finalizers_and_nothing_else() -> None:
    old = typed(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}}
    )
    new = typed({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {}})
    strategy = Strategies(UPDATES).update(by_kind("v1", "Namespace"), "finalize")
    made = strategy.prepare(new, old, Context(now=NOW))
    assert isinstance(made, Namespace)
    assert (made.spec.finalizers, made.metadata) == ((), old.metadata)


def test_ephemeral_containers_change_nothing_else() -> None:
    containers = [{"name": "main", "image": "a"}]
    debug = [{"name": "debug", "image": "b"}]
    old = typed({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}})
    spec = {"containers": [{"name": "main", "image": "other"}], "ephemeralContainers": debug}
    new = typed({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    made = Strategies(UPDATES).update(by_kind("v1", "Pod"), "ephemeralcontainers").prepare(new, old, Context(now=NOW))
    assert isinstance(made, Pod)
    assert (made.spec.containers[0].image, made.spec.ephemeral_containers[0].name) == ("a", "debug")

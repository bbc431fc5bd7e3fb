"""Lists in pages: they fit together for some minutes, then the rest can be had as it is."""

from __future__ import annotations

import pytest

from dray.api.kinds import CONFIG_MAPS
from dray.api.labels import FieldSelector, LabelSelector
from dray.api.status import ApiError
from dray.server.bodies.options import ListOptions
from dray.server.engine import Call
from dray.server.routes import Route
from dray.server.verbs.reads import LONGEST_SECONDS, Page, list_page
from local_server import ADMIN, LocalServer, local_server, typed


async def page(server: LocalServer, continue_: str = "") -> Page:
    call = Call(Route("list", CONFIG_MAPS, "v1", "default"), ADMIN, server.engine.clock())
    options = ListOptions(LabelSelector.parse(""), FieldSelector.parse(""), limit=2, continue_=continue_)
    return await list_page(server.engine, call, options)


def names(found: Page) -> list[str]:
    return [record.key.name for record in found.records]


async def add(server: LocalServer, name: str) -> None:
    metadata = {"name": name, "namespace": "default"}
    await server.client().create(typed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))


async def test_pages_fit_together_until_they_are_too_old() -> None:
    async with local_server(with_roles=False) as server:
        for name in ("b", "d", "f", "h", "j"):
            await add(server, name)
        first = await page(server)
        assert names(first) == ["b", "d"]
        await add(server, "e")
        await server.clock.advance(LONGEST_SECONDS)
        second = await page(server, first.meta.continue_)
        assert names(second) == ["f", "h"]
        await server.clock.advance(5)
        for old in (first, second):
            with pytest.raises(ApiError) as refused:
                await page(server, old.meta.continue_)
            assert (refused.value.code, refused.value.reason) == (410, "Expired")
            rest = await page(server, refused.value.status.metadata.continue_)
            assert names(rest) == (["e", "f"] if old is first else ["j"])
            assert rest.meta.resource_version != first.meta.resource_version

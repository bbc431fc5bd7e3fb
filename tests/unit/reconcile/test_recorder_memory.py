"""What a component remembers of its events is what it wrote, not what others made of them meanwhile."""

from __future__ import annotations

from typing import Any

from dray.api.kinds import EVENTS
from dray.reconcile import EventRecorder
from local_server import local_server, typed


async def test_what_others_write_into_an_event_is_not_kept() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        recorder = EventRecorder(client, "tester", server.clock)
        about = typed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}})
        await recorder.warning(about, "Failed", "again")
        stored = server.store.list(EVENTS.resource).records[0].key
        large: Any = {"metadata": {"annotations": {"a": "x" * 100_000}}}
        await client.patch(EVENTS, stored.namespace, stored.name, large)
        for _ in range(2):
            await recorder.warning(about, "Failed", "again")
        counted: Any = await client.get(EVENTS, stored.namespace, stored.name)
        assert counted.count == 3
        assert not [one for one in recorder._known.values() if one.metadata.annotations]

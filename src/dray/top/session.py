"""The loop: what the viewer sees goes to the model, what the model asks for is worked out, what it draws is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from dray.api import kinds
from dray.api.status import ApiError
from dray.api.times import Time
from dray.api.well_known import MAINTENANCE
from dray.client.http import HttpClient
from dray.live import documents
from dray.live.viewer import Viewer
from dray.maintenance import out_of_service
from dray.maintenance.out_of_service import ChangeError, Wish
from dray.process.tasks import end
from dray.reconcile import Clock
from dray.snapshot import SnapshotError
from dray.snapshot.pod_explanation import explain_pod
from dray.top import texts
from dray.top.asks import Act, Apply, Ask, Describe, Explain, Filter, Preview, Quit, Redraw
from dray.top.drawing import draw, draw_whole
from dray.top.model import Top
from dray.top.screen import Line
from dray.top.seen import Seen
from dray.top.tty import Terminal
from dray.tracker.view import PoolView
from dray.views import grouping, waiting
from dray.views.pools import bad_pools, tell_bad_pools
from dray.what_if.taint_preview_text import tell

CALM_SECONDS: Final = 0.2
AGE_SECONDS: Final = 5.0
"""Ages are told anew so often, if nothing else happens."""
FAILURES: Final = (ApiError, ChangeError, SnapshotError, documents.NoSuchThing, grouping.GroupingError, OSError)

ACTIONS: Final[Mapping[str, Callable[[HttpClient, str], Coroutine[Any, Any, None]]]] = {
    "confirm": out_of_service.confirm,
    "stop": out_of_service.stop,
    "undo": out_of_service.undo,
}
NODE_ACTIONS: Final[Mapping[str, Callable[[HttpClient, str], Coroutine[Any, Any, None]]]] = {
    "confirm": partial(out_of_service.confirm, kind=kinds.NODES),
    "stop": partial(out_of_service.stop, kind=kinds.NODES),
}
DONE: Final = {
    "confirm": "confirmed: its pods leave",
    "stop": "stopped: nobody else leaves",
    "undo": "gone: its devices are back in service",
}


class Picks:
    """Of which devices an expression is true, worked out once for every pool as it is published."""

    def __init__(self, expression: str) -> None:
        """Raises GroupingError."""
        self._pick = grouping.picker(expression)
        self._known: dict[str, tuple[PoolView, grouping.Picked]] = {}

    def of(self, views: Mapping[str, PoolView]) -> dict[str, grouping.Picked]:
        """By key of a row."""
        for key, view in views.items():
            known = self._known.get(key)
            if known is None or known[0] is not view:
                self._known[key] = (view, self._pick(view))
        return {key: self._known[key][1] for key in views}


class TopSession:
    """One look at a cluster: `start`, then `run` on a terminal or `once`, then `stop`."""

    def __init__(self, client: HttpClient, clock: Clock, server: str, namespace: str = "") -> None:
        self.top = Top()
        self._client = client
        self._clock = clock
        self._server = server
        self._namespace = namespace
        self._viewer = Viewer(client, clock, namespace)
        self._picks: Picks | None = None
        self._over = asyncio.Event()
        self._wake = asyncio.Event()
        self._work: set[asyncio.Task[None]] = set()

    async def start(self, page: int, expression: str) -> None:
        """Everything has been read once. Raises ApiError, OSError or GroupingError."""
        if expression:
            self._picks = Picks(expression)
            self.top.expression = expression
        self.top.page = page
        await self._viewer.start()
        await self._look()

    async def stop(self) -> None:
        """Ends all watches."""
        await end(list(self._work))
        await self._viewer.stop()

    def once(self, width: int) -> list[Line]:
        """What there is now."""
        return draw_whole(self.top, width)

    async def run(self, terminal: Terminal) -> None:
        """Until somebody has seen enough."""
        looking = asyncio.get_running_loop().create_task(self._keep_looking())
        looking.add_done_callback(lambda _: self._wake.set())
        self._work.add(looking)

        def on_key(key: str) -> None:
            for ask in self.top.press(key):
                self._take(ask, terminal)
            self._wake.set()

        with terminal.opened(on_key, self._wake.set):
            while not self._over.is_set():
                terminal.show(draw(self.top, terminal.size.columns, terminal.size.lines))
                await self._wake.wait()
                self._wake.clear()
                if looking.done():
                    looking.result()

    def leave(self) -> None:
        """The end, from outside."""
        self._over.set()
        self._wake.set()

    # What there is

    async def _keep_looking(self) -> None:
        while True:
            version = self._viewer.version
            await self._viewer.changed(version, AGE_SECONDS)
            if self._viewer.is_outdated:
                await self._begin_again()
            await self._look()
            self._wake.set()
            await self._clock.sleep(CALM_SECONDS)

    async def _begin_again(self) -> None:
        """Rights have changed: another viewer sees what may be seen now."""
        await self._viewer.stop()
        self._viewer = Viewer(self._client, self._clock, self._namespace)
        await self._viewer.start()

    async def _look(self) -> None:
        viewer, picks = self._viewer, self._picks
        views = dict(viewer.rows.views) if picks is not None else {}
        picked = await asyncio.to_thread(picks.of, views) if picks is not None else None
        pods = list(viewer.of(kinds.PODS))
        ready, nodes = viewer.ready_nodes
        self.top.see(
            Seen(
                server=self._server,
                now=str(Time.of(datetime.now(UTC))),
                totals=viewer.totals,
                ready=ready,
                nodes=nodes,
                rows=tuple(viewer.rows.rows.values()),
                pods=tuple(await asyncio.to_thread(waiting.pod_rows, pods)),
                rules=tuple(await documents.rule_rows(viewer)),
                emptied=tuple(await documents.node_rows(viewer)),
                problems=tuple(tell_bad_pools(bad_pools(viewer.rows.views.values()))),
                missing=tuple(viewer.missing),
                picked=picked,
                details=viewer.rows.devices,
            )
        )

    # What is asked for

    def _take(self, ask: Ask, terminal: Terminal) -> None:
        if isinstance(ask, Quit):
            self.leave()
        elif isinstance(ask, Redraw):
            terminal.forget()
        else:
            task = asyncio.get_running_loop().create_task(self._answer(ask, terminal.size.columns))
            self._work.add(task)
            task.add_done_callback(self._work.discard)

    async def _answer(self, ask: Ask, width: int) -> None:
        try:
            await self._do(ask, width)
        except FAILURES as error:
            self.top.say(str(error), is_bad=True)
        self._wake.set()

    async def _do(self, ask: Ask, width: int) -> None:
        top = self.top
        match ask:
            case Filter(expression):
                self._picks = Picks(expression) if expression else None
                await self._look()
                top.filtered(expression)
            case Explain(pod):
                snapshot = await self._viewer.snapshot()
                told = await asyncio.to_thread(explain_pod, snapshot, pod)
                text = await asyncio.to_thread(lambda: told.text(now=datetime.now(UTC), width=width))
                top.show(f"Why {pod}", text)
            case Describe(device, node):
                found = await documents.device(self._viewer, {"id": device, "node": node})
                top.show("Device", texts.tell_device(found["device"], found["history"], width))
            case Preview():
                await self._preview(ask, width)
            case Apply(selections, effect, digest):
                wish = Wish(selections=selections, key=MAINTENANCE, effect=effect, expected=digest)
                done = await out_of_service.apply(await self._viewer.snapshot(), self._client, wish)
                await self._look()
                top.applied(done["rules"])
            case Act(action, name, is_node):
                await (NODE_ACTIONS if is_node else ACTIONS)[action](self._client, name)
                top.say(f"{name}: {DONE[action]}")

    async def _preview(self, ask: Preview, width: int) -> None:
        wish = Wish(selections=ask.selections, key=MAINTENANCE, effect=ask.effect)
        seen = await out_of_service.preview(await self._viewer.snapshot(), self._client, wish)
        guard = seen.preview.guard
        is_over = guard is not None and guard.is_over and seen.preview.evicts
        number = len(seen.preview.devices) if seen.is_broad or is_over else 0
        self.top.previewed(ask, tell(seen.preview, width), seen.digest, number)

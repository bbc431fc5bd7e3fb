"""Posts that store nothing of their own: bindings and evictions of pods, and what others add to the table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dray.api.registry import by_kind
from dray.server import pod_actions
from dray.server.engine import Call, Engine
from dray.server.http import Answer, Request
from dray.server.routes import Route

Action = Callable[[Engine, Call, Request], Awaitable[Answer]]

PODS = by_kind("v1", "Pod")


class _OnPod:
    """An action on a pod, once admission has nothing against it: a node evicts only pods of its own."""

    def __init__(self, action: Action) -> None:
        self._action = action

    async def __call__(self, engine: Engine, call: Call, request: Request) -> Answer:
        """Does it. Raises ApiError."""
        pod = engine.get(PODS.resource, call.route.namespace, call.route.name)
        engine.admission.check(engine, call, None, pod)
        return await self._action(engine, call, request)


class ActionTable:
    """Actions by resource and subresource; others (tokens, reviews) are added by whoever has what they need."""

    def __init__(self) -> None:
        self._actions: dict[tuple[str, str], Action] = {
            ("pods", "binding"): _OnPod(pod_actions.bind),
            ("pods", "eviction"): _OnPod(pod_actions.evict),
            ("bindings", ""): pod_actions.bind,
        }

    def add(self, resource: str, subresource: str, action: Action) -> None:
        """Puts an action at a resource (`serviceaccounts`) and subresource (`token`)."""
        self._actions[resource, subresource] = action

    def find(self, route: Route) -> Action | None:
        """The action of a route, None if it is an ordinary create."""
        return self._actions.get((route.kind.resource, route.subresource))

"""What a server says of the kinds that dray does not know, and what happens to their objects with a namespace."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller_world import find_kind, typed
from dray.api.generated.core import Namespace
from dray.api.meta import Object
from dray.api.status import ApiError
from dray.client.http import HttpClient
from dray.client.kubeconfig import Connection
from dray.controllers.context import Context
from dray.controllers.namespace import LOOK_AGAIN, NamespaceController
from dray.controllers.queue_metrics import QueueMetrics
from dray.process.http import Answer, Request, Response
from dray.reconcile import VirtualClock
from dray.reconcile.informers import Informers
from scripted_http import scripted_http

ALL = ["create", "delete", "get", "list", "watch"]
WIDGET = {"metadata": {"name": "w", "namespace": "gone", "uid": "u"}, "spec": {"size": 3}}

GONE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "gone", "uid": "n", "resourceVersion": "5", "deletionTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"finalizers": ["kubernetes"]},
}


def resource(name: str, kind: str, *, namespaced: bool = True, verbs: Sequence[str] = ALL) -> dict[str, Any]:
    return {"name": name, "kind": kind, "namespaced": namespaced, "verbs": list(verbs)}


def group(name: str, *versions: str) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{one}", "version": one} for one in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[-1]}


class Server:
    """Has custom resources, one of them in two versions."""

    def __init__(self) -> None:
        self.widgets: list[dict[str, Any]] = [WIDGET]
        self.finalized = False
        self.told: Any = None
        self.lost: set[str] = set()
        self.documents: dict[str, Any] = {
            "/api/v1": {"resources": [resource("pods", "Pod"), resource("pods/log", "Pod")]},
            "/apis": {"groups": [group("apps", "v1"), group("example.com", "v1", "v2")]},
            "/apis/apps/v1": {"resources": [resource("deployments", "Deployment")]},
            "/apis/example.com/v1": {"resources": [resource("widgets", "Widget"), resource("gears", "Gear")]},
            "/apis/example.com/v2": {
                "resources": [resource("widgets", "Widget"), resource("readings", "Reading", verbs=["list"])]
            },
        }

    def __call__(self, request: Request) -> Answer:
        if request.path in self.lost:
            return answer({"kind": "Status", "code": 503, "reason": "ServiceUnavailable", "message": "no answer"}, 503)
        if request.path in self.documents:
            return answer(self.documents[request.path])
        if request.path.endswith(("/widgets", "/gears")):
            items = self.widgets if request.path.endswith("/v2/namespaces/gone/widgets") else []
            return answer({"kind": "WidgetList", "metadata": {"resourceVersion": "7"}, "items": items})
        if (request.method, request.path) == ("DELETE", "/apis/example.com/v2/namespaces/gone/widgets/w"):
            self.widgets.clear()
            return answer({"kind": "Status", "status": "Success"})
        if (request.method, request.path) == ("PUT", "/api/v1/namespaces/gone/status"):
            self.told = json.loads(request.body)["status"]["conditions"]
            return answer(GONE)
        if (request.method, request.path) == ("PUT", "/api/v1/namespaces/gone/finalize"):
            self.finalized = True
            return answer(GONE)
        return answer({"kind": "Status", "code": 404, "reason": "NotFound"}, 404)

    def lose(self, path: str) -> None:
        """Behind a path is another API server, which does not answer: nobody knows what it has."""
        del self.documents[path]
        self.lost.add(path)


def answer(value: Any, code: int = 200) -> Response:
    return Response(code, json.dumps(value).encode())


async def no_pause(_seconds: float) -> None:
    """Retries come at once."""


async def test_foreign_kinds_are_those_that_dray_does_not_know_in_the_preferred_version() -> None:
    server = Server()
    async with scripted_http(server) as url, HttpClient(Connection(server=url), sleep=no_pause) as client:
        found = {kind.resource: kind for kind in await client.foreign_kinds()}
        assert {name: kind.api_version for name, kind in found.items()} == {
            "widgets.example.com": "example.com/v2",
            "gears.example.com": "example.com/v1",
            "readings.example.com": "example.com/v2",
        }
        (widget,) = (await client.list(found["widgets.example.com"], "gone")).items
        assert (type(widget), widget.kind, widget.metadata.uid) == (Object, "Widget", "u")
        server.lose("/apis/example.com/v2")
        with pytest.raises(ApiError, match="no answer"):
            await client.foreign_kinds()


def controller(client: HttpClient) -> NamespaceController:
    clock, metrics = VirtualClock(), CollectorRegistry()
    informers = Informers(client, clock)
    informers.of(find_kind("namespaces"), Namespace).put(typed(GONE))
    context = Context(client, informers, clock, metrics, QueueMetrics(metrics), foreign_kinds=client.foreign_kinds)
    return NamespaceController(context)


@pytest.mark.parametrize("is_silent", [False, True])
async def test_a_namespace_goes_only_after_what_dray_does_not_know(is_silent: bool) -> None:
    server = Server()
    async with scripted_http(server) as url, HttpClient(Connection(server=url), sleep=no_pause) as client:
        if is_silent:
            server.lose("/apis/example.com/v2")
            assert await controller(client).reconcile("gone") == LOOK_AGAIN
            assert "no answer" in json.dumps(server.told)
        else:
            await controller(client).reconcile("gone")
        assert (server.finalized, server.widgets) == ((False, [WIDGET]) if is_silent else (True, []))

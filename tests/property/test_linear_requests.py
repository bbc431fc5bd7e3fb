"""A request with twice as much of something takes at most twice as long, from its head to its answer.

`test_linear_work` doubles every list of every kind, and looks at reading and judging. These requests go all the way,
and to where lists are of another sort: custom objects and their definitions, subresources, reviews, patches, field
owners, selectors. How often each line runs is counted; in the long test (`make soak`) it is processor time, in which
what C does has a part.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dray.process.clock import RealClock
from dray.process.http import Peer, Request, Response
from dray.server.api_server import ApiServer, Options
from dray.server.beside import Beside
from dray.server.bodies import body
from dray.server.custom.upkeep import keep_definitions
from dray.server.instance import decode_stored
from dray.server.security.certificates import create_private_key
from dray.server.security.identity import MASTERS, authenticated
from dray.store import LocalStore, MemoryBackend
from garbage import garbage_of
from work import growing_faster, lines_run

SIZE = 48
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
JSON = "application/json"
CORE = "/api/v1/namespaces/default"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/x.io/v1/namespaces/default/things"
REVIEWS = "/apis/authorization.k8s.io/v1"
SIGNING = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"

Document = Any


class Case(NamedTuple):
    """A request with so many of something, on an object with as many."""

    method: str
    path: Callable[[int], str] | str
    body: Callable[[int], Document] = lambda _: b""
    content_type: str = JSON
    stored: tuple[str, Callable[[int], Document]] | None = None
    token: str = "admin"
    large: int = 8000


def _map(count: int, value: Any = "x") -> dict[str, Any]:
    return {f"p{number}": value for number in range(count)}


def _named(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"name": f"n{number}", **more} for number in range(count)]


def _types(count: int) -> list[dict[str, str]]:
    return [{"type": f"T{number}", "status": "True"} for number in range(count)]


_TEXT = {"type": "string", "maxLength": 20}
_LISTS: dict[str, tuple[dict[str, Any], Callable[[int], Any]]] = {
    "set": (
        {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
        lambda count: [f"v{number}" for number in range(count)],
    ),
    "same": ({"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT}, lambda count: ["v"] * count),
    "map": (
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "l"],
            "items": {
                "type": "object",
                "required": ["name", "l"],
                "properties": {"name": _TEXT, "l": _TEXT, "v": {"type": "integer"}},
            },
        },
        lambda count: _named(count, l="x", v=1),
    ),
    "values": (
        {"type": "object", "additionalProperties": {"type": "integer", "maximum": 5}},
        lambda count: _map(count, 9),
    ),
    "ruled": (
        {
            "type": "array",
            "maxItems": 100_000,
            "items": {
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.a < 10"}],
            },
        },
        lambda count: [{"a": 5}] * count,
    ),
    "defaulted": (
        {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "string", "default": "x"}}}},
        lambda count: [{"pruned": 1} for _ in range(count)],
    ),
}


def _definition(name: str, properties: dict[str, Any], names: Document = None, **version: Any) -> Document:
    subresources = {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    }
    shape = {"type": "object", "properties": properties}
    made = {"name": "v1", "served": True, "storage": True, "subresources": subresources}
    versions = [{**made, "schema": {"openAPIV3Schema": shape}, **version}]
    spec = {"group": "x.io", "scope": "Namespaced", "names": {"plural": name, "kind": name.title(), **(names or {})}}
    return {"metadata": {"name": f"{name}.x.io"}, "spec": {**spec, "versions": versions}}


def _thing(**more: Any) -> Document:
    return {"apiVersion": "x.io/v1", "kind": "Things", "metadata": {"name": "t"}, **more}


def _pod(**spec: Any) -> Document:
    containers = [{"name": "c", "image": "x"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}


def _config_map(**more: Any) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, **more}


def _managed(count: int, fields: int) -> list[Document]:
    owned: Document = {"f:data": {f"f:k{number}": {} for number in range(fields)}}
    entry = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": owned}
    return [{**entry, "manager": f"m{number}", "time": "2026-01-02T03:04:05Z"} for number in range(count)]


def _signing(count: int, **spec: Any) -> Document:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "u")])
    names = x509.SubjectAlternativeName([x509.DNSName(f"a{number}.io") for number in range(count)])
    made = x509.CertificateSigningRequestBuilder().subject_name(name).add_extension(names, critical=False)
    signed = made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    request = base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()
    return {
        "metadata": {"name": "c"},
        "spec": {"request": request, "signerName": "x.io/y", "usages": ["client auth"], **spec},
    }


def _custom() -> Iterator[tuple[str, Case]]:
    for name, (_, made) in _LISTS.items():

        def whole(count: int, name: str = name, made: Any = made) -> Document:
            return _thing(spec={name: made(count)})

        stored = (THINGS, whole)
        yield f"custom-create-{name}", Case("POST", THINGS, whole)
        yield f"custom-replace-{name}", Case("PUT", f"{THINGS}/t", whole, JSON, stored)
        yield f"custom-apply-{name}", Case("PATCH", f"{THINGS}/t?fieldManager=m&force=true", whole, APPLY, stored)
        yield f"custom-merge-{name}", Case("PATCH", f"{THINGS}/t", whole, MERGE, stored)
    yield "custom-unknown", Case("POST", f"{THINGS}?fieldValidation=Strict", lambda n: {**_thing(), **_map(n)})
    yield (
        "custom-status",
        Case(
            "PUT",
            f"{THINGS}/t/status",
            lambda n: _thing(status=_map(n)),
            JSON,
            (THINGS, lambda n: _thing(status=_map(n))),
        ),
    )
    yield "custom-scale", Case(
        "PUT", f"{THINGS}/t/scale", lambda n: {"metadata": {"name": "t", "labels": _map(n)}, "spec": {"replicas": 2}},
        JSON, (THINGS, lambda n: _thing(spec={"replicas": 1, "other": _map(n)})),
    )  # fmt: skip


def _definitions() -> Iterator[tuple[str, Case]]:
    texts = {"type": "string"}
    keyed: dict[str, Callable[[int], Document]] = {
        "properties": lambda n: _map(n, texts),
        "choices": lambda n: {"a": {**texts, "enum": [f"e{number}" for number in range(n)]}},
        "required": lambda n: {"a": {"type": "object", "properties": _map(n, texts), "required": list(_map(n))}},
        "any-of": lambda n: {
            "a": {"type": "object", "properties": _map(n, texts), "anyOf": [{"required": [one]} for one in _map(n)]}
        },
        "rules": lambda n: {
            "a": {"type": "integer", "x-kubernetes-validations": [{"rule": f"self > {i}"} for i in range(min(n, 100))]}
        },
        "defaults": lambda n: {"a": {"type": "object", "default": _map(n), "properties": _map(n, texts)}},
        "keys": lambda n: {"a": _keyed(n, list(_map(n)))},
        "wrong-keys": lambda n: {"a": _keyed(n, [f"q{number}" for number in range(n)])},
    }
    for name, properties in keyed.items():
        yield f"definition-{name}", Case("POST", DEFINITIONS, _defined_with(properties), large=4000)
    column = {"type": "string", "jsonPath": ".a"}
    yield (
        "definition-columns",
        Case("POST", DEFINITIONS, lambda n: _definition("others", {}, additionalPrinterColumns=_named(n, **column))),
    )
    yield (
        "definition-names",
        Case(
            "POST",
            DEFINITIONS,
            lambda n: _definition("others", {}, {"shortNames": list(_map(n)), "categories": list(_map(n))}),
        ),
    )


def _defined_with(properties: Callable[[int], Document]) -> Callable[[int], Document]:
    return lambda count: _definition("others", properties(count))


def _keyed(count: int, keys: list[str]) -> Document:
    item = {"type": "object", "required": list(_map(count)), "properties": _map(count, {"type": "string"})}
    kind = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
    return {"type": "array", "items": item, **kind}


def _reviews() -> Iterator[tuple[str, Case]]:
    asked = {"verb": "list", "resource": "pods"}

    def review(count: int) -> Document:
        wanted = [{"key": f"k{number}", "operator": "In", "values": list(_map(count))} for number in range(1)]
        wanted += [{"key": f"k{number}", "operator": "In", "values": ["a"]} for number in range(count)]
        selectors = {"labelSelector": {"requirements": wanted}, "fieldSelector": {"requirements": wanted}}
        spec = {"user": "u", "groups": list(_map(count)), "extra": _map(count, ["x"])}
        return {"spec": {**spec, "resourceAttributes": {**asked, **selectors}}}

    yield "review-access", Case("POST", f"{REVIEWS}/subjectaccessreviews", review)
    yield (
        "review-token",
        Case(
            "POST",
            "/apis/authentication.k8s.io/v1/tokenreviews",
            lambda n: {"spec": {"token": "t", "audiences": list(_map(n))}},
        ),
    )
    yield (
        "token-audiences",
        Case("POST", f"{CORE}/serviceaccounts/default/token", lambda n: {"spec": {"audiences": list(_map(n))}}),
    )
    yield "signing-names", Case("POST", SIGNING, _signing)
    yield "signing-usages", Case("POST", SIGNING, lambda n: _signing(1, usages=["client auth"] * n))
    yield "signing-approval", Case(
        "PUT", f"{SIGNING}/c/approval", lambda n: {"metadata": {"name": "c"}, "status": {"conditions": _types(n)}},
        JSON, (SIGNING, lambda _: _signing(1)),
    )  # fmt: skip

    def role(count: int) -> Document:
        rules = [{"apiGroups": ["x.io"], "resources": [f"r{number}"], "verbs": ["get"]} for number in range(count)]
        return {"metadata": {"name": "r"}, "rules": rules}

    yield "role-of-others", Case("POST", f"{RBAC}/clusterroles", role, token="maker", large=4000)


def _subresources() -> Iterator[tuple[str, Case]]:
    pods, pod = f"{CORE}/pods", f"{CORE}/pods/p"
    stored = (pods, lambda _: _pod())
    many = (pods, lambda n: _pod(containers=_named(n, image="x")))
    about = {"name": "p"}
    yield "binding", Case(
        "POST", f"{pod}/binding", lambda n: {"metadata": {**about, "annotations": _map(n)}, "target": {"name": "n"}},
        JSON, stored,
    )  # fmt: skip
    yield (
        "eviction",
        Case(
            "POST",
            f"{pod}/eviction",
            lambda n: {"metadata": about, "deleteOptions": {"dryRun": ["All"] * n}},
            JSON,
            stored,
        ),
    )
    resources = {"requests": {"cpu": "1"}}
    yield (
        "resize",
        Case(
            "PUT",
            f"{pod}/resize",
            lambda n: _pod(containers=_named(n, image="x", resources=resources)),
            JSON,
            many,
            large=900,
        ),
    )
    yield "ephemeral-containers", Case(
        "PUT", f"{pod}/ephemeralcontainers", large=2000, stored=stored,
        body=lambda n: _pod(ephemeralContainers=_named(n, image="x", targetContainerName="c")),
    )  # fmt: skip
    yield (
        "status-of-a-pod",
        Case("PATCH", f"{pod}/status", lambda n: {"status": {"conditions": _types(n)}}, STRATEGIC, stored),
    )
    yield "status-of-a-claim", Case(
        "PUT", f"{CLAIMS}/c/status", large=4000,
        stored=(CLAIMS, lambda _: {"metadata": {"name": "c"}, "spec": {"devices": {}}}),
        body=lambda n: {
            "metadata": {"name": "c"},
            "status": {
                "devices": [{"driver": "d.io", "pool": "p", "device": f"d{number}"} for number in range(n)],
                "reservedFor": [{"resource": "pods", **one, "uid": one["name"]} for one in _named(n)],
            },
        },
    )  # fmt: skip
    yield "many-deleted", Case("DELETE", f"{CORE}/secrets", lambda n: {"dryRun": ["All"] * n})


def _patches() -> Iterator[tuple[str, Case]]:
    maps, one = f"{CORE}/configmaps", f"{CORE}/configmaps/c"
    stored = (maps, lambda n: _config_map(data=_map(n)))
    with_ends = (maps, lambda n: _config_map(metadata={"name": "c", "finalizers": [f"x.io/{i}" for i in range(n)]}))
    operations: dict[str, Callable[[int], Document]] = {
        "add": lambda n: [{"op": "add", "path": f"/data/k{i}", "value": "x"} for i in range(n)],
        "remove": lambda n: [{"op": "remove", "path": f"/data/p{i}"} for i in range(n)],
        "test": lambda n: [{"op": "test", "path": f"/data/p{i}", "value": "x"} for i in range(n)],
        "move": lambda n: [{"op": "move", "from": f"/data/p{i}", "path": f"/data/q{i}"} for i in range(n)],
        "path": lambda n: [{"op": "add", "path": "/a" * n, "value": "x"}],
    }
    for name, made in operations.items():
        yield f"operations-{name}", Case("PATCH", one, made, JSON_PATCH, stored)
    yield (
        "operations-in-front",
        Case("PATCH", one, lambda n: [{"op": "remove", "path": "/metadata/finalizers/0"}] * n, JSON_PATCH, with_ends),
    )
    strategic = {
        "delete": lambda n: {"spec": {"containers": [{**one, "$patch": "delete"} for one in _named(n)]}},
        "order": lambda n: {
            "spec": {"$setElementOrder/containers": _named(n)[::-1], "containers": _named(n, image="y")}
        },
    }
    many = (f"{CORE}/pods", lambda n: _pod(containers=_named(n, image="x")))
    for name, made in strategic.items():
        yield f"strategic-{name}", Case("PATCH", f"{CORE}/pods/p", made, STRATEGIC, many, large=2000)
    yield "strategic-plain", Case(
        "PATCH", one, lambda n: {"metadata": {"$deleteFromPrimitiveList/finalizers": [f"x.io/{i}" for i in range(n)]}},
        STRATEGIC, with_ends,
    )  # fmt: skip
    yield (
        "apply-conflicts",
        Case("PATCH", f"{one}?fieldManager=other", lambda n: _config_map(data=_map(n, "other")), APPLY, stored),
    )
    ports = [{"containerPort": 1, "protocol": "TCP"}]
    yield "apply-same-keys", Case(
        "PATCH", f"{CORE}/pods/p?fieldManager=m", content_type=APPLY, large=2000,
        body=lambda n: _pod(containers=_named(1, image="x", ports=ports * n)),
    )  # fmt: skip
    yield (
        "many-owners",
        Case("PUT", one, lambda n: _config_map(metadata={"name": "c", "managedFields": _managed(n, 1)}), JSON, stored),
    )
    yield (
        "owners-of-much",
        Case("PUT", one, lambda n: _config_map(metadata={"name": "c", "managedFields": _managed(3, n)}), JSON, stored),
    )


def _queries() -> Iterator[tuple[str, Case]]:
    def listed(query: Callable[[int], str], large: int = 6000) -> Case:
        return Case("GET", lambda n: f"{CORE}/pods?{query(n)}", large=large)

    yield "labels-in", listed(lambda n: f"labelSelector=a+in+({','.join(_map(n))})")
    yield "labels-many", listed(lambda n: f"labelSelector={','.join(f'{key}!=v' for key in _map(n))}")
    yield "labels-brackets", listed(lambda n: f"labelSelector={'(' * n}", 60_000)
    yield "labels-nots", listed(lambda n: f"labelSelector={'!' * n}a", 60_000)
    yield "fields-many", listed(lambda n: f"fieldSelector={','.join(['metadata.name!=v'] * n)}", 3000)
    yield "fields-escaped", listed(lambda n: f"fieldSelector=metadata.name={chr(92) * 2 * n}", 30_000)
    for name in ("continue", "resourceVersion", "limit", "timeout"):
        yield f"query-{name}", listed(partial(_nines, name), 60_000)


def _nines(name: str, count: int) -> str:
    return f"{name}={'9' * count}"


def _services() -> Iterator[tuple[str, Case]]:
    def service(count: int, **spec: Any) -> Document:
        ports = _named(count)
        return {
            "metadata": {"name": "s"},
            "spec": {"ports": [{**one, "port": n + 1} for n, one in enumerate(ports)], **spec},
        }

    for kind in ("ClusterIP", "NodePort"):
        yield f"ports-{kind}", Case("POST", f"{CORE}/services", partial(service, type=kind), large=1300)


CASES = dict([*_custom(), *_definitions(), *_reviews(), *_subresources(), *_patches(), *_queries(), *_services()])


class World:
    """A server in memory, which is given requests as if they had come over HTTP. What is large is not done beside."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        clock = RealClock()
        store = LocalStore(MemoryBackend(), decode_stored, clock=clock.monotonic)
        tokens = {"admin": authenticated("admin", (MASTERS,)), "maker": authenticated("maker")}
        self.server = ApiServer(store, clock, Options(signing_key=create_private_key(), tokens=tokens))
        loop.run_until_complete(self._fill(clock))

    async def _fill(self, clock: RealClock) -> None:
        await self.server.prepare()
        self.server.keep(keep_definitions(self.server.engine, self.server.defined_kinds, clock))
        properties = {name: shape for name, (shape, _) in _LISTS.items()} | {"replicas": {"type": "integer"}}
        spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": properties}
        status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        making = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create"]}
        own = [{"apiGroups": ["x.io"], "resources": [f"r{number}"], "verbs": ["get"]} for number in range(4 * SIZE)]
        group = "rbac.authorization.k8s.io"
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": "maker"}
        subjects = [{"apiGroup": group, "kind": "User", "name": "maker"}]
        for path, made in (
            (DEFINITIONS, _definition("things", {"spec": spec, "status": status})),
            (f"{RBAC}/clusterroles", {"metadata": {"name": "maker"}, "rules": [making, *own]}),
            (f"{RBAC}/clusterrolebindings", {"metadata": {"name": "m"}, "roleRef": reference, "subjects": subjects}),
        ):
            answer = await self.send("POST", path, made)
            assert answer.code == 201, answer.body
        while (await self.send("GET", THINGS)).code != 200:
            await asyncio.sleep(0.01)
        for number in range(40):
            await self.send(
                "POST", f"{CORE}/pods", {**_pod(), "metadata": {"name": f"pod-{number}", "labels": {"a": "b"}}}
            )

    async def send(
        self, method: str, uri: str, body: Document = b"", content_type: str = JSON, token: str = "admin"
    ) -> Response:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        path, _, query = uri.partition("?")
        headers = {"authorization": f"Bearer {token}", "content-type": content_type}
        request = Request(method, path, dict(parse_qsl(query)), headers, data, Peer("127.0.0.1"), uri)
        answer = self.server.application.admit(request) or await self.server.application(request)
        assert isinstance(answer, Response)
        return answer

    def prepared(self, case: Case, count: int) -> Callable[[], Response]:
        """The request of a case, ready to be sent; what it is about is stored."""
        if case.stored is not None:
            path, made = case.stored
            stored = made(count)
            name = stored["metadata"]["name"]
            for method, body, form in (("DELETE", b"", JSON), ("PATCH", {"metadata": {"finalizers": None}}, MERGE)):
                self.loop.run_until_complete(self.send(method, f"{path}/{name}?gracePeriodSeconds=0", body, form))
            answer = self.loop.run_until_complete(self.send("POST", path, stored))
            assert answer.code in (201, 422), answer.body[:500]
        uri = case.path if isinstance(case.path, str) else case.path(count)
        uri += ("&" if "?" in uri else "?") + "dryRun=All" if case.method != "GET" else ""
        body = case.body(count)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return lambda: self.loop.run_until_complete(self.send(case.method, uri, data, case.content_type, case.token))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    async def at_once(_self: Beside, _caller: str, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Beside, "run", at_once)
        loop = asyncio.new_event_loop()
        made = World(loop)
        yield made
        loop.run_until_complete(made.server.stop(0))
        loop.run_until_complete(made.server.store.close())
        loop.close()


REFUSED = Case("POST", f"{CORE}/pods", lambda n: {"metadata": {"name": "z"}, "spec": {"containers": [{}] * n}})
ANSWERED = CASES | {
    "refused": REFUSED,
    "of-another-kind": Case("POST", f"{CORE}/pods", lambda n: {**REFUSED.body(n), "kind": "Node"}),
    "nowhere": Case("PUT", f"{CORE}/pods/nobody", lambda _: {**_pod(), "metadata": {"name": "nobody"}}),
}


@pytest.fixture(scope="module")
def beside_world() -> Iterator[World]:
    """Where every body is large enough to be worked on beside the loop."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body, "is_large", lambda *_: True)
        loop = asyncio.new_event_loop()
        made = World(loop)
        yield made
        loop.run_until_complete(made.server.stop(0))
        loop.run_until_complete(made.server.store.close())
        loop.close()


@pytest.mark.parametrize("name", ANSWERED)
def test_a_request_leaves_nothing_that_knows_itself(beside_world: World, name: str) -> None:
    """Neither what was in it nor an error, which knows all frames that it went through and what was worked on there: of
    a refused body of 90 KB, 65 MB stayed with each try."""
    send = beside_world.prepared(ANSWERED[name], 8)
    send()  # what is remembered is remembered before it counts

    def answered() -> None:
        send()
        beside_world.loop.run_until_complete(asyncio.sleep(0))  # whoever is told of the end has heard of it

    assert garbage_of(answered) == {}


@pytest.mark.parametrize("name", CASES)
def test_a_request_with_twice_as_much_takes_twice_as_long(world: World, name: str) -> None:
    case = CASES[name]
    counts = []
    for count in (2 * SIZE, SIZE, 2 * SIZE):  # what is remembered is remembered before it counts
        send = world.prepared(case, count)
        counts.append(lines_run(send))
        assert send().code != 500 or case.content_type == APPLY  # as Kubernetes has it for what cannot be merged
    assert growing_faster(counts[1], counts[2], new=8 * SIZE) == {}


@pytest.mark.soak
@pytest.mark.parametrize("name", CASES)
def test_eight_times_as_much_takes_no_more_than_about_eight_times_as_long(world: World, name: str) -> None:
    """In processor time of this thread: what is quadratic takes sixty-four times as long, once it is large."""
    case = CASES[name]
    seconds = []
    for count in (case.large // 8, case.large):
        send = world.prepared(case, count)
        took = []
        for _ in range(3):
            gc.collect()
            gc.disable()
            began = time.thread_time()
            send()
            took.append(time.thread_time() - began)
            gc.enable()
        seconds.append(min(took))
    assert seconds[1] < 16 * seconds[0] + 0.03

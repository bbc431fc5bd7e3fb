"""No request keeps the event loop for long, however large it is: what takes long is done beside the loop (issue 14)."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dray.api.generated.core import Container, Pod, PodSpec
from dray.api.meta import ObjectMeta
from dray.server.instance import ADMIN, Instance
from hostile_neighbour import owners
from live_server import LiveServer
from loop_turns import LoopTurns
from patience import PATIENCE, eventually
from server_process import server_on_thread

LONGEST_TURN = 0.02
"""Seconds of processor time of the loop's own thread."""
COUNT = 4000

PODS = "/api/v1/namespaces/default/pods"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SCALE = "/apis/apps/v1/namespaces/default/deployments/x/scale"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
YAML = "application/yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


class World(NamedTuple):
    server: LiveServer
    turns: LoopTurns


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A server with many pods, whose loop is measured. Garbage of the whole test process would count as the loop's."""
    with server_on_thread(tmp_path_factory.mktemp("server")) as (server, instance):
        turns = asyncio.run_coroutine_threadsafe(_fill(instance), instance._tasks[0].get_loop()).result(PATIENCE)
        for path in (CONFIGMAPS, PODS, CLAIMS):  # the first of a kind brings modules with it
            assert server.request("POST", path, {"metadata": {"name": "first"}}).code in (201, 422)
        large = {"metadata": {"name": "large", "ownerReferences": owners(8000)}, "data": {"a": "b"}}
        assert server.request("POST", CONFIGMAPS, large).code == 201
        gc.disable()
        yield World(server, turns)
        gc.enable()


async def _fill(instance: Instance) -> LoopTurns:
    client = instance.client_of(ADMIN)
    spec = PodSpec(containers=(Container(name="main", image="x"),))
    for start in range(0, COUNT, 500):
        metas = [
            ObjectMeta(name=f"pod-{number}", namespace="default", labels={"number": str(number)})
            for number in range(start, start + 500)
        ]
        await asyncio.gather(
            *(client.create(Pod(kind="Pod", api_version="v1", metadata=meta, spec=spec)) for meta in metas)
        )
    return LoopTurns(asyncio.get_running_loop())


def _pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"generateName": "large-"}, "spec": {"containers": [{"name": "main", "image": "x"}], **spec}}


def _configmap(**changes: Any) -> dict[str, Any]:
    return {"metadata": {"generateName": "large-"}, **changes}


def _yaml(head: str, count: int) -> bytes:
    return (head + "".join(f"  key-{number}: value\n" for number in range(count))).encode()


def _claim(selectors: int) -> dict[str, Any]:
    nested = " || ".join(["[1,2].all(x,[1,2].all(y,x==y))"] * 100)
    cel = [{"cel": {"expression": f"{nested} || device.driver == '{number}'"}} for number in range(selectors)]
    exactly = {"deviceClassName": "gpu", "selectors": cel}
    return {"metadata": {"generateName": "c-"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}


def _rules(count: int, start: str) -> list[str]:
    return [f"{start}{' + 1' * 100} > {number}" for number in range(count)]


def _definition() -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": rule} for rule in _rules(40, "self.a")],
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "ruled", "kind": "Ruled"}
    spec = {"group": "x.io", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "ruled.x.io"}, "spec": spec}


def _policy() -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}
    validations = [{"expression": text} for text in _rules(40, "size(object.metadata.name)")]
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": validations}
    return {"metadata": {"name": "p"}, "spec": spec}


def _certificate() -> dict[str, Any]:
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, f"group-{n}") for n in range(20_000)])
    made = x509.CertificateSigningRequestBuilder().subject_name(name)
    signed = made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    text = base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()
    signer = "kubernetes.io/kube-apiserver-client"
    return {"metadata": {"name": "c"}, "spec": {"request": text, "signerName": signer, "usages": ["client auth"]}}


class Heavy(NamedTuple):
    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    accept: str = "application/json"
    code: int = 201


_NEW = "metadata: {generateName: x-}\ndata:\n"
_COPY = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: applied}\ndata:\n"
_CLAIMS = [{"name": f"claim-{number}"} for number in range(2_900)]
_MERGE = "application/merge-patch+json"
_MANY = b"[%b]" % b",".join([b"{}"] * 900_000)
_MANAGED = b'{"metadata":{"managedFields":%b}}' % _MANY

BODIES = {
    "owners": Heavy("POST", CONFIGMAPS, _configmap(metadata={"generateName": "x-", "ownerReferences": owners(10_000)})),
    "owners-twice": Heavy(
        "POST", CONFIGMAPS, _configmap(metadata={"generateName": "y-", "ownerReferences": owners(5_000) * 2})
    ),
    "keys": Heavy("POST", CONFIGMAPS, _configmap(data={f"key-{n}": "v" for n in range(40_000)})),
    "keys-of-a-wrong-type": Heavy(
        "POST", CONFIGMAPS, _configmap(data={f"key-{n}": n for n in range(20_000)}), code=400
    ),
    "unknown-fields": Heavy("POST", CONFIGMAPS, _configmap(**{f"key-{n}": n for n in range(40_000)})),
    "fields-twice": Heavy(
        "POST",
        f"{CONFIGMAPS}?fieldValidation=Strict",
        b'{"data":{%b}}' % b",".join([b'"k":""'] * 50_000),
        code=400,
    ),
    "claims-of-a-container": Heavy(
        "POST",
        PODS,
        _pod(containers=[{"name": "main", "image": "x", "resources": {"claims": _CLAIMS}}]),
        code=422,
    ),
    "too-many-objects": Heavy("POST", PODS, _pod(tolerations=[{}] * 1_000_000), code=413),
    "too-many-owned": Heavy("POST", CONFIGMAPS, _MANAGED, code=413),
    "too-many-values": Heavy("POST", PODS, _pod(containers=[1] * 1_400_000), code=413),
    "short-and-many": Heavy("POST", PODS, _pod(initContainers=[{}] * 2_900), code=422),
    "short-and-wrong": Heavy(
        "POST", CONFIGMAPS, _configmap(metadata={"generateName": "x-", "finalizers": [""] * 8_000}), code=422
    ),
    "containers": Heavy(
        "POST", PODS, _pod(containers=[{"name": f"c-{number}", "image": "x"} for number in range(2_900)])
    ),
    "selectors": Heavy("POST", CLAIMS, _claim(3)),
    "rules": Heavy("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _definition()),
    "policy": Heavy("POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", _policy()),
    "names-in-a-certificate": Heavy(
        "POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", _certificate(), code=422
    ),
    "yaml": Heavy("POST", CONFIGMAPS, _yaml("metadata: {generateName: x-}\ndata:\n", 10_000), YAML),
}

_ANNOTATED = [{"op": "add", "path": "/metadata/annotations", "value": {"k": "v"}}]
_COPIES = [{"op": "copy", "from": "/metadata", "path": f"/metadata/annotations/k{number}"} for number in range(60)]
_FIELDS = ",".join(["a=b"] * 15_000)

CHANGES = {
    "copies-of-copies": Heavy(
        "PATCH", f"{CONFIGMAPS}/first", [*_ANNOTATED, *_COPIES], "application/json-patch+json", code=422
    ),
    "audiences": Heavy(
        "POST",
        "/api/v1/namespaces/default/serviceaccounts/default/token",
        {"spec": {"audiences": ["a" * 1000] * 2_000}},
        code=422,
    ),
    "replace": Heavy("PUT", f"{CONFIGMAPS}/large", _configmap(metadata={"name": "large"}), code=200),
    "merge-patch": Heavy(
        "PATCH", f"{CONFIGMAPS}/large", {"metadata": {"ownerReferences": owners(8_001)}}, _MERGE, code=200
    ),
    "small-patch-of-a-large-object": Heavy("PATCH", f"{CONFIGMAPS}/large", {"data": {"a": "c"}}, _MERGE, code=200),
    "strategic-patch": Heavy(
        "PATCH",
        f"{CONFIGMAPS}/large",
        {"metadata": {"ownerReferences": owners(4_000)}},
        "application/strategic-merge-patch+json",
        code=200,
    ),
    "json-patch": Heavy(
        "PATCH",
        f"{CONFIGMAPS}/large",
        [{"op": "add", "path": "/data/a", "value": "d"}] * 5_000,
        "application/json-patch+json",
        code=200,
    ),
    "apply": Heavy(
        "PATCH", f"{CONFIGMAPS}/applied?fieldManager=m", _yaml(_COPY, 8_000), "application/apply-patch+yaml"
    ),
    "apply-again": Heavy(
        "PATCH",
        f"{CONFIGMAPS}/applied?fieldManager=m",
        _yaml(_COPY, 8_001),
        "application/apply-patch+yaml",
        code=200,
    ),
    "many-parts-in-a-merge-patch": Heavy("PATCH", f"{CONFIGMAPS}/first", _MANAGED, _MERGE, code=413),
    "many-parts-in-a-strategic-patch": Heavy(
        "PATCH", f"{CONFIGMAPS}/first", b'{"data":%b}' % _MANY, "application/strategic-merge-patch+json", code=413
    ),
    "many-operations": Heavy("PATCH", f"{CONFIGMAPS}/first", _MANY, "application/json-patch+json", code=413),
    "many-parts-of-a-scale": Heavy("PUT", SCALE, _MANAGED, code=413),
    "many-parts-of-delete-options": Heavy("DELETE", f"{CONFIGMAPS}/x", b'{"a":%b}' % _MANY, code=413),
    "scale": Heavy(
        "PUT",
        "/apis/apps/v1/namespaces/default/deployments/x/scale",
        _yaml("spec:\n", 10_000),
        YAML,
        code=400,
    ),
    "delete-options": Heavy("DELETE", f"{CONFIGMAPS}/x", _yaml("kind: X\na:\n", 10_000), YAML, code=400),
    "groups": Heavy(
        "POST",
        REVIEWS,
        {
            "spec": {
                "groups": [f"g-{n}" for n in range(50_000)],
                "resourceAttributes": {"verb": "get", "resource": "pods"},
            }
        },
    ),
}

LISTS = {
    "fields-of-a-selector": Heavy("GET", f"{PODS}?fieldSelector={_FIELDS}", code=400),
    **{
        f"{name}-of-nines": Heavy("GET", f"{CONFIGMAPS}?{name}={'9' * 60_000}", code=code)
        for name, code in {"timeout": 400, "timeoutSeconds": 400, "limit": 400, "continue": 400}.items()
    },
    "list": Heavy("GET", PODS, code=200),
    "list-by-label": Heavy("GET", f"{PODS}?labelSelector=number%3D5", code=200),
    "list-by-many-labels": Heavy(
        "GET", f"{PODS}?labelSelector=number+in+({','.join(map(str, range(10_000)))})", code=200
    ),
    "list-by-field": Heavy("GET", f"{PODS}?fieldSelector=spec.nodeName%3Da,status.phase!%3Db", code=200),
    "table": Heavy("GET", PODS, accept=TABLE, code=200),
    "metadata": Heavy("GET", PODS, accept=METADATA, code=200),
    "answer-in-yaml": Heavy("GET", f"{PODS}?limit=150", accept=YAML, code=200),
    "watch-as-table": Heavy("GET", f"{PODS}?watch=1&timeoutSeconds=1", accept=TABLE, code=200),
    "delete-all-tried": Heavy("DELETE", f"{PODS}?dryRun=All", code=200),
    "metrics": Heavy("GET", "/metrics", accept="text/plain", code=200),
    "delete-many": Heavy("DELETE", f"{PODS}?labelSelector=number+in+(1,2)", code=200),
}


@pytest.mark.parametrize("requests", [BODIES, CHANGES, LISTS], ids=["bodies", "changes", "lists"])
def test_no_turn_is_long(world: World, requests: dict[str, Heavy]) -> None:
    longest = {}
    for name, one in requests.items():
        data = one.body if isinstance(one.body, bytes | None) else json.dumps(one.body, separators=(",", ":")).encode()
        world.turns.reset()
        answer = world.server.request(one.method, one.path, data, one.content_type, Accept=one.accept)
        assert answer.code == one.code, (name, answer.body[:500])
        assert world.server.request("GET", f"{CONFIGMAPS}/first").code == 200  # what was made for it is thrown away
        longest[name] = world.turns.longest
    assert {name: turn for name, turn in longest.items() if turn > LONGEST_TURN} == {}


def test_who_owns_fields_does_not_make_an_object_one_that_takes_long(world: World) -> None:
    """Everybody who applies an object has all its fields once more in it; it is thrown away on the loop."""
    server, path = world.server, f"{CONFIGMAPS}/owned"
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned"}}
    body = json.dumps({**data, "data": {f"k{number}": "" for number in range(49_000)}}).encode()
    world.turns.reset()
    codes = [
        server.request("PATCH", f"{path}?fieldManager=m-{number}", body, "application/apply-patch+yaml").code
        for number in range(4)
    ]
    assert codes == [201, 200, 413, 413]
    changed = server.request("PATCH", f"{path}?fieldManager=n", b'{"data":{"a":"b"}}', _MERGE)
    assert changed.code == 200, changed.body[:500]
    more = {f"n{number}": "" for number in range(2_500)}
    changed = server.request("PATCH", f"{path}?fieldManager=n", {"data": more}, _MERGE)
    assert changed.code == 200, changed.body[:500]
    assert "managedFields" not in changed.json["metadata"]
    assert server.request("DELETE", path).code == 200
    assert server.request("GET", f"{CONFIGMAPS}/first").code == 200
    assert world.turns.longest < LONGEST_TURN


RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
POLICIES = "/apis/admissionregistration.k8s.io/v1"
MUTATIONS = {
    "labels": {
        "patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'seen': 'yes'}}}"},
    },
    "annotations": {
        "patchType": "JSONPatch",
        "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'seen': 'yes'}}]"},
    },
}


def test_policies_change_and_judge_large_objects_beside_the_loop(world: World) -> None:
    """Whoever has installed a policy has not given everybody a way to stop the server with a large object."""
    server = world.server
    for name, mutation in MUTATIONS.items():
        spec = {
            "matchConstraints": {"resourceRules": [RULE]},
            "reinvocationPolicy": "IfNeeded",
            "mutations": [mutation],
        }
        made = server.request(
            "POST", f"{POLICIES}/mutatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec}
        )
        assert made.code == 201, made.body
        binding = {"metadata": {"name": name}, "spec": {"policyName": name}}
        assert server.request("POST", f"{POLICIES}/mutatingadmissionpolicybindings", binding).code == 201
    checks = [{"expression": "!has(object.data) || object.data.size() < 1000000"}]
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "validations": checks}
    judge = {"metadata": {"name": "judge"}, "spec": spec}
    assert server.request("POST", f"{POLICIES}/validatingadmissionpolicies", judge).code == 201
    judges = {"metadata": {"name": "judge"}, "spec": {"policyName": "judge", "validationActions": ["Deny"]}}
    assert server.request("POST", f"{POLICIES}/validatingadmissionpolicybindings", judges).code == 201
    longest = {}
    try:
        eventually(
            lambda: "seen" in server.request("POST", CONFIGMAPS, _configmap()).json["metadata"].get("labels", {})
        )
        for name in ("owners", "keys"):
            one = BODIES[name]
            world.turns.reset()
            answer = server.request(one.method, one.path, one.body)
            assert answer.code == 201, answer.body[:500]
            assert answer.json["metadata"]["annotations"] == {"seen": "yes"}
            longest[name] = world.turns.longest
    finally:
        for kind in ("mutatingadmissionpolicybindings", "validatingadmissionpolicybindings"):
            server.request("DELETE", f"{POLICIES}/{kind}")
        for kind in ("mutatingadmissionpolicies", "validatingadmissionpolicies"):
            server.request("DELETE", f"{POLICIES}/{kind}")
    assert {name: turn for name, turn in longest.items() if turn > LONGEST_TURN} == {}


def test_whoever_creates_parameters_of_a_policy_does_not_hold_up_others(world: World) -> None:
    """A binding selects them, and each of them is one evaluation more for every write that the policy is about."""
    server, kind = world.server, {"apiVersion": "v1", "kind": "ConfigMap"}
    for number in range(250):
        made = _configmap(metadata={"name": f"parameter-{number}", "labels": {"is": "parameter"}}, data={"a": "b"})
        assert server.request("POST", CONFIGMAPS, made).code == 201
    rule = {**RULE, "resources": ["secrets"]}
    checks = [{"expression": "params.data.a != object.metadata.name"}]
    spec = {"paramKind": kind, "matchConstraints": {"resourceRules": [rule]}, "validations": checks}
    policy = {"metadata": {"name": "with"}, "spec": spec}
    assert server.request("POST", f"{POLICIES}/validatingadmissionpolicies", policy).code == 201
    reference = {"selector": {"matchLabels": {"is": "parameter"}}, "parameterNotFoundAction": "Deny"}
    bound = {"policyName": "with", "validationActions": ["Deny"], "paramRef": reference}
    for number in range(4):
        binding = {"metadata": {"name": f"with-{number}"}, "spec": bound}
        assert server.request("POST", f"{POLICIES}/validatingadmissionpolicybindings", binding).code == 201
    secrets = "/api/v1/namespaces/default/secrets?dryRun=All"
    try:
        eventually(lambda: server.request("POST", secrets, {"metadata": {"name": "b"}}).code == 422)
        world.turns.reset()
        assert server.request("POST", secrets, {"metadata": {"name": "a"}}).code == 201
        assert world.turns.longest < LONGEST_TURN
    finally:
        server.request("DELETE", f"{POLICIES}/validatingadmissionpolicybindings")
        server.request("DELETE", f"{POLICIES}/validatingadmissionpolicies")


def test_whoever_has_many_budgets_does_not_hold_up_others_with_an_eviction(world: World) -> None:
    """The selectors of all budgets of a namespace are read, whose pod is asked about."""
    server, budgets = world.server, "/apis/policy/v1/namespaces/budgeted/poddisruptionbudgets"
    assert server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "budgeted"}}).code == 201
    for number in range(150):
        values = [f"v{value}" for value in range(1000)]
        selector = {"matchExpressions": [{"key": f"k{number}", "operator": "In", "values": values}]}
        made = {"metadata": {"name": f"b-{number}"}, "spec": {"maxUnavailable": 1, "selector": selector}}
        assert server.request("POST", budgets, made).code == 201
    pods = "/api/v1/namespaces/budgeted/pods"
    meta = {"name": "evicted", "labels": {"k7": "v7"}}
    assert server.request("POST", pods, {"metadata": meta, "spec": _pod()["spec"]}).code == 201
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    assert server.request("PATCH", f"{pods}/evicted/status", running, _MERGE).code == 200
    world.turns.reset()
    answer = server.request("POST", f"{pods}/evicted/eviction", {"metadata": {"name": "evicted"}})
    assert answer.code == 429, answer.body[:500]
    assert server.request("GET", f"{CONFIGMAPS}/first").code == 200  # the turn is over
    assert "b-7 is still being processed" in answer.json["details"]["causes"][0]["message"]
    assert world.turns.longest < LONGEST_TURN


def test_others_are_answered_meanwhile(world: World) -> None:
    """While a thread is at a megabyte of YAML, small requests come and go."""
    data = _yaml(_NEW, 40_000)
    done = threading.Event()

    def send() -> None:
        other = LiveServer(world.server.url, world.server.directory)
        other.request("POST", CONFIGMAPS, data, YAML)
        other.close()
        done.set()

    thread = threading.Thread(target=send)
    thread.start()
    answered = 0
    while not done.is_set():
        assert world.server.request("GET", f"{CONFIGMAPS}/first").code == 200
        answered += 1
    thread.join()
    assert answered > 20


def test_definitions_are_compiled_beside_the_loop(world: World) -> None:
    """The first object of a custom resource needs all patterns of its definition, which take a while."""
    names = {"plural": "patterns", "singular": "pattern", "kind": "Pattern", "listKind": "PatternList"}
    fields = {f"f{number}": {"type": "string", "pattern": rf"^\pL{{1,3}}{number}$"} for number in range(150)}
    schema = {"type": "object", "properties": fields}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    patterns = "/apis/example.com/v1/namespaces/default/patterns"
    world.turns.reset()
    made = world.server.request("POST", definitions, {"metadata": {"name": "patterns.example.com"}, "spec": spec})
    assert made.code == 201, made.body
    eventually(lambda: world.server.request("GET", patterns).code == 200)
    first = {"apiVersion": "example.com/v1", "kind": "Pattern", "metadata": {"name": "first"}, "f1": "abc1"}
    assert world.server.request("POST", patterns, first).code == 201
    assert world.turns.longest < LONGEST_TURN


def test_columns_of_a_large_object_are_made_beside_the_loop(world: World) -> None:
    """A definition may have hundreds, each with a path that goes through all of the object."""
    names = {"plural": "columns", "singular": "column", "kind": "Column", "listKind": "ColumnList"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    columns = [{"name": f"c{number}", "type": "string", "jsonPath": f".data[*].a{number}"} for number in range(200)]
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version["additionalPrinterColumns"] = columns
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    path = "/apis/example.com/v1/namespaces/default/columns"
    made = world.server.request("POST", definitions, {"metadata": {"name": "columns.example.com"}, "spec": spec})
    assert made.code == 201, made.body
    eventually(lambda: world.server.request("GET", path).code == 200)
    large = {
        "apiVersion": "example.com/v1",
        "kind": "Column",
        "metadata": {"name": "large"},
        "data": [{"a1": "x"}] * 4000,
    }
    change = {"metadata": {"labels": {"a": "b"}}}
    longest = {}
    for name, request in {
        "create": ("POST", path, large, "application/json"),
        "get": ("GET", f"{path}/large", None, ""),
        "patch": ("PATCH", f"{path}/large", change, _MERGE),
        "watch": ("GET", f"{path}?watch=1&timeoutSeconds=1", None, ""),
        "delete": ("DELETE", f"{path}/large", None, ""),
    }.items():
        world.turns.reset()
        answer = world.server.request(*request, Accept=TABLE)
        assert answer.code in (200, 201), answer.body[:500]
        longest[name] = world.turns.longest
    assert {name: turn for name, turn in longest.items() if turn > LONGEST_TURN} == {}

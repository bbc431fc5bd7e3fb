"""The server keeps what its OpenAPI documents say, for requests that are made up from those documents.

Whatever the request, the answer is a documented success, in the documented shape, or a `Status` with a client error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from live_server import LiveServer, running_server
from patience import PATIENCE

RESOURCE = "apis/resource.k8s.io/v1"
ALPHA = "apis/resource.k8s.io/v1alpha3"
CLUSTER = "apis/cluster.open-cluster-management.io/v1beta1"
CORE = "api/v1"

EXISTING = "existing"
NAMESPACE = "default"
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]

SLICES = {
    RESOURCE: ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"),
    ALPHA: ("devicetaintrules", "resourceslicepatches"),
    CORE: ("configmaps", "nodes"),
    CLUSTER: ("placements", "placementdecisions"),
}
"""The documents, and the resources of each that requests are made for."""
LARGE_SLICES = SLICES | {CORE: (*SLICES[CORE], "pods")}
"""With pods, whose bodies take long to make up."""

_CLAIM_SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
_POOL = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
SPECS: dict[str, dict[str, Any]] = {
    "deviceclasses": {"spec": {}},
    "resourceclaims": {"spec": _CLAIM_SPEC},
    "resourceclaimtemplates": {"spec": {"spec": _CLAIM_SPEC}},
    "resourceslices": {"spec": {"driver": "gpu.example.com", "nodeName": "n1", "pool": _POOL}},
    "devicetaintrules": {"spec": {"taint": {"key": "example.com/broken", "effect": "NoExecute"}}},
    "resourceslicepatches": {"spec": {"devices": {"attributes": {"gpu.example.com/rack": {"string": "r1"}}}}},
    "configmaps": {"data": {"a": "b"}},
    "nodes": {},
    "pods": {"spec": {"containers": [{"name": "main", "image": "image"}]}},
    "placements": {"spec": {}},
    "placementdecisions": {},
}
"""What an object needs to be accepted, so that reads, changes and deletes have something to work on."""


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server of this module's own: made-up requests delete whole collections."""
    with running_server(tmp_path_factory.mktemp("schemathesis") / "state") as running:
        yield running


def document(server: LiveServer, name: str, resources: tuple[str, ...]) -> dict[str, Any]:
    """A document, cut to its slice and without watches, which would not end by themselves."""
    found: dict[str, Any] = server.request("GET", f"/openapi/v3/{name}").json
    kept = {path: item for path, item in found["paths"].items() if resource_in(path, name) in resources}
    assert {resource_in(path, name) for path in kept} == set(resources)
    for item in kept.values():
        listing = item.get("get", {})
        listing["parameters"] = [one for one in listing.get("parameters", []) if one["name"] != "watch"]
    del found["security"]  # or most requests would be made by nobody
    return found | {"paths": kept}


def resource_in(path: str, name: str) -> str:
    """The resource that a path of a document is about."""
    return path.removeprefix(f"/{name}/").removeprefix("namespaces/{namespace}/").split("/")[0]


def ensure_existing(server: LiveServer, name: str, path: str) -> None:
    """Makes the object that requests aim at, if an earlier request deleted it."""
    resource = resource_in(path, name)
    scope = f"namespaces/{NAMESPACE}/" if "{namespace}" in path else ""
    body = {"metadata": {"name": EXISTING}, **SPECS[resource]}
    made = server.request("POST", f"/{name}/{scope}{resource}", body)
    assert made.code in (201, 409), made.body


def cases(operation: Any) -> st.SearchStrategy[schemathesis.Case[Any]]:
    """Requests that fit the schema and ones that do not, half of them about an object that exists."""
    modes = schemathesis.GenerationMode
    made = operation.as_strategy(modes.POSITIVE) | operation.as_strategy(modes.NEGATIVE)
    return st.builds(aimed, made, st.booleans())


def aimed(case: schemathesis.Case[Any], likely: bool) -> schemathesis.Case[Any]:
    """A request with a chance to succeed, if it is to be likely: for the object that exists, with an accepted body.

    The body of a patch stays made up.
    """
    if likely:
        case.query.clear()
        known = {"name": EXISTING, "namespace": NAMESPACE}
        case.path_parameters.update({key: known[key] for key in case.path_parameters if key in known})
        *_, resource, last = case.path.split("/")
        if case.method == "POST" and last in SPECS:
            case.body = {"metadata": {"generateName": "made-"}, **SPECS[last]}
        elif case.method == "PUT" and resource in SPECS:
            case.body = {"metadata": {"name": EXISTING}, **SPECS[resource]}
    return case


def check(case: schemathesis.Case[Any], session: requests.Session, server: LiveServer) -> None:
    """Sends a request; a connection that drops or hangs raises."""
    # Not `case.call`: it sends again what a dropped connection lost, and trusts authorities of its own choice.
    response = session.request(**case.as_transport_kwargs(base_url=server.url), timeout=PATIENCE)
    case.validate_response(response, checks=CHECKS)
    if response.status_code >= 300:
        # The documents have a `default` answer, which any code fits: so say here what it may be.
        assert 400 <= response.status_code < 500, (case.as_curl_command(), response.text)
        status = response.json()
        assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", response.status_code)
    else:
        assert str(response.status_code) in case.operation.definition.raw["responses"], case.as_curl_command()


def exercise(server: LiveServer, name: str, resources: tuple[str, ...], examples: int) -> set[int]:
    """Sends that many requests to every operation of a slice; which codes came back."""
    schema = schemathesis.openapi.from_dict(document(server, name, resources))
    codes: set[int] = set()
    with requests.Session() as session:
        session.trust_env = False  # neither a proxy nor other authorities
        session.verify = str(server.directory / "pki" / "ca.crt")
        session.headers["Authorization"] = f"Bearer {server.token}"
        session.hooks["response"].append(lambda response, **_: codes.add(response.status_code))
        for result in schema.get_all_operations():
            assert isinstance(result, Ok), result
            operation = result.ok()
            if "{name}" in operation.path:
                ensure_existing(server, name, operation.path)

            @settings(
                max_examples=examples,
                derandomize=True,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=cases(operation))
            def send(case: schemathesis.Case[Any]) -> None:
                check(case, session, server)

            send()
    return codes


@pytest.mark.parametrize("name", SLICES)
def test_made_up_requests_get_documented_answers(own_server: LiveServer, name: str) -> None:
    assert 200 in exercise(own_server, name, SLICES[name], examples=2)


@pytest.mark.soak
@pytest.mark.parametrize("name", SLICES)
def test_many_made_up_requests_get_documented_answers(own_server: LiveServer, name: str) -> None:
    assert exercise(own_server, name, LARGE_SLICES[name], examples=60) >= {200, 201, 400, 404, 422}

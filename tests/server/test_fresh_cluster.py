"""A whole cluster as `dray up` starts it: what it has by itself, and what ordinary users see of devices in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from live_server import Answer, LiveServer, running_server
from patience import eventually

RESOURCE = "/apis/resource.k8s.io/v1"
RULES = f"{RESOURCE}/devicetaintrules"
PATCHES = "/apis/resource.k8s.io/v1alpha3/resourceslicepatches"
SLICES = f"{RESOURCE}/resourceslices"
CLAIMS = f"{RESOURCE}/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
USER_TOKEN = "a-token-of-jane-that-is-long-enough"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    directory = tmp_path_factory.mktemp("fresh")
    tokens = directory / "tokens.csv"
    tokens.write_text(f"{USER_TOKEN},jane,1\n")
    options = ("--nodes", "2", "--profile", "gpu-8", "--token-file", str(tokens))
    with running_server(directory / "state", *options, program="up") as running:
        yield running


def created(cluster: LiveServer, path: str, name: str, **fields: Any) -> dict[str, Any]:
    made = cluster.request("POST", path, {"metadata": {"name": name}, **fields})
    assert made.code == 201, made.body
    obj: dict[str, Any] = made.json
    return obj


def claim_spec(device_class: str, **request: Any) -> dict[str, Any]:
    return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": device_class, **request}}]}}


def pod_spec(**claim: str) -> dict[str, Any]:
    """A pod, with a claim if its source is given."""
    containers: dict[str, Any] = {"name": "main", "image": "image"}
    if not claim:
        return {"containers": [containers]}
    return {
        "containers": [containers | {"resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", **claim}],
    }


def run_pod(cluster: LiveServer, name: str, **claim: str) -> None:
    created(cluster, PODS, name, spec=pod_spec(**claim))
    eventually(lambda: cluster.request("GET", f"{PODS}/{name}").json["status"].get("phase") == "Running")


@pytest.mark.req("5055-36", "5027-40")
@pytest.mark.parametrize("path", [RULES, PATCHES])
def test_the_system_makes_no_rules_and_no_patches(cluster: LiveServer, path: str) -> None:
    before = cluster.request("GET", path).json
    assert before["items"] == []
    name = path.rsplit("/", 1)[1]
    created(cluster, CLAIMS, name, spec=claim_spec("gpu.example.com"))
    run_pod(cluster, name, resourceClaimName=name)
    since = before["metadata"]["resourceVersion"]
    assert list(cluster.watch(f"{path}?watch=true&timeoutSeconds=1&resourceVersion={since}")) == []


@pytest.mark.req("4381-228", "4381-266")
def test_the_use_of_devices_shows_in_pod_claim_and_allocation(cluster: LiveServer) -> None:
    templates = f"{RESOURCE}/namespaces/default/resourceclaimtemplates"
    created(cluster, templates, "template", spec={"spec": claim_spec("gpu.example.com")})
    run_pod(cluster, "user", resourceClaimTemplateName="template")
    pod = cluster.request("GET", f"{PODS}/user").json
    assert [one["name"] for one in pod["spec"]["resourceClaims"]] == ["gpu"]
    made = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    claim = cluster.request("GET", f"{CLAIMS}/{made}").json
    assert claim["status"]["allocation"]["devices"]["results"][0]["request"] == "gpu"


@pytest.mark.req("4381-211")
def test_pods_without_claims_run_next_to_one_that_cannot(cluster: LiveServer) -> None:
    created(cluster, CLAIMS, "impossible", spec=claim_spec("no-such-class"))
    created(cluster, PODS, "stuck", spec=pod_spec(resourceClaimName="impossible"))
    run_pod(cluster, "plain")
    plain = cluster.request("GET", f"{PODS}/plain").json
    assert "resourceClaims" not in plain["spec"]
    assert "resourceClaimStatuses" not in plain["status"]
    assert "nodeName" not in cluster.request("GET", f"{PODS}/stuck").json["spec"]


def as_jane(cluster: LiveServer, path: str, body: dict[str, Any]) -> Answer:
    return cluster.request("POST", path, body, Authorization=f"Bearer {USER_TOKEN}")


@pytest.mark.req("5055-59")
def test_an_ordinary_user_may_tolerate_every_taint_but_not_make_rules(cluster: LiveServer) -> None:
    group = "rbac.authorization.k8s.io"
    created(
        cluster,
        f"/apis/{group}/v1/namespaces/default/rolebindings",
        "jane",
        roleRef={"apiGroup": group, "kind": "ClusterRole", "name": "edit"},
        subjects=[{"apiGroup": group, "kind": "User", "name": "jane"}],
    )
    spec = claim_spec("gpu.example.com", tolerations=[{"operator": "Exists"}])
    made = eventually(lambda: _unless_forbidden(as_jane(cluster, CLAIMS, {"metadata": {"name": "bold"}, "spec": spec})))
    assert made.code == 201, made.body
    assert made.json["spec"]["devices"]["requests"][0]["exactly"]["tolerations"] == [{"operator": "Exists"}]
    rule = {"taint": {"key": "example.com/broken", "effect": "NoSchedule"}}
    assert as_jane(cluster, RULES, {"metadata": {"name": "hers"}, "spec": rule}).code == 403


def _unless_forbidden(answer: Answer) -> Answer | None:
    return None if answer.code == 403 else answer


@pytest.mark.req("4381-220")
@pytest.mark.parametrize("both", [{}, {"resourceClaimName": "a", "resourceClaimTemplateName": "b"}])
def test_a_pod_names_one_source_of_its_claim(cluster: LiveServer, both: dict[str, str]) -> None:
    spec = pod_spec() | {"resourceClaims": [{"name": "gpu", **both}]}
    refused = cluster.request("POST", PODS, {"metadata": {"name": "sourceless"}, "spec": spec})
    assert refused.code == 422
    assert refused.causes == {("FieldValueInvalid", "spec.resourceClaims[0]")}
    assert "must specify one of: resourceClaimName, resourceClaimTemplateName" in refused.json["message"]


@pytest.mark.parametrize(
    ("path", "spec", "unknown"),
    [
        pytest.param(SLICES, {"driverName": "gpu.example.com"}, "spec.driverName", marks=pytest.mark.req("4381-251")),
        pytest.param(
            f"{RESOURCE}/deviceclasses",
            {"suitableNodes": {"nodeSelectorTerms": []}},
            "spec.suitableNodes",
            marks=pytest.mark.req("4381-254"),
        ),
        pytest.param(
            f"{RESOURCE}/deviceclasses",
            {"nodeSelector": {}},
            "spec.nodeSelector",
            marks=pytest.mark.req("4381-254"),
        ),
    ],
)
def test_fields_of_earlier_designs_are_unknown(
    cluster: LiveServer, path: str, spec: dict[str, Any], unknown: str
) -> None:
    body = {"metadata": {"name": "early"}, "spec": spec}
    refused = cluster.request("POST", f"{path}?fieldValidation=Strict", body)
    assert refused.code == 400
    assert f'unknown field "{unknown}"' in refused.json["message"]


def slices_in(cluster: LiveServer, selector: str) -> list[str]:
    listed = cluster.request("GET", f"{SLICES}?fieldSelector={selector}").json
    return [one["metadata"]["name"] for one in listed["items"]]


@pytest.mark.req("4381-04", "SVS-36")
@pytest.mark.parametrize(
    "selector", ["spec.nodeName=selected-node", "spec.driver=selected.example.com", "spec.pool.name=selected-pool"]
)
def test_slices_are_listed_watched_and_deleted_by_field(cluster: LiveServer, selector: str) -> None:
    other = {"driver": "other.example.com", "nodeName": "other-node"}
    pool = {"name": "other-pool", "generation": 1, "resourceSliceCount": 1}
    selected = {"driver": "selected.example.com", "nodeName": "selected-node", "pool": pool | {"name": "selected-pool"}}
    created(cluster, SLICES, "one", spec=selected)
    created(cluster, SLICES, "two", spec=other | {"pool": pool})
    assert slices_in(cluster, selector) == ["one"]
    events = list(cluster.watch(f"{SLICES}?fieldSelector={selector}&watch=true&timeoutSeconds=1"))
    assert [event["object"]["metadata"]["name"] for event in events] == ["one"]
    assert cluster.request("DELETE", f"{SLICES}?fieldSelector={selector}").code == 200
    assert slices_in(cluster, selector) == []
    assert slices_in(cluster, "spec.driver=other.example.com") == ["two"]
    assert cluster.request("DELETE", f"{SLICES}/two").code == 200


@pytest.mark.req("4381-04")
@pytest.mark.parametrize(("method", "query"), [("GET", ""), ("GET", "&watch=true&timeoutSeconds=1"), ("DELETE", "")])
def test_slices_cannot_be_selected_by_other_fields(cluster: LiveServer, method: str, query: str) -> None:
    refused = cluster.request(method, f"{SLICES}?fieldSelector=spec.pool.generation=1{query}")
    assert (refused.code, refused.json["reason"]) == (400, "BadRequest")
    assert "spec.pool.generation" in refused.json["message"]

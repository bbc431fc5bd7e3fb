"""What objects use up of quotas."""

from typing import Any

import pytest

from controller_world import manifest, pod, typed
from dray.api.generated.core import ResourceQuotaSpec, ScopedResourceSelectorRequirement, ScopeSelector
from dray.validation.quota_scopes import is_in_scope
from dray.validation.quota_usage import counted_kind, usage

RESOURCE = "resource.k8s.io/v1"
DEVICES = "deviceclass.resource.k8s.io/devices"
CLAIMS = "resourceclaims.resource.k8s.io"


def claim(*requests: Any) -> Any:
    named = [{"name": f"r{at}", **request} for at, request in enumerate(requests)]
    return typed(manifest(RESOURCE, "ResourceClaim", "c", spec={"devices": {"requests": named}}))


def exactly(class_name: str, count: int = 1, mode: str = "ExactCount") -> Any:
    return {"exactly": {"deviceClassName": class_name, "count": count, "allocationMode": mode}}


def amounts(resource: str, obj: Any) -> dict[str, str]:
    return {name: str(amount) for name, amount in usage(resource, obj).items() if not name.startswith("count/")}


@pytest.mark.req("4381-146", "4381-147", "SVS-60")
@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (claim(exactly("gpu", 5), exactly("gpu", 3), exactly("nic")), {"gpu": "8", "nic": "1"}),
        (claim(exactly("gpu", mode="All")), {"gpu": "32"}),
        (
            claim(
                {
                    "firstAvailable": [
                        {"name": "a", "deviceClassName": "gpu", "count": 2, "allocationMode": "ExactCount"},
                        {"name": "b", "deviceClassName": "gpu", "count": 4, "allocationMode": "ExactCount"},
                        {"name": "c", "deviceClassName": "cpu", "count": 9, "allocationMode": "ExactCount"},
                    ]
                }
            ),
            {"gpu": "4", "cpu": "9"},
        ),
    ],
)
def test_claims_count_devices_by_class(subject: Any, expected: dict[str, str]) -> None:
    assert amounts(CLAIMS, subject) == {f"{name}.{DEVICES}": count for name, count in expected.items()}


def container(cpu: str, **more: Any) -> Any:
    return {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container("1"), container("500m")]}, "1500m"),
        ({"containers": [container("1")], "initContainers": [container("3")]}, "3"),
        ({"containers": [container("1")], "initContainers": [container("2", restartPolicy="Always")]}, "3"),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("2", restartPolicy="Always"), container("4")],
            },
            "6",
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, "1250m"),
    ],
)
def test_pods_count_at_their_peak(spec: Any, cpu: str) -> None:
    used = amounts("pods", typed(pod("p", **spec)))
    assert used["pods"] == "1"
    assert used["cpu"] == used["requests.cpu"] == cpu


def test_a_finished_pod_counts_only_as_an_object() -> None:
    done = typed({**pod("p"), "status": {"phase": "Failed"}})
    assert {name: str(amount) for name, amount in usage("pods", done).items()} == {"count/pods": "1"}


@pytest.mark.parametrize(
    ("scopes", "spec", "expected"),
    [
        ((), {}, True),
        (("Terminating",), {"activeDeadlineSeconds": 1}, True),
        (("Terminating",), {}, False),
        (("NotTerminating",), {}, True),
        (("BestEffort",), {}, True),
        (("NotBestEffort",), {"containers": [container("1")]}, True),
        (("NotBestEffort", "Terminating"), {"containers": [container("1")]}, False),
        (("NewScope",), {}, False),
    ],
)
def test_scopes(scopes: tuple[str, ...], spec: Any, expected: bool) -> None:
    assert is_in_scope(ResourceQuotaSpec(scopes=scopes), typed(pod("p", **spec))) is expected


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [("In", ("high",), True), ("NotIn", ("high",), False), ("Exists", (), True), ("DoesNotExist", (), False)],
)
def test_priority_classes(operator: str, values: tuple[str, ...], expected: bool) -> None:
    requirement = ScopedResourceSelectorRequirement(scope_name="PriorityClass", operator=operator, values=values)
    spec = ResourceQuotaSpec(scope_selector=ScopeSelector(match_expressions=(requirement,)))
    assert is_in_scope(spec, typed(pod("p", priorityClassName="high"))) is expected
    assert not is_in_scope(spec, claim())


@pytest.mark.parametrize(
    ("name", "plural"),
    [
        ("count/deployments.apps", "deployments"),
        ("count/pods", "pods"),
        (f"gpu.{DEVICES}", "resourceclaims"),
        ("services", "services"),
        ("requests.storage", "persistentvolumeclaims"),
        ("limits.memory", "pods"),
        ("count/robots.example.com", None),
        ("nonsense", None),
    ],
)
def test_what_has_to_be_counted(name: str, plural: str | None) -> None:
    kind = counted_kind(name)
    assert (kind.plural if kind is not None else None) == plural

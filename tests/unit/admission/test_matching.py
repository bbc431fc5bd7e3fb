"""Which requests rules and selectors are about."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dray.admission.matching import BadSelector, Matcher, NamespaceMissing
from dray.admission.request import Request, Resource
from dray.api.generated.admissionregistration import NamedRuleWithOperations
from dray.api.meta import LabelSelector, ObjectMeta

PODS = Resource("", "v1", "pods", "Pod")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace")
SCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
OLD_SCALERS = Resource("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
CALLER: Any = SimpleNamespace(user="u", uid="", groups=(), extra={})


def request(
    resource: Resource = PODS, operation: str = "CREATE", subresource: str = "", namespace: str = "n", **more: Any
) -> Request:
    return Request(operation, resource, subresource, namespace, "x", CALLER, **more)


def rule(**fields: Any) -> NamedRuleWithOperations:
    usual = {"api_groups": ("",), "api_versions": ("v1",), "operations": ("CREATE",), "resources": ("pods",)}
    return NamedRuleWithOperations(**(usual | fields))


def matched(matcher: Matcher, asked: Request, new: Any = None, old: Any = None) -> Resource | None:
    return matcher.match(asked, new, old, {"n": {"env": "prod"}}.get)


@pytest.mark.parametrize(
    ("fields", "asked", "matches"),
    [
        ({}, request(), True),
        ({}, request(operation="UPDATE"), False),
        ({"operations": ("*",)}, request(operation="DELETE"), True),
        ({}, request(subresource="status"), False),
        ({"resources": ("pods/status",)}, request(subresource="status"), True),
        ({"resources": ("pods/*",)}, request(subresource="log"), True),
        ({"resources": ("*/status",)}, request(subresource="status"), True),
        ({"resources": ("*/*",)}, request(), True),
        ({"resources": ("*",)}, request(subresource="status"), False),
        ({"api_groups": ("apps",)}, request(), False),
        ({"api_groups": ("*",), "api_versions": ("*",)}, request(), True),
        ({"scope": "Cluster"}, request(), False),
        ({"scope": "Namespaced"}, request(), True),
        ({"scope": "Cluster", "resources": ("namespaces",)}, request(NAMESPACES), True),
        ({"scope": "Namespaced", "resources": ("namespaces",)}, request(NAMESPACES), False),
        ({"resource_names": ("x",)}, request(), True),
        ({"resource_names": ("y",)}, request(), False),
    ],
)
def test_rules(fields: dict[str, Any], asked: Request, matches: bool) -> None:
    assert (matched(Matcher((rule(**fields),)), asked) is asked.resource) is matches
    assert (matched(Matcher(None, excluded=(rule(**fields),)), asked) is None) is matches


def test_no_rules_are_for_all_requests_and_an_empty_list_for_none() -> None:
    assert matched(Matcher(None), request()) is PODS
    assert matched(Matcher(()), request()) is None


def test_equivalent_versions_are_matched_where_that_is_wanted() -> None:
    asked = request(SCALERS, equivalents=(OLD_SCALERS,))
    old = rule(api_groups=("autoscaling",), resources=("horizontalpodautoscalers",))
    assert matched(Matcher((old,), match_policy="Exact"), asked) is None
    assert matched(Matcher((old,), match_policy="Equivalent"), asked) is OLD_SCALERS
    both = rule(api_groups=("autoscaling",), api_versions=("*",), resources=("horizontalpodautoscalers",))
    assert matched(Matcher((both,), match_policy="Equivalent"), asked) is SCALERS


def labelled(**labels: str) -> Any:
    return SimpleNamespace(metadata=ObjectMeta(labels=labels))


def test_selectors() -> None:
    prod = Matcher(None, namespaces=LabelSelector(match_labels={"env": "prod"}))
    assert matched(prod, request()) is PODS
    assert matched(prod, request(namespace="")) is PODS  # in no namespace at all
    assert matched(prod, request(NAMESPACES, namespace="new"), labelled(env="test")) is None
    assert matched(prod, request(NAMESPACES, namespace="new"), labelled(env="prod")) is NAMESPACES
    with pytest.raises(NamespaceMissing, match="gone"):
        matched(prod, request(namespace="gone"))
    mine = Matcher(None, objects=LabelSelector(match_labels={"app": "a"}))
    assert matched(mine, request(), labelled(app="a")) is PODS
    assert matched(mine, request(), labelled(app="b"), labelled(app="a")) is PODS  # it was one of them
    assert matched(mine, request(), labelled(app="b")) is None
    wrong = Matcher((rule(),), objects=LabelSelector(match_labels={"no key": "a"}))
    assert matched(wrong, request(operation="DELETE")) is None
    with pytest.raises(BadSelector, match="no key"):
        matched(wrong, request())

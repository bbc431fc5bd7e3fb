"""The rules for questions about pools."""

from __future__ import annotations

from typing import Any

from dray import validation

QUESTION: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1alpha3",
    "kind": "ResourcePoolStatusRequest",
    "metadata": {"name": "question", "resourceVersion": "1"},
    "spec": {"driver": "gpu.example.com"},
}


def test_a_question_is_about_a_hundred_pools_unless_it_says_otherwise() -> None:
    """Recorded from Kubernetes 1.37."""
    assert validation.default(QUESTION)["spec"]["limit"] == 100
    few = {**QUESTION, "spec": {**QUESTION["spec"], "limit": 3}}
    assert validation.default(few)["spec"]["limit"] == 3


def test_a_question_does_not_change(verdict: Any) -> None:
    asked = validation.default(QUESTION)
    assert verdict(asked, asked) == set()
    assert verdict({**asked, "spec": {**asked["spec"], "limit": 99}}, asked) == {("Invalid", "spec")}
    assert verdict(asked, QUESTION) == set()  # as it was stored before there was a default

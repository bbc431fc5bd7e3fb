"""Which budgets the eviction API asks about a pod."""

from __future__ import annotations

from typing import Any

import pytest

import builders
from dray.api.generated.core import Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.eviction.budgets import Keepers, holds_back, waiting_for
from local_server import typed


def pod(name: str = "p", *, phase: str = "Running", ready: str = "True", **labels: str) -> Pod:
    made = builders.manifest("v1", "Pod", name, namespace="ml", spec={"containers": []})
    made["metadata"]["labels"] = labels
    made["status"] = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    found = typed(made)
    assert isinstance(found, Pod)
    return found


def budget(name: str, allowed: int = 0, selector: Any = None, *, namespace: str = "ml", **more: Any) -> Any:
    spec = {"selector": selector, **{key: value for key, value in more.items() if key == "unhealthyPodEvictionPolicy"}}
    made = builders.manifest("policy/v1", "PodDisruptionBudget", name, namespace=namespace, spec=spec)
    healthy = {key: value for key, value in more.items() if key.endswith("Healthy")}
    made["status"] = {"disruptionsAllowed": allowed, **healthy}
    found = typed(made)
    assert isinstance(found, PodDisruptionBudget)
    return found


WEB = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize(
    ("asked", "about", "found"),
    [
        (pod(app="web"), budget("b", 0, WEB), True),
        (pod(app="web"), budget("b", 0, {}), True),
        (pod(app="web"), budget("b", 0, None), False),
        (pod(app="web"), budget("b", 0, WEB, namespace="other"), False),
        (pod(app="api"), budget("b", 0, WEB), False),
        (pod(app="web", phase="Pending", ready="False"), budget("b", 0, WEB), False),
        (pod(app="web", phase="Failed", ready="False"), budget("b", 0, WEB), False),
        (pod(app="web", ready="False"), budget("b", 0, WEB), True),
        (pod(app="web", ready="False"), budget("b", 0, WEB, currentHealthy=1, desiredHealthy=2), True),
        (pod(app="web", ready="False"), budget("b", 0, WEB, currentHealthy=2, desiredHealthy=2), False),
        (pod(app="web", ready="False"), budget("b", 0, WEB, unhealthyPodEvictionPolicy="AlwaysAllow"), False),
        (pod(app="web"), budget("b", 0, WEB, unhealthyPodEvictionPolicy="AlwaysAllow"), True),
    ],
)
def test_who_is_asked_about_a_pod(asked: Pod, about: PodDisruptionBudget, found: bool) -> None:
    assert Keepers([about]).of(asked) == ([about] if found else [])
    assert waiting_for([asked], Keepers([about])) == ({"ml/b": 1} if found else {})


def test_several_budgets_let_nobody_go_whatever_they_allow() -> None:
    many = [budget("a", 5, WEB), budget("b", 5, {}, unhealthyPodEvictionPolicy="AlwaysAllow")]
    for ready in ("True", "False"):
        found = Keepers(many).of(pod(app="web", ready=ready))
        assert found == many
        assert holds_back(found)
    assert waiting_for([pod("p", app="web"), pod("q", app="api")], Keepers(many)) == {"ml/a and ml/b": 1}

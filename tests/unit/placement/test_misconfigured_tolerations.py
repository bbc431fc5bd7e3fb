"""Tolerations that mean nothing are reported, not guessed at."""

from __future__ import annotations

from typing import Any

import pytest

from placement_fleet import decide, decisions, managed, placement, reasons


@pytest.mark.req("OCM-08", "OCM-10", "SVS-77")
@pytest.mark.parametrize("toleration", [{}, {"operator": "Equal"}, {"key": "a", "operator": "Exists", "value": "b"}])
def test_a_faulty_toleration_empties_the_decisions_and_says_so(toleration: dict[str, Any]) -> None:
    wanted = placement(tolerations=[{"key": "fine"}, toleration])
    result = decide(wanted, managed("cluster1"), decisions("cluster1"))
    assert result.decisions == ()
    assert reasons(result) == {
        "PlacementMisconfigured": "Misconfigured",
        "PlacementSatisfied": "NoManagedClusterMatched",
    }
    assert result.conditions["PlacementMisconfigured"].message.startswith("TaintToleration: spec.tolerations[1]: ")

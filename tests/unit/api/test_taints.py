"""Taints of devices, nodes and clusters are written as kubectl writes them."""

from __future__ import annotations

from dray.api import cluster
from dray.api.generated import core
from dray.api.resource import DeviceTaint
from dray.api.taints import TaintName, taint_text


def test_with_and_without_a_value() -> None:
    assert taint_text(core.Taint(key="k", value="v", effect="NoExecute")) == "k=v:NoExecute"
    assert taint_text(DeviceTaint(key="k", effect="NoSchedule")) == "k:NoSchedule"
    assert taint_text(cluster.Taint(key="k", value="v", effect="NoSelect")) == "k=v:NoSelect"


def test_the_name_leaves_the_value_out() -> None:
    assert str(TaintName.of(core.Taint(key="k", value="v", effect="NoExecute"))) == "k:NoExecute"

"""A rule that hits too many, and applications that need time: stock kubectl on a `dray up` with both settings."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest
import yaml

import builders
from patience import KUBECTL_PATIENCE, eventually
from taint_cluster import TaintCluster, taint_cluster

NAME = "devicetaintrule/too-many"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaintCluster]:
    options = ("--max-evictions", "2", "--eviction-policy", "checkpoint=deadline:1h,selector:app=db")
    with taint_cluster(tmp_path_factory.mktemp("guarded"), *options) as running:
        yield running


def rule() -> str:
    tainted = builders.taint("example.com/broken", "NoExecute")
    return yaml.safe_dump(builders.taint_rule("too-many", {"pool": "node-1"}, tainted))


@pytest.mark.req("3902-21")
def test_too_many_are_held_confirmed_with_the_command_that_is_told_and_leave_when_their_data_is_safe(
    cluster: TaintCluster,
) -> None:
    kubectl = cluster.kubectl
    databases = cluster.run_pods("db", 1, "node-1")
    others = cluster.run_pods("web", 2, "node-1")
    kubectl("apply", "-f", "-", stdin=rule())
    kubectl("wait", "--for=condition=EvictionHeld", NAME, KUBECTL_PATIENCE)
    assert cluster.pods("web") == others
    told = kubectl("get", NAME, "-o", 'jsonpath={.status.conditions[?(@.type=="EvictionHeld")].message}')
    program, *arguments = shlex.split(told.split("To confirm: ")[1])
    assert program == "kubectl"
    kubectl(*arguments)
    eventually(lambda: len(cluster.pods("web")) == 2 and not set(cluster.pods("web")) & set(others))
    kubectl("wait", "--for=condition=dray.dev/EvictionWaiting", f"pod/{databases[0]}", KUBECTL_PATIENCE)
    assert cluster.pods("db") == databases
    kubectl("annotate", f"pod/{databases[0]}", "dray.dev/checkpointed=true")
    kubectl("wait", "--for=delete", f"pod/{databases[0]}", KUBECTL_PATIENCE)
    kubectl("wait", "--for=condition=EvictionInProgress=false", NAME, KUBECTL_PATIENCE)
    events = kubectl("get", "events", "-o", "jsonpath={.items[*].message}")
    assert "checkpoint: pod leaves: its data is safe" in events

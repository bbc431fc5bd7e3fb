"""What `dray doctor` makes of what it found: nothing is promised that the caller may not do, or that does not run."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dray.api.kinds import NODES, PATCHES, RULES
from dray.live.diagnosis import LOOKED_AT, Facts, Verdict, judge

READS = {f"list {kind.resource}": True for kind in (*LOOKED_AT, RULES, PATCHES)}
WRITES = {f"create {RULES.resource}": True, f"create {PATCHES.resource}": True, f"patch {NODES.resource}": True}
STOCK = Facts(
    server="https://cluster.example.com",
    version="v1.37.0",
    user="somebody",
    served={
        "resource.k8s.io/v1": ("deviceclasses", "devicetaintrules", "resourceclaims", "resourceslices"),
        "dray.dev/v1alpha1": ("resourceslicepatches",),
    },
    gates=None,
    rights={**READS, **WRITES},
    leases={"dray-system/dray-scheduler": "a", "dray-system/dray-controllers": "b"},
)


def verdicts(**changed: Any) -> list[Verdict]:
    return [finding.works for finding in judge(replace(STOCK, **changed))]


def test_who_may_only_look_can_do_nothing_else() -> None:
    assert verdicts() == ["yes", "partly", "yes", "yes", "yes"]
    assert verdicts(rights=READS) == ["yes", "no", "no", "no", "yes"]
    assert verdicts(rights={}) == ["no", "no", "no", "no", "yes"]


def test_every_right_that_is_asked_for_counts() -> None:
    for right in STOCK.rights:
        assert verdicts(rights={**STOCK.rights, right: False}) != verdicts(), right


def test_what_does_not_run_is_not_promised() -> None:
    assert verdicts(leases={}) == ["yes", "partly", "partly", "partly", "no"]
    assert verdicts(leases={**STOCK.leases, "kube-system/kube-controller-manager": "c"})[-1] == "partly"

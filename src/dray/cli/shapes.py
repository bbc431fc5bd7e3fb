"""The shape of every document that commands print with `-o json`, as types: JSON Schema is made from them.

Each document has `apiVersion: dray.dev/v1` and a `kind`. Fields may be added under this version; none is taken away and
none changes its type. Parts whose shape is that of the Kubernetes API, or a tree to look around in, are plain objects.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import msgspec

from dray.cli.findings import Finding
from dray.cli.items import ClaimItem, ClusterItem, DeviceItem, NodeItem
from dray.cli.output import API_VERSION
from dray.prose.remedies import RequestAdvice
from dray.scale_up.answer import GroupAnswer, Unplaced
from dray.what_if.budget_changes import BudgetChange
from dray.what_if.claim_changes import ClaimChange
from dray.what_if.device_changes import DeviceChange
from dray.what_if.difference import ObjectChange, RuleForecast
from dray.what_if.evictions import Eviction
from dray.what_if.group_changes import GroupChange
from dray.what_if.missing import Orphaned
from dray.what_if.namespace_changes import NamespaceChange
from dray.what_if.next_pods import NextPod
from dray.what_if.node_changes import NodeChange
from dray.what_if.pending_changes import PendingChange
from dray.what_if.pod_changes import DeletedPod, RelabelledPod
from dray.what_if.quota_changes import QuotaChange
from dray.what_if.service_changes import ServiceChange
from dray.what_if.taint_preview import TaintPreview
from dray.what_if.workload_changes import WorkloadChange

Tree = dict[str, Any]


class OutputShape(msgspec.Struct, rename="camel", kw_only=True):
    """A document."""

    api_version: str
    kind: str


class DeviceList(OutputShape):
    items: list[DeviceItem]


class ClaimList(OutputShape):
    items: list[ClaimItem]


class NodeList(OutputShape):
    items: list[NodeItem]


class ClusterList(OutputShape):
    items: list[ClusterItem]


class LocalCluster(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    directory: str
    running: bool
    pid: int | None
    server: str | None
    kubeconfig: str


class LocalClusterList(OutputShape):
    items: list[LocalCluster]


class HeldItem(msgspec.Struct):
    target: str
    why: str


class HeldList(OutputShape):
    items: list[HeldItem]


class ConfirmationItem(msgspec.Struct):
    target: str
    confirmed: bool
    told: str


class ConfirmationList(OutputShape):
    items: list[ConfirmationItem]


class CancellationItem(msgspec.Struct):
    target: str
    cancelled: bool
    told: str


class CancellationList(OutputShape):
    items: list[CancellationItem]


class DrainPauseItem(msgspec.Struct):
    target: str
    paused: bool
    changed: bool
    told: str


class DrainPauseList(OutputShape):
    items: list[DrainPauseItem]


class SwitchedNode(msgspec.Struct):
    node: str
    state: Literal["stopped", "running"]
    changed: bool


class SwitchedNodeList(OutputShape):
    items: list[SwitchedNode]


class EvictionStop(OutputShape):
    stopped: bool
    others_go_on: bool
    """There are eviction controllers that do not obey; theirs are only stopped by what was done to rules."""
    softened_rules: list[str]
    """That were NoExecute, and are NoSchedule now."""


class PlanApplication(OutputShape):
    applied: bool
    moved: list[str]
    """What is different since it was planned; then nothing is applied."""
    objects: list[str]
    """Kind and name of those that were applied."""
    result: dict[str, Any] | None
    """What the planned command prints with `-o json`."""


class StoppedCluster(OutputShape):
    name: str
    directory: str
    was_running: bool
    stopped: bool


class FeatureFinding(msgspec.Struct):
    what: str
    works: str
    notes: list[str]


class Diagnosis(OutputShape):
    server: str
    version: str
    user: str
    dray: bool
    served: dict[str, list[str]]
    gates: dict[str, bool] | None
    rights: dict[str, bool]
    leases: dict[str, str]
    findings: list[FeatureFinding]


class PlacementItem(msgspec.Struct, rename="camel", kw_only=True):
    placement: str
    satisfied: bool
    reason: str
    message: str
    misconfigured: str | None
    clusters: list[str]
    decisions: dict[str, list[str]]
    groups: list[Tree]


class PlacementList(OutputShape):
    items: list[PlacementItem]


class PlacementDescription(OutputShape):
    placement: str
    satisfied: bool
    reason: str
    message: str
    misconfigured: str | None
    clusters: list[str]
    decisions: dict[str, list[str]]
    groups: list[Tree]
    explanation: Tree


class PlacementExplanation(OutputShape):
    placement: str
    decisions: list[str]
    groups: list[Tree]
    conditions: dict[str, Tree]
    requeue_after_seconds: float | None
    """When time alone may change it."""
    scores: dict[str, int]
    warnings: list[str]
    explanation: Tree


class Allocation(OutputShape):
    results: list[Tree]


class SelectorTrial(OutputShape):
    estimated_cost: int
    reads: Any
    devices: list[Tree]


class ClusterTaint(OutputShape):
    cluster: str
    dry_run: bool
    placements: list[Tree]


class WaitResult(msgspec.Struct, rename="camel", kw_only=True):
    done: bool
    called_off: bool
    pods: int
    evicted: int
    gone: int
    staying: int
    untainted: list[str]
    deleted_nodes: list[str]
    held_by: list[str]
    refused: dict[str, str]
    at_deadline: int
    seconds: float


class Taint(OutputShape):
    dry_run: bool
    preview: TaintPreview
    result: WaitResult | None = None


class NodeUntaint(OutputShape):
    dry_run: bool
    nodes: dict[str, list[str]]


class DeviceUntaint(OutputShape):
    dry_run: bool
    rules: list[str]
    devices: list[str]
    still_tainted: dict[str, list[str]]
    wider_rules: list[str]
    finalizers: dict[str, list[str]]
    """Rules that are deleted and taint still, and who keeps them."""


class DeviceReport(OutputShape):
    devices: list[Tree]
    unusable_pools: list[Tree]
    problems: list[Tree]


class DriverRule(msgspec.Struct):
    rule: str
    level: str
    what: str


class DriverRuleList(OutputShape):
    items: list[DriverRule]


class DriverTest(OutputShape):
    driver: str
    passed: bool
    counts: dict[str, int]
    results: list[Tree]
    cause: str = ""
    output: list[str] = []


class ClaimExplanation(OutputShape):
    claims: list[Tree]
    nodes: list[Tree] = []
    advice: list[RequestAdvice] = []
    notes: list[str] = []


class ClaimStatus(OutputShape):
    allocation: Tree
    reserved_for: list[Tree] = []
    devices: list[Tree] = []


class Preemption(msgspec.Struct):
    node: str
    victims: list[str]


class PodExplanation(OutputShape):
    pod: str
    status: str
    node: str | None
    message: str
    unsuitable_nodes: dict[str, str]
    notes: list[str]
    preemption: Preemption | None = None
    claims: Tree | None = None
    """As a `ClaimExplanation` has it."""


class PodGroupExplanation(OutputShape):
    pod_group: str
    status: str
    pods: int
    needed: int
    placed: int
    message: str
    nodes: Any
    pod: Any = None


class ScaleUp(OutputShape):
    pending: int
    fitting: list[str]
    groups: list[GroupAnswer]
    placements: dict[str, str]
    """Where each pod would go: a node, or a new one of a group."""
    unplaced: list[Unplaced]
    nodes: int
    cost: float | None = None
    notes: list[str] = []


class WaitTimes(msgspec.Struct):
    pods: int
    p50: float | None
    p95: float | None
    max: float | None


class NeverRan(msgspec.Struct):
    pod: str
    why: str


class DeviceSample(msgspec.Struct):
    at: float
    devices: int
    held: int
    free: int
    whole: int
    tainted: int
    pending: int


class RecordedMeasures(msgspec.Struct, rename="camel", kw_only=True):
    pods: int
    placed: int
    never_ran: list[NeverRan]
    never_ran_count: int
    waits: WaitTimes
    device_waits: WaitTimes
    utilisation: float | None
    fragmentation: float | None
    evictions: int
    evictions_by_reason: dict[str, int]
    nodes: int
    samples: list[DeviceSample]


class ReplayedMeasures(RecordedMeasures, rename="camel", kw_only=True):
    nodes_added: dict[str, int]
    refused: int
    problems: list[str]


class Replay(OutputShape):
    start: str
    seconds: float
    notes: list[str]
    recorded: RecordedMeasures
    replayed: ReplayedMeasures
    changed: ReplayedMeasures | None = None


class Difference(OutputShape):
    now: str
    objects: list[ObjectChange] = []
    devices: list[DeviceChange] = []
    claims: list[ClaimChange] = []
    rules: list[RuleForecast] = []
    evictions: list[Eviction] = []
    nodes: list[NodeChange] = []
    spared: list[str] = []
    protected: int = 0
    finished: str | None = None
    pending: list[PendingChange] = []
    deleted: list[DeletedPod] = []
    relabelled: list[RelabelledPod] = []
    workloads: list[WorkloadChange] = []
    next_pods: list[NextPod] = []
    quotas: list[QuotaChange] = []
    budgets: list[BudgetChange] = []
    groups: list[GroupChange] = []
    namespaces: list[NamespaceChange] = []
    services: list[ServiceChange] = []
    orphaned: list[Orphaned] = []
    unjudged: list[str] = []
    notes: list[str] = []


class ValidationReport(OutputShape):
    objects: int
    problems: int
    findings: list[Finding]


class LintReport(ValidationReport):
    pass


class Printed(NamedTuple):
    """A shape, and the commands that print it."""

    commands: tuple[str, ...]
    shape: type[OutputShape]


SHAPES: Final = {
    "Allocation": Printed(("allocate",), Allocation),
    "CancellationList": Printed(("cancel",), CancellationList),
    "ClaimExplanation": Printed(("explain claim",), ClaimExplanation),
    "ClaimList": Printed(("get claims",), ClaimList),
    "ClaimStatus": Printed(("explain claim",), ClaimStatus),
    "ClusterList": Printed(("get clusters",), ClusterList),
    "ClusterTaint": Printed(("taint cluster", "untaint cluster"), ClusterTaint),
    "ConfirmationList": Printed(("confirm",), ConfirmationList),
    "DeviceList": Printed(("get devices",), DeviceList),
    "DeviceReport": Printed(("devices",), DeviceReport),
    "DeviceUntaint": Printed(("untaint device",), DeviceUntaint),
    "Diagnosis": Printed(("doctor",), Diagnosis),
    "Difference": Printed(("what-if",), Difference),
    "DrainPauseList": Printed(("drain pause", "drain resume"), DrainPauseList),
    "DriverRuleList": Printed(("driver-test",), DriverRuleList),
    "DriverTest": Printed(("driver-test",), DriverTest),
    "EvictionStop": Printed(("stop-evictions",), EvictionStop),
    "HeldList": Printed(("confirm",), HeldList),
    "LintReport": Printed(("lint",), LintReport),
    "LocalClusterList": Printed(("ls",), LocalClusterList),
    "NodeList": Printed(("get nodes",), NodeList),
    "NodeUntaint": Printed(("untaint node",), NodeUntaint),
    "PlacementDescription": Printed(("placement describe",), PlacementDescription),
    "PlacementExplanation": Printed(("explain placement",), PlacementExplanation),
    "PlacementList": Printed(("placement list",), PlacementList),
    "PodExplanation": Printed(("explain pod",), PodExplanation),
    "PodGroupExplanation": Printed(("explain podgroup",), PodGroupExplanation),
    "PlanApplication": Printed(("apply",), PlanApplication),
    "Replay": Printed(("replay",), Replay),
    "ScaleUp": Printed(("scale-up",), ScaleUp),
    "SelectorTrial": Printed(("cel",), SelectorTrial),
    "StoppedCluster": Printed(("down",), StoppedCluster),
    "SwitchedNodeList": Printed(("nodes stop", "nodes start"), SwitchedNodeList),
    "Taint": Printed(("taint device", "taint node", "drain device", "drain node"), Taint),
    "ValidationReport": Printed(("validate",), ValidationReport),
}
"""By kind."""


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind. Raises KeyError."""
    made = msgspec.json.schema(SHAPES[kind].shape)
    definition = made["$defs"][SHAPES[kind].shape.__name__]
    definition["properties"] |= {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind}}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}

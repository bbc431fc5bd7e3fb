"""Placement: which clusters a workload wants, and what it tolerates (v1beta1 and v1alpha1, OCM-46)."""

from __future__ import annotations

from msgspec import field

from dray.api.meta import Condition, LabelSelector, LabelSelectorRequirement, Object
from dray.api.struct import Struct
from dray.api.times import Time

OPERATOR_EXISTS = "Exists"
OPERATOR_EQUAL = "Equal"
OPERATORS = (OPERATOR_EXISTS, OPERATOR_EQUAL)

MODE_ADDITIVE = "Additive"
MODE_EXACT = "Exact"
MODES = (MODE_ADDITIVE, MODE_EXACT)

SCORE_BUILT_IN = "BuiltIn"
SCORE_ADD_ON = "AddOn"
SCORE_TYPES = (SCORE_BUILT_IN, SCORE_ADD_ON)

DEFAULT_WEIGHT = 1
WEIGHT_LIMIT = 10

SORT_BY_SCORE = "Score"

TOPOLOGY_LABEL = "Label"
TOPOLOGY_CLAIM = "Claim"
TOPOLOGY_KEY_TYPES = (TOPOLOGY_LABEL, TOPOLOGY_CLAIM)
DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
UNSATISFIABLE_ACTIONS = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
SPREAD_CONSTRAINTS = 8


CONDITION_SATISFIED = "PlacementSatisfied"
CONDITION_MISCONFIGURED = "PlacementMisconfigured"

DISABLE_ANNOTATION = "cluster.open-cluster-management.io/experimental-scheduling-disable"


class ClusterClaimSelector(Struct):
    """All requirements must hold of a cluster's claims; an empty selector matches every cluster."""

    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class ClusterCelSelector(Struct):
    """All CEL expressions over `managedCluster` must be true."""

    cel_expressions: tuple[str, ...] = ()


class ClusterSelector(Struct):
    """Labels, claims and CEL expressions; all must match."""

    label_selector: LabelSelector = LabelSelector()
    claim_selector: ClusterClaimSelector = ClusterClaimSelector()
    cel_selector: ClusterCelSelector = ClusterCelSelector()


class ClusterPredicate(Struct):
    """One way for a cluster to qualify. The predicates of a placement are alternatives."""

    required_cluster_selector: ClusterSelector = ClusterSelector()


class AddOnScore(Struct):
    """One score of the AddOnPlacementScore named `resource_name` in each cluster's namespace."""

    resource_name: str = field(default_factory=str)
    score_name: str = field(default_factory=str)


class ScoreCoordinate(Struct):
    """Where a score comes from: a prioritizer built in, or an add-on. An empty `type` is BuiltIn."""

    type: str = ""
    built_in: str = ""
    add_on: AddOnScore | None = None


class PrioritizerConfig(Struct):
    """How much one score counts, from -10 to 10; 0 switches it off, absent is DEFAULT_WEIGHT."""

    score_coordinate: ScoreCoordinate | None = None
    weight: int | None = None


class PrioritizerPolicy(Struct):
    """Which scores count. Additive (the default) adds to Steady and Balance, Exact takes only those listed."""

    mode: str = ""
    configurations: tuple[PrioritizerConfig, ...] = ()


class SpreadConstraintsTerm(Struct):
    """How evenly decisions should spread over the values of a label or a claim."""

    topology_key: str = field(default_factory=str)
    topology_key_type: str = field(default_factory=str)
    max_skew: int | None = None
    when_unsatisfiable: str = ""


class SpreadPolicy(Struct):
    """Spread constraints, the most important first."""

    spread_constraints: tuple[SpreadConstraintsTerm, ...] = ()


class Toleration(Struct):
    """Allows, but does not require, clusters with matching taints.

    An empty key (with Exists) matches every key, an empty effect every effect, an empty operator is Equal.
    Without `toleration_seconds` a taint is tolerated forever, else that long from its `timeAdded` (OCM-12).
    """

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class GroupClusterSelector(Struct):
    """Labels and claims; both must match."""

    label_selector: LabelSelector = LabelSelector()
    claim_selector: ClusterClaimSelector = ClusterClaimSelector()


class DecisionGroup(Struct):
    """A named part of the decisions: the selected clusters that match."""

    group_name: str = ""
    group_cluster_selector: GroupClusterSelector = GroupClusterSelector()


class GroupStrategy(Struct):
    """How decisions are divided: named groups first, then the rest; none larger than a number or a share."""

    decision_groups: tuple[DecisionGroup, ...] = ()
    clusters_per_decision_group: int | str | None = None


class DecisionStrategy(Struct):
    """How decisions are handed out."""

    group_strategy: GroupStrategy = GroupStrategy()


class PlacementSpec(Struct):
    """What is wanted. An empty spec selects every cluster of the sets bound to the namespace."""

    cluster_sets: tuple[str, ...] = ()
    number_of_clusters: int | None = None
    predicates: tuple[ClusterPredicate, ...] = ()
    prioritizer_policy: PrioritizerPolicy = PrioritizerPolicy()
    spread_policy: SpreadPolicy = SpreadPolicy()
    tolerations: tuple[Toleration, ...] = ()
    decision_strategy: DecisionStrategy = DecisionStrategy()
    sort_by: str = ""
    score_rate_limit: str = ""


class DecisionGroupStatus(Struct):
    """One group of decisions: its PlacementDecisions and how many clusters they hold."""

    decision_group_index: int = field(default_factory=int)
    decision_group_name: str = field(default_factory=str)
    decisions: tuple[str, ...] = ()
    clusters_count: int = field(default_factory=int, name="clusterCount")


class PlacementStatus(Struct):
    """How many clusters were selected, in which groups, and whether that is what was asked for."""

    number_of_selected_clusters: int = field(default_factory=int)
    decision_groups: tuple[DecisionGroupStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()
    last_score_update_time: Time | None = None


class Placement(Object):
    """Selects clusters from the sets bound to its namespace. Namespaced."""

    spec: PlacementSpec = field(default_factory=PlacementSpec)
    status: PlacementStatus = field(default_factory=PlacementStatus)

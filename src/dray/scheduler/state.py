"""What the parts of a scheduler share: the cluster as it knows it, the pods that wait, and what both say of a pod."""

from __future__ import annotations

from collections.abc import Sequence

from dray import cel
from dray.allocator.aside import Aside
from dray.api.generated.core import Pod
from dray.api.kinds import CLAIMS, PODS
from dray.api.pods import is_active
from dray.api.references import ObjectName
from dray.api.resource import ResourceClaim
from dray.api.well_known import DEFAULT_SCHEDULER
from dray.reconcile import Clock, Informers
from dray.scheduler.messages import Messages
from dray.scheduler.metrics import SchedulerMetrics
from dray.scheduler.queue import SchedulingQueue
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import refuse_at_once
from dray.scheduling.gangs import find_problem
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import GroupReason
from dray.scheduling.refusal import Refused
from dray.tracker import AT_ONCE


class State:
    """One cluster and one queue, for all parts of one scheduler."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        informers: Informers,
        metrics: SchedulerMetrics,
        disabled_gates: frozenset[str],
        seconds: float | None,
    ) -> None:
        """`name` is the scheduler that pods ask for. A search on one node may take so many `seconds`."""
        self.name = name
        self.clock = clock
        self.informers = informers
        self.metrics = metrics
        self.backlog = cel.Backlog(clock.monotonic)
        self.aside = Aside(self.backlog, seconds)
        self.cluster = Cluster(
            claims="DynamicResourceAllocation" not in disabled_gates,
            extended="DRAExtendedResource" not in disabled_gates,
            taints="DRADeviceTaints" not in disabled_gates,
            taint_rules="DRADeviceTaintRules" not in disabled_gates,
            patches="DRAAdminControlledDeviceAttributes" not in disabled_gates,
            backlog=self.backlog,
            at_once=AT_ONCE,
        )
        self.uses_groups = "GenericWorkload" not in disabled_gates
        self.queue = SchedulingQueue(
            clock,
            hints="SchedulerQueueingHints" not in disabled_gates,
            goes_first=self.cluster.is_half_placed if self.uses_groups else None,
        )
        self.metrics.follow(self.queue)
        self.messages = Messages(self.cluster, clock)
        self.pods = informers.of(PODS, Pod)
        self.claims = informers.of(CLAIMS, ResourceClaim)
        self.changes = 0
        """Counts what happened to nodes, devices, claims and pods, also what helps nobody who waits."""
        self.put_off: dict[ObjectName, None] = {}
        """Pods that know something that is no longer so, and are told anew later since they were told just now."""
        self.decided = 0

    def is_ours(self, pod: Pod) -> bool:
        """Whether a pod is one for this scheduler to place."""
        return not pod.spec.node_name and is_active(pod) and (pod.spec.scheduler_name or DEFAULT_SCHEDULER) == self.name

    def group_problem(self, info: PodInfo) -> GroupReason | None:
        """Why the group of a pod need not be tried yet."""
        return find_problem(self.cluster, info.group) if info.group is not None and self.uses_groups else None

    def not_yet(self, info: PodInfo) -> Refused | None:
        """Why a new pod need not be tried yet: claims that are going to be made for it, or others of its group, are
        not there."""
        if refuse_at_once(info) is not None:
            return None
        found = self.cluster.claims_of(info.pod)
        if found.problem is not None and not found.are_made:
            return Refused(found.problem)
        problem = self.group_problem(info)
        return None if problem is None else Refused(problem)

    def note_claims(self, claims: Sequence[ResourceClaim]) -> None:
        """Claims as they are stored now."""
        for claim in claims:
            self.claims.put(claim)

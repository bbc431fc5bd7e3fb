"""Scheduling rehearsed in memory: what the scheduler would do with a snapshot, pod after pod, without writing anything.

    Snapshot ─▶ Rehearsal: the scheduler's own Cluster and `decide`, bound in memory, and taken back at will
       └─▶ pending_pods: who waits, in the scheduler's order, with the claims that are still to be made for them

Pure. May import `dray.scheduler`, `dray.controllers` (for their plans) and below.
"""

from dray.rehearsal.pod_explanation import PodExplanation, explain_pod
from dray.rehearsal.rehearsal import Rehearsal

__all__ = ["PodExplanation", "Rehearsal", "explain_pod"]

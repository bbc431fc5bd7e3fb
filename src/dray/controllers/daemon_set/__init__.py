"""Runs a pod on every node that a DaemonSet is for.

`scheduling.daemon_nodes` says which nodes those are, `node_pod` its pod for one, `plan` which pods to make and
delete, `rollout` how a new template spreads, `status` what to tell, all purely; `controller` watches and writes.
"""

from dray.controllers.daemon_set.controller import DaemonSetController

__all__ = ["DaemonSetController"]

"""Keeps the number of pods that a ReplicaSet or a ReplicationController asks for.

`plan` decides, purely; `replication_controller` shows the one as the other; `controller` watches and writes.
"""

from dray.controllers.replica_set.controller import ReplicaSetController, ReplicationControllerController

__all__ = ["ReplicaSetController", "ReplicationControllerController"]

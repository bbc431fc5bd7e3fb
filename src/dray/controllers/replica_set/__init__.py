"""Keeps the number of pods that a ReplicaSet asks for. `plan` decides, purely; `controller` watches and writes."""

from dray.controllers.replica_set.controller import ReplicaSetController

__all__ = ["ReplicaSetController"]

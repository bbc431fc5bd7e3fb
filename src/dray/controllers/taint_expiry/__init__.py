"""Taints for a limited time: removes DeviceTaintRules and node taints when the time that they carry has come.

The time is in an annotation, so it outlives restarts of everybody, and works on any Kubernetes API server.
"""

from dray.controllers.taint_expiry.controller import TaintExpiryController

__all__ = ["TaintExpiryController"]

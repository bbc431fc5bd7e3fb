"""Rolls deployments out: a ReplicaSet per pod template, scaled so that enough pods stay available.

`replica_sets` makes and recognises ReplicaSets, `plan` says how to scale them, `status` what to tell, all purely;
`controller` watches and writes.
"""

from dray.controllers.deployment.controller import DeploymentController

__all__ = ["DeploymentController"]

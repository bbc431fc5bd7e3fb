"""Runs numbered pods that keep their names and volume claims.

`members` says what the pod of a number looks like, `volume_claims` which claims it has and who owns them, `plan` which
pods to make and delete, `rollout` how a new template spreads, `status` what to tell, all purely; `controller` watches
and writes.
"""

from dray.controllers.stateful_set.controller import StatefulSetController

__all__ = ["StatefulSetController"]

"""Answers ResourcePoolStatusRequests: how many devices the pools of a driver have, and how many are left.

`pools` gathers what slices and claims say of each pool, `views` looks at partitions and shared devices, `plan` makes
the answer of it, `controller` writes it down and removes what is old. All but `controller` is pure.
"""

from dray.controllers.resource_pool_status.controller import ResourcePoolStatusController

__all__ = ["ResourcePoolStatusController"]

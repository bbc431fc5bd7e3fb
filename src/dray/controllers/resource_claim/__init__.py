"""The life of ResourceClaims: made from templates for pods, reserved, released, deallocated, let go (4381-133 … 144).

`pod_plan` and `claim_plan` decide, purely; `controller` watches and writes; `metrics` counts.
"""

from dray.controllers.resource_claim.controller import ResourceClaimController

__all__ = ["ResourceClaimController"]

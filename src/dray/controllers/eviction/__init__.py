"""The two eviction controllers: pods leave devices (KEP-5055) and nodes (KEP-3902) because of NoExecute taints.

    informers ─▶ device_taints, node_taints: each feeds its planner (dray.eviction), which hands out pods
                     │                                      └─▶ rule_status, node_status, held_pools: what is said
                     ▼
    controller: the shell of both ─▶ evictor: asks the policy ─▶ removal: mark and delete, or the eviction API
                                        └─ deciders: built in, a plugin (entry point), or a webhook

    past: who leaves is written down first, so that a guard that starts anew goes on counting
    progress: follows an eviction from outside, for whoever waits for its end

Who leaves, when and how fast is decided in `dray.eviction`, and what a policy is told and may say is described in
`dray.eviction.policy`. This package reads, waits, asks and writes.
"""

from dray.controllers.eviction.device_taints import DeviceTaintEvictionController
from dray.controllers.eviction.node_taints import TaintEvictionController
from dray.controllers.eviction.policy_sources import ENTRY_POINTS, check_settings

__all__ = ["ENTRY_POINTS", "DeviceTaintEvictionController", "TaintEvictionController", "check_settings"]

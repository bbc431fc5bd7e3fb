"""Deletes the pods that use devices with NoExecute taints that their claims do not tolerate (KEP-5055).

    informers ─▶ Planner (dray.eviction) ─▶ pods to delete ─▶ mark, delete, tell
                    └─▶ rules that made progress ─▶ condition EvictionInProgress

All decisions are made in `dray.eviction`; this package reads, waits and writes.
"""

from dray.controllers.device_taint_eviction.controller import DeviceTaintEvictionController

__all__ = ["DeviceTaintEvictionController"]

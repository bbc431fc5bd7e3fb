"""What runs containers: `process` (local processes with CDI edits applied) or `none` (nothing runs, everything works).

    Order ─▶ Runtime.start ─▶ Running ─▶ exit ─▶ on_exit
             terminate, kill

The agent decides what runs when; a runtime only does it. Containers outlive the agent: `recover` finds them again.
"""

from dray.node.runtime.interface import Exit, Order, Running, Runtime, StartFailed

__all__ = ["Exit", "Order", "Running", "Runtime", "StartFailed"]

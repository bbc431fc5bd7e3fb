"""What runs containers: `process` (local processes with CDI edits applied) or `none` (nothing runs, everything works).

    Order ─▶ Runtime.start ─▶ Running ─▶ exit ─▶ on_exit
             terminate, kill

    process:  rights (pure) ─▶ edits ─▶ hooks ─▶ attempt (files) ─▶ launch ─▶ launcher.py, a program of its own

The agent decides what runs when; a runtime only does it, with the rights that were asked for, or not at all. Containers
outlive the agent: `recover` finds them again.
"""

from dray.node.runtime.interface import Exit, Order, Running, Runtime, StartFailed

__all__ = ["Exit", "Order", "Running", "Runtime", "StartFailed"]

"""What every controller and the scheduler are made of: work queues, a loop around pure plans, events, leases.

    informers ─▶ handlers add keys ─▶ WorkQueue ─▶ Controller.run: reconcile(key) ─▶ writes through the client
                                         ▲                  │ failed: again, later and later
                                         └──────────────────┘ wants to look again at a time: add_at

Decisions are pure functions of state and time; this package waits and retries. It may import `dray.client`,
`dray.process` and below.
"""

from dray.process.clock import Clock, RealClock, VirtualClock
from dray.reconcile.controller import Controller
from dray.reconcile.informers import Informers
from dray.reconcile.queue import WorkQueue
from dray.reconcile.recorder import EventRecorder
from dray.reconcile.wakeup import Wakeup

__all__ = ["Clock", "Controller", "EventRecorder", "Informers", "RealClock", "VirtualClock", "Wakeup", "WorkQueue"]

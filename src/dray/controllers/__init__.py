"""The controllers: each brings one part of the cluster closer to what objects ask for.

    Informers (one copy per kind, shared) ─▶ handlers add keys ─▶ reconcile(key)
                                                                    │ state ─▶ plan(state, now) ─▶ instructions
                                                                    └▶ carries them out through the client

A controller is a package or a module with pure plans and a thin shell (`QueueController`) around them; `catalog` lists
them by name, `Manager` runs those that were asked for. May import `dray.reconcile`, `dray.client` and below. The I/O is
all in the shells, through the injected client and clock.
"""

from dray.controllers.context import Context
from dray.controllers.manager import Manager
from dray.controllers.selection import SelectionError, select
from dray.controllers.settings import ControllerSettings

__all__ = ["Context", "ControllerSettings", "Manager", "SelectionError", "select"]

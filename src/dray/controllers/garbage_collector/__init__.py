"""Deletes what its owners leave behind: in the background, in the foreground, or not at all (orphan).

`graph` knows who depends on whom, `plan` decides, purely; `controller` watches every kind and writes.
"""

from dray.controllers.garbage_collector.controller import GarbageCollector

__all__ = ["GarbageCollector"]

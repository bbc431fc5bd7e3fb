"""A whole cluster in one process: the one place that wires server, scheduler, controllers and simulated nodes together.

    Instance (API server) ◀── LocalClient ──┬── Scheduler
                                            ├── Manager (controllers) ──┐
                                            └── Simulator (nodes) ──────┴── Informers, shared
                                                 Overview reads the same informers, for people
    hub.Agent: joins another API server as one of its clusters, if that is asked for

May import everything but `dray.cli`. Components talk to each other only through the API.
"""

from dray.cluster.cluster import Cluster, Plan
from dray.cluster.overview import Overview, Totals

__all__ = ["Cluster", "Overview", "Plan", "Totals"]

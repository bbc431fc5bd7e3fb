"""A whole cluster in one process: the one place that wires server, scheduler, controllers and simulated nodes together.

    Instance (API server) ◀── LocalClient ──┬── Scheduler
                                            ├── Manager (controllers) ──┐
                                            └── Simulator (nodes) ──────┴── Informers, shared
                                                 Overview reads the same informers, for people
    hub_agent.Agent: joins another API server as one of its clusters, if that is asked for

May import everything but `dray.cli`. Components talk to each other only through the API.
"""

from dray.all_in_one.cluster import Cluster, ClusterSettings

__all__ = ["Cluster", "ClusterSettings"]

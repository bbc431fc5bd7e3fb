"""A running cluster as people look at it: views that events keep current, so that looking costs next to nothing.

    cluster_view, fleet_view   devices, claims and nodes, or the clusters of a hub, for a command that shows them
    viewer, documents          the cluster as one user may see it, for the page and `dray top`; its documents
    rights                     what that user may look at
    overview, device_metrics   what a process sees, in numbers
    diagnosis                  what works on a server, and why something does not: `dray doctor`

What is kept current goes by informers (`following`), whose news are worked off a few milliseconds at a time (`turns`).
Reads through the API; writes nothing.
"""

"""Pods get nodes, and their claims get devices.

    informers ─▶ Cluster (nodes, tracker, inventory, claims) ─┐
    pods ──────▶ SchedulingQueue ─▶ decide(cluster, pod) ─────┼─▶ assume ─▶ binding (claim status, then pod) ─▶ API
                      ▲                                       │               │ failed: take back, try again
                      └── events that may help ◀── refused ◀──┘◀──────────────┘

`decide` is pure and asks nobody; only `binding` and the status of refused pods write. It may import everything up to
`dray.reconcile`; it reaches the API through a `dray.client.Client` alone, so it runs against any Kubernetes API server.
"""

"""A control plane for tests: of operators, drivers and manifests, in any framework, in under a second.

    with dray.testing.cluster(nodes=4, profile="gpu-8") as c:
        c.apply("pod.yaml")
        c.wait("pod/trainer", lambda pod: pod["status"].get("phase") == "Running")

    cluster         for plain tests: the cluster runs in a thread of its own, or (`process=True`) in another process
    async_cluster   the same for coroutines, on their own event loop
    Cluster, AsyncCluster   what those give: kubeconfig, apply, get, list, wait, delete, advance, faults

Everything is real but the machines: storage, TLS, scheduler, controllers, kubectl. With pytest there are fixtures, see
`dray.pytest_plugin`. Objects are documents, as in YAML, so that custom resources are no exception.
"""

from dray.testing.clusters import Cluster, async_cluster, cluster
from dray.testing.documents import AsyncCluster, WaitError

__all__ = ["AsyncCluster", "Cluster", "WaitError", "async_cluster", "cluster"]

"""The node agent: what a kubelet does for DRA drivers and their pods.

    plugins_registry/ ─▶ plugin_watch ─▶ registration ─▶ drivers (newest connected instance of each)
    Pod informer ─▶ pod_workers ─▶ one worker per pod:
        pod_claims (may it run?) ─▶ claim_work (checkpoint, NodePrepareResources, checkpoint) ─▶ runtime ─▶ pod_status
        deleted or ended: runtime stops ─▶ NodeUnprepareResources ─▶ checkpoint ─▶ final status ─▶ the object goes
    drivers ─▶ health (NodeWatchResources) ─▶ pod status;  slices: wiped at start and when a driver stays away
    node_object, heartbeat: the Node, its conditions and its Lease
    endpoints: logs, commands and ports of containers, for the API server that comes over HTTPS

Decisions (`pod_claims`, `claim_record`, `answers`, `pod_plan`, `pod_status`, `health`) are pure; the rest reads, waits
and writes. Talks to the API server through `dray.client` alone, as a node may: claims one by one, nothing of other
nodes. May import `dray.reconcile`, `dray.streams`, `dray.plugins`, `dray.process`, `dray.cdi`, `dray.files` and below.
"""

from dray import extras

extras.need("node", "the node agent")

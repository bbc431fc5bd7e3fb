"""One node as the scheduler sees it: what it offers, and what the pods on it take."""

from __future__ import annotations

from dray.api.generated.core import Node
from dray.scheduling.pod_info import PodInfo, Port, Resources, amounts


class Share:
    """What the pods of one priority take of a node: what would be free without them."""

    __slots__ = ("holders", "pods", "used")

    def __init__(self) -> None:
        self.pods = 0
        self.holders = 0
        """How many of them have claims."""
        self.used: Resources = {}

    def change(self, pod: PodInfo, step: int) -> None:
        """A pod came, or went (`step` -1)."""
        self.pods += step
        if pod.claims:
            self.holders += step
        for name, amount in pod.requests.items():
            self.used[name] = self.used.get(name, 0) + step * amount


class NodeInfo:
    """A node, with the pods that are on it or about to be."""

    __slots__ = (
        "_rated",
        "_room",
        "allocatable",
        "by_priority",
        "has_room_for",
        "name",
        "node",
        "pods",
        "ports",
        "used",
    )

    def __init__(self, node: Node, *, is_known: bool = True) -> None:
        """Of a node that is not `is_known`, only the name is: slices mention it, but a dump lacks it."""
        self.name = node.metadata.name
        self.update(node, is_known=is_known)
        self.used: Resources = {}
        self.ports: dict[Port, int] = {}
        self.pods: dict[str, PodInfo] = {}
        self.by_priority: dict[int, Share] = {}

    def update(self, node: Node, *, is_known: bool = True) -> None:
        """The node has changed; its pods have not."""
        self.node = node
        self.allocatable: Resources | None = amounts(node.status.allocatable) if is_known else None
        self._changed()

    def _changed(self) -> None:
        self.has_room_for: Resources | None = None
        """Requests that were found to fit and still do: pods with one spec share theirs."""
        self._rated: Resources | None = None

    def room_left(self, asked: Resources) -> tuple[float, int]:
        """How empty the node would be with a pod that asks for so much; of those as empty, by the number of pods.

        Pods come in numbers, with the same requests, and few nodes change between two of them.
        """
        if self._rated is not asked:
            allocatable, used = self.allocatable or {}, self.used
            left, kinds = 0.0, 0
            for name in ("cpu", "memory"):
                capacity = allocatable.get(name)
                if capacity:
                    left += 1 - (used.get(name, 0) + asked.get(name, 0)) / capacity
                    kinds += 1
            self._room = (left / kinds if kinds else 0.0, -len(self.pods))
            self._rated = asked
        return self._room

    def add(self, pod: PodInfo) -> None:
        """A pod is here, or is about to be."""
        uid = pod.pod.metadata.uid
        if uid in self.pods:
            self.remove(uid)
        self.pods[uid] = pod
        self._changed()
        for name, amount in pod.requests.items():
            self.used[name] = self.used.get(name, 0) + amount
        for port in pod.ports:
            self.ports[port] = self.ports.get(port, 0) + 1
        priority = pod.pod.spec.priority or 0
        share = self.by_priority.get(priority)
        if share is None:
            share = self.by_priority[priority] = Share()
        share.change(pod, 1)

    def remove(self, uid: str) -> None:
        """A pod is gone."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        self._changed()
        for name, amount in pod.requests.items():
            self.used[name] -= amount
        for port in pod.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]
        priority = pod.pod.spec.priority or 0
        share = self.by_priority[priority]
        share.change(pod, -1)
        if not share.pods:
            del self.by_priority[priority]

"""Pods that others are making room for: until they have their node, what they need there counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from dray.scheduling.node_table import NodeTable
from dray.scheduling.pod_info import PodInfo


class Nominations:
    """Which pod waits for which node."""

    def __init__(self) -> None:
        self._by_uid: dict[str, tuple[PodInfo, str]] = {}

    def set(self, pod: PodInfo, node: str) -> None:
        """Pods on a node go so that this one gets it."""
        self._by_uid[pod.pod.metadata.uid] = (pod, node)

    def drop(self, uid: str) -> None:
        """A pod has a node, is gone, or need not wait any more."""
        self._by_uid.pop(uid, None)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_uid

    def keep_devices(self, pod: PodInfo, node: str, has_devices: Callable[[PodInfo], bool]) -> bool:
        """Whether somebody as important as a pod, or more, waits for devices of a node and has not got them yet.

        They come free one after the other. If others took the first of them, whoever needs several would make pods go
        without end. What is left is given away when those who wait have theirs.
        """
        uid, priority = pod.pod.metadata.uid, pod.pod.spec.priority or 0
        return any(
            where == node
            and each != uid
            and one.wants_devices
            and (one.pod.spec.priority or 0) >= priority
            and not has_devices(one)
            for each, (one, where) in self._by_uid.items()
        )

    def node_of(self, pod: PodInfo) -> str:
        """The node that a pod waits for; empty if it waits for none."""
        _, node = self._by_uid.get(pod.pod.metadata.uid, (pod, ""))
        return node

    def below(self, pod: PodInfo, node: str) -> list[PodInfo]:
        """Pods of lower priority that wait for a node."""
        priority = pod.pod.spec.priority or 0
        waiting = [one for one, where in self._by_uid.values() if where == node]
        return [one for one in waiting if (one.pod.spec.priority or 0) < priority]

    @contextmanager
    def counted(self, pod: PodInfo, nodes: NodeTable) -> Iterator[None]:
        """Lets those count that wait for a node and are as important as the pod, or more."""
        uid, priority = pod.pod.metadata.uid, pod.pod.spec.priority or 0
        ahead = [
            (one, node)
            for each, (one, node) in self._by_uid.items()
            if each != uid and (one.pod.spec.priority or 0) >= priority
        ]
        for one, node in ahead:
            nodes.place(one, node)
        try:
            yield
        finally:
            for one, node in ahead:
                nodes.displace(one.pod.metadata.uid, node)

    @contextmanager
    def left_out(self, pods: Iterable[PodInfo]) -> Iterator[None]:
        """Lets what these pods wait for count for nobody."""
        taken = {uid: self._by_uid.pop(uid) for uid in [pod.pod.metadata.uid for pod in pods] if uid in self._by_uid}
        try:
            yield
        finally:
            self._by_uid.update(taken)

    def __bool__(self) -> bool:
        return bool(self._by_uid)

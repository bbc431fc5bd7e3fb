"""The pods that are bound to a node, found without looking at all the others."""

from __future__ import annotations

from collections.abc import Iterable

from dray.api.generated.core import Pod
from dray.api.kinds import PODS
from dray.server.indexes.followed import Followed
from dray.store import Key, Store


class PodsByNode:
    """Reads the store when asked; until somebody does, it costs nothing."""

    def __init__(self, store: Store) -> None:
        self._followed = Followed(store, PODS.resource, self._apply)
        self._node_of: dict[Key, str] = {}
        self._pods: dict[str, dict[Key, Pod]] = {}

    def __call__(self, node: str) -> Iterable[Pod]:
        """The pods on a node."""
        self._followed.catch_up()
        return self._pods.get(node, {}).values()

    def close(self) -> None:
        """Lets go of the store."""
        self._followed.close()

    def _apply(self, key: Key, pod: Pod | None) -> None:
        node = pod.spec.node_name if pod is not None else ""
        before = self._node_of.pop(key, "")
        if before and before != node:
            pods = self._pods[before]
            del pods[key]
            if not pods:
                del self._pods[before]
        if pod is not None and node:
            self._node_of[key] = node
            self._pods.setdefault(node, {})[key] = pod

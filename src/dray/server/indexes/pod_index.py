"""Pods by what they have in common, such as their node or their group, found without looking at all the others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from dray.api.generated.core import Pod
from dray.api.kinds import PODS
from dray.server.indexes.followed import Followed
from dray.store import Key, Store

P = TypeVar("P", bound=Hashable)


class PodIndex(Generic[P]):
    """Reads the store when asked; until somebody does, it costs nothing."""

    def __init__(self, store: Store, place_of: Callable[[Pod], P | None]) -> None:
        """`place_of` says where a pod belongs; None if nowhere."""
        self._followed = Followed(store, PODS.resource, self._apply)
        self._place_of = place_of
        self._places: dict[Key, P] = {}
        self._pods: dict[P, dict[Key, Pod]] = {}

    async def read(self) -> None:
        """Reads what is there, a part in each turn of the loop. Raises Closed."""
        await self._followed.read_in_turns()

    def __call__(self, place: P) -> Iterable[Pod]:
        """The pods at a place."""
        self._followed.catch_up()
        return self._pods.get(place, {}).values()

    def close(self) -> None:
        """Lets go of the store."""
        self._followed.close()

    def _apply(self, key: Key, pod: Pod | None) -> None:
        place = self._place_of(pod) if pod is not None else None
        before = self._places.pop(key, None)
        if before is not None and before != place:
            pods = self._pods[before]
            del pods[key]
            if not pods:
                del self._pods[before]
        if pod is not None and place is not None:
            self._places[key] = place
            self._pods.setdefault(place, {})[key] = pod


def node_of(pod: Pod) -> str | None:
    """The node that a pod is bound to."""
    return pod.spec.node_name or None

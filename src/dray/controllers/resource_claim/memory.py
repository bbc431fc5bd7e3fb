"""What the controller did that its informers do not show yet."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping

from dray.api.recent import Newest

LONGEST = 60.0
MAX_GONE = 10_000


class Memory:
    """Claims that were made for pods, until informers show them, and the uids of pods that went recently.

    Without it, a pod that changes between the creation of its claim and the news of it would get a second claim.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._made: dict[str, dict[str, str]] = {}
        self._names: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._gone: Newest[str, None] = Newest(MAX_GONE)

    def note_made(self, pod_uid: str, namespace: str, entry: str, claim: str) -> None:
        """A claim was made for an entry of a pod."""
        self._made.setdefault(pod_uid, {})[entry] = claim
        now = self._monotonic()
        while self._names and now - next(iter(self._names.values())) >= LONGEST:
            self._names.popitem(last=False)
        self._names[namespace, claim] = now

    def made(self, pod_uid: str) -> Mapping[str, str]:
        """The claims that were made for a pod, by entry."""
        return self._made.get(pod_uid, {})

    def is_new(self, namespace: str, claim: str) -> bool:
        """Whether a claim was made just now, and its informer has not shown it. Bounded in time: it may be gone."""
        since = self._names.get((namespace, claim))
        return since is not None and self._monotonic() - since < LONGEST

    def saw_claim(self, namespace: str, claim: str) -> None:
        """The informer shows the claim."""
        self._names.pop((namespace, claim), None)

    def saw_recorded(self, pod_uid: str) -> None:
        """The pod's status names all its claims now."""
        self._made.pop(pod_uid, None)

    def note_gone(self, pod_uid: str) -> None:
        """A pod was deleted."""
        self._made.pop(pod_uid, None)
        self._gone.keep(pod_uid, None)

    def is_gone(self, pod_uid: str) -> bool:
        """Whether a pod is known to have been deleted; if not, it may have been all the same."""
        return pod_uid in self._gone

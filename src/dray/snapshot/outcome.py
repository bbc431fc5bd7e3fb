"""What `Snapshot.allocate` answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dray.snapshot.explanation import ClaimExplanation


class Outcome:
    """The answer to an allocation.

    `status` is "allocated", "unsatisfiable" or "error"; `node` the node that was chosen; `allocations` holds
    `status.allocation` as resource.k8s.io/v1 JSON for each claim, by `namespace/name`; `error` says what went wrong.
    """

    def __init__(
        self,
        status: str,
        explain: Callable[[], ClaimExplanation],
        *,
        node: str | None = None,
        allocations: dict[str, dict[str, Any]] | None = None,
        error: str | None = None,
        message: str = "",
    ) -> None:
        self.status = status
        self.node = node
        self.allocations = allocations or {}
        self.error = error
        self.message = message
        self._explain = explain
        self._explained: ClaimExplanation | None = None

    def explain(self) -> ClaimExplanation:
        """Why: a reason tree, `str()` for people, `.to_dict()` for programs. Computed when first asked for."""
        if self._explained is None:
            self._explained = self._explain()
        return self._explained

    def __repr__(self) -> str:
        return f"Outcome({self.status!r}, node={self.node!r})"

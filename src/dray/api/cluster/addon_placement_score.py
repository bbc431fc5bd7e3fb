"""AddOnPlacementScore: scores that an add-on gives to one cluster, in the cluster's namespace (v1alpha1)."""

from __future__ import annotations

from msgspec import field

from dray.api.meta import Condition, Object
from dray.api.struct import Struct
from dray.api.times import Time

SCORE_LIMIT = 100


class AddOnPlacementScoreItem(Struct):
    """One score, from -100 to 100."""

    name: str = field(default_factory=str)
    value: int = field(default_factory=int)


class AddOnPlacementScoreStatus(Struct):
    """The scores, and until when they hold; without `valid_until` they never expire."""

    conditions: tuple[Condition, ...] = ()
    scores: tuple[AddOnPlacementScoreItem, ...] = ()
    valid_until: Time | None = None


class AddOnPlacementScore(Object):
    """Scores of the cluster that the namespace is named after. Namespaced."""

    status: AddOnPlacementScoreStatus = field(default_factory=AddOnPlacementScoreStatus)

"""What validation needs to know besides the objects: the time, the feature gates and the namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from dray.api.field import FieldError
from dray.api.times import Time

Errors: TypeAlias = list[FieldError]
"""Where validators put what they find; nobody stops at the first problem."""

DRA_ADMIN_NAMESPACE_LABEL = "resource.kubernetes.io/admin-access"

V1BETA1 = "v1beta1"


class Context(msgspec.Struct, frozen=True):
    """The circumstances of one create or update.

    `disabled_gates` names the feature gates that are off; everything else is on. `namespace_labels` are the labels of
    the object's namespace, None if nobody knows them (offline), which skips the rules that need them. `version` is the
    version of the API in which the request came: where shapes differ, error paths follow it.
    """

    now: Time
    disabled_gates: frozenset[str] = frozenset()
    namespace_labels: Mapping[str, str] | None = None
    version: str = "v1"
    more: Callable[[], int] | None = None
    """Gives long evaluations leave to go on (`dray.cel.allowance`); without it, there is no time for them."""

    def enabled(self, gate: str) -> bool:
        """Whether a feature gate is on."""
        return gate not in self.disabled_gates

    @property
    def is_v1beta1(self) -> bool:
        """Whether the request came in the one version whose shapes differ from the hub's."""
        return self.version == V1BETA1

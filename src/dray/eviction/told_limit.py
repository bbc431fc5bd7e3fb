"""How many evictions the guard lets go, told where everybody can read it: an annotation of kube-system. Pure.

The eviction controllers write it when they start, so that previews know what the controllers of a running cluster hold.
"""

from __future__ import annotations

from typing import Final

from dray.api.generated.core import Namespace
from dray.eviction.settings import Limit, SettingsError

LIMIT_ANNOTATION: Final = "dray.dev/max-evictions"
NO_LIMIT: Final = "none"
"""What is told, and given to `--max-evictions`, where nothing is held."""


def limit_text(limit: Limit | None) -> str:
    """What the annotation says of a limit."""
    return NO_LIMIT if limit is None else str(limit)


def told_limit(namespace: Namespace | None) -> Limit | None:
    """The limit that controllers have told; None if there is none, or nobody has told it in words that are known."""
    told = "" if namespace is None else namespace.metadata.annotations.get(LIMIT_ANNOTATION, "")
    if told in ("", NO_LIMIT):
        return None
    try:
        return Limit.parse(told)
    except SettingsError:
        return None

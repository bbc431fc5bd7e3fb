"""Which histories are lived."""

from __future__ import annotations

import os
from collections.abc import Iterable


def seeds(usual: Iterable[int]) -> Iterable[int]:
    """Those of every run, or the one that DRAY_SEED asks for."""
    wanted = os.environ.get("DRAY_SEED")
    return usual if wanted is None else (int(wanted),)

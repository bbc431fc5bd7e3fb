"""What a change of a snapshot would do, and what such changes are made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import builders
from builders import Manifest
from dray.snapshot import Snapshot
from dray.what_if.deletions import delete
from dray.what_if.difference import Difference, compare

NOW: Final = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


def apply(base: Snapshot, *objects: Manifest) -> Difference:
    """What it would do to apply objects."""
    return compare(base, base.with_applied(*objects), NOW)


def remove(base: Snapshot, *refs: str) -> Difference:
    """What it would do to delete some."""
    return compare(base, delete(base, refs, NOW), NOW)


def quota(**hard: str) -> Manifest:
    """A ResourceQuota of the namespace `ml`."""
    return builders.manifest("v1", "ResourceQuota", "q", "ml", spec={"hard": hard})

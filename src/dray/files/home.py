"""Paths that begin with `~`, also where nobody knows the user: in a container, with a number for a user."""

from __future__ import annotations

import os
from pathlib import Path


def expand(path: str | Path) -> Path:
    """The path with the home directory in place of `~`; as it is, if there is no home directory."""
    return Path(os.path.expanduser(path))  # Path.expanduser raises

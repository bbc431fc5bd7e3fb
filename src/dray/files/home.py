"""Where a user keeps things: paths that begin with `~`, and the place for data.

Also where nobody knows the user: in a container, with a number for a user.
"""

from __future__ import annotations

import os
from pathlib import Path


def expand(path: str | Path) -> Path:
    """The path with the home directory in place of `~`; as it is, if there is no home directory."""
    return Path(os.path.expanduser(path))  # Path.expanduser raises


def data() -> Path:
    """The place for data of programs: `XDG_DATA_HOME`, or `~/.local/share` where that is not set.

    A relative path counts as not set, as the XDG Base Directory Specification has it.
    """
    named = os.environ.get("XDG_DATA_HOME", "")
    return Path(named) if os.path.isabs(named) else expand("~/.local/share")

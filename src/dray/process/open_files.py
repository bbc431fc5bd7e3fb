"""How many files this process may have open: as many as the system lets it."""

from __future__ import annotations

import logging
import resource

log = logging.getLogger(__name__)


def raise_limit(few: int, reason: str) -> int:
    """Raises the soft limit to the hard one; says so if even that is less than `few`. The limit that holds now.

    `reason` ends the sentence "may be too few for".
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if 0 <= hard < few:
        log.warning(
            "only %d files can be open at once, which may be too few for %s: raise it (ulimit -n, LimitNOFILE=)",
            hard,
            reason,
        )
    return hard

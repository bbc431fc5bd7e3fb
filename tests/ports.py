"""Ports for servers that tests start."""

from __future__ import annotations

import os
import socket
from typing import Final

FIRST: Final = 20_000
BEHIND: Final = 32_768
"""From here on Linux gives ports to connections, one of which may come before the server."""

_given = os.getpid() * 97


def free_port() -> int:
    """A port of 127.0.0.1 at which nobody listens. None is given twice, and processes of tests begin far apart."""
    global _given
    while True:
        _given += 1
        port = FIRST + _given % (BEHIND - FIRST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port

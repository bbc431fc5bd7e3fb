"""Of several clusters in one process each on one etcd, one runs scheduler, controllers and simulated nodes at a time.

All serve the API and follow what happens, so that whoever takes over begins at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from dray.client import Client
from dray.process.clock import Clock
from dray.process.supervision import Supervisor
from dray.reconcile.leader import (
    SHORT_RENEW_SECONDS,
    SHORT_SECONDS,
    USUAL_SECONDS,
    LeaderElector,
    LeadershipLost,
)

LEASE: Final = "dray-up"
RETRY_SECONDS: Final = 0.3

log = logging.getLogger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]


def candidate(client: Client, clock: Clock) -> LeaderElector:
    """This process, as one that may lead."""
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    return LeaderElector(
        client,
        LEASE,
        identity,
        clock,
        lease_seconds=SHORT_SECONDS,
        longest=USUAL_SECONDS,
        renew=SHORT_RENEW_SECONDS,
        retry=RETRY_SECONDS,
    )


async def lead(elector: LeaderElector, work: Mapping[str, Work], clock: Clock) -> None:
    """Does the work whenever it is this process's turn, until cancelled."""
    while True:
        try:
            await elector.run(lambda: _do(work, clock))
        except LeadershipLost as error:
            log.warning("%s: standing by", error)


async def _do(work: Mapping[str, Work], clock: Clock) -> None:
    supervisor = Supervisor(clock)
    for name, each in work.items():
        supervisor.start(name, each)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await supervisor.stop()

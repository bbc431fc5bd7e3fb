"""Writes what a driver says of prepared devices into the status of their claims, with the driver's own rights.

    claim prepared, health changed ─▶ something new to say? ─▶ get ─▶ merge ─▶ update, again after a conflict

A node may only read claims (4381-178), so this is the driver's task. It is a service to people: nothing waits for it,
and nothing fails because of it. Entries go with the allocation, which is the API server's doing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final, cast

from msgspec.structs import replace

from dray.api.backoff import Backoff
from dray.api.kinds import CLAIMS
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.client import Client
from dray.driver.checkpoint import Checkpoint, Record
from dray.driver.claim_status import DeviceKey, Word, merge, words
from dray.driver.health import HealthReports
from dray.process.clock import as_time
from dray.reconcile import Clock

RETRY: Final = Backoff(first=1.0, longest=60.0)
LOOK_SECONDS: Final = 10.0
TRIES: Final = 5

log = logging.getLogger(__name__)


class StatusWriter:
    """The claims of one driver on one node."""

    def __init__(
        self, client: Client, clock: Clock, driver: str, checkpoint: Checkpoint, reports: HealthReports | None
    ) -> None:
        self.may_write: Callable[[], bool] = lambda: True
        """Whether this instance is the one that speaks for the driver; an older one beside a newer one is not."""
        self._client = client
        self._clock = clock
        self._driver = driver
        self._reports = reports
        self._records: dict[str, Record] = {}
        self._said: dict[str, dict[DeviceKey, Word]] = {}
        self._held_back = False
        self._refused = False
        self._wake = asyncio.Event()
        for record in checkpoint:
            if record.ready:
                self.prepared(record)

    def prepared(self, record: Record) -> None:
        """A claim is ready."""
        if self._words(record):
            self._records[record.claim.uid] = record
            self._wake.set()

    def released(self, uid: str) -> None:
        """A claim is not any more."""
        self._records.pop(uid, None)
        self._said.pop(uid, None)

    def look(self, *, changed: bool) -> None:
        """The driver has looked at its devices; `changed` if the health of some is another one."""
        if changed or self._held_back:
            self._wake.set()

    async def run(self) -> None:
        """Writes until cancelled, through failures of the server."""
        pauses = RETRY.pauses()
        while True:
            with contextlib.suppress(TimeoutError):
                # A driver that hangs says nothing; that its devices are unknown by then shows only in a look.
                # Not `wait_for`, which loses a cancellation that comes together with what it waits for.
                async with asyncio.timeout(None if self._reports is None else LOOK_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
            problem = await self._say_what_is_new()
            if problem is None:
                pauses.reset()
                continue
            pause = pauses.next()
            log.info("the status of devices is not in their claims yet, trying again in %.0f s: %s", pause, problem)
            await self._clock.sleep(pause)
            self._wake.set()

    async def _say_what_is_new(self) -> Exception | None:
        """Goes through all claims; what kept it from writing, if another try may help."""
        self._held_back = not self.may_write()
        if self._held_back or (self._reports is not None and not self._reports.begun):
            return None
        problem: Exception | None = None
        for uid, record in list(self._records.items()):
            spoken = self._words(record)
            if spoken == self._said.get(uid):
                continue
            try:
                await self._say(record, spoken)
            except (ApiError, OSError, TimeoutError) as error:
                problem = error
                continue
            if self._records.get(uid) is record:  # it may have been released, or prepared anew, meanwhile
                self._said[uid] = spoken
        return problem

    def _words(self, record: Record) -> dict[DeviceKey, Word]:
        return words(record.devices, self._reports.find if self._reports is not None else None)

    async def _say(self, record: Record, spoken: dict[DeviceKey, Word]) -> None:
        """Writes the entries of one claim. Raises ApiError or OSError if that is worth another try later."""
        tries = 0
        while True:
            tries += 1
            try:
                await self._write(record, spoken)
            except ApiError as error:
                if error.code == 409 and tries < TRIES:
                    continue
                if error.code in (403, 422):
                    self._note_refusal(f"claim {record.claim}: {error}")
                elif error.code != 404:  # else the claim is gone, and its status with it
                    raise
            return

    async def _write(self, record: Record, spoken: dict[DeviceKey, Word]) -> None:
        known = record.claim
        claim = cast(ResourceClaim, await self._client.get(CLAIMS, known.namespace, known.name))
        if claim.metadata.uid != known.uid:
            return
        entries = merge(claim.status, self._driver, spoken, as_time(self._clock.now()))
        if entries == claim.status.devices:
            return
        stored = await self._client.update(replace(claim, status=replace(claim.status, devices=entries)), "status")
        if len(stored.status.devices) < len(entries):
            self._note_refusal(f"claim {known}: the API server does not keep status.devices")
        else:
            self._refused = False

    def _note_refusal(self, why: str) -> None:
        """One line, not one for every claim and change."""
        if not self._refused:
            log.warning(
                "the status of devices is not in their claims: %s. Pods are not held up by that; let the driver update "
                "resourceclaims/status, and on Kubernetes 1.36 or later resourceclaims/driver too, to have it there",
                why,
            )
        self._refused = True

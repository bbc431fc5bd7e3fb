"""A trial: one driver, one stage, some rules, one after the other.

After a broken rule the next has its turn, unless it needs what that one has shown to be missing: a driver that
publishes nothing, or prepares no claim, is told so once. A driver that ends by itself ends the trial: the rule during
which it did is broken, that is the cause of everything else, and the remaining rules are not tried.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import grpc
from msgspec.structs import replace

from dray import cdi
from dray.api.references import ObjectRef
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.driver_test.kubelet import Answer, CallFailed, PluginConnection, Registration, find_sockets
from dray.driver_test.report import DriverReport, Outcome, Result
from dray.driver_test.rule import Broken, Level, NotApplicable, Rule, UnprepareFailed
from dray.driver_test.stage import DeviceName, Stage
from dray.driver_test.subject import Subject

UNPREPARE: Final = "NodeUnprepareResources"
POLL_SECONDS: Final = 0.05
STOP_SECONDS: Final = 15.0
SETTLED_SECONDS: Final = 2.0
DEATH_SECONDS: Final = 0.5
"""How long after a rule was broken the driver may still turn out to have ended."""

T = TypeVar("T")


class Trial:
    """What a rule has to work with. Everything that it prepares is unprepared after it."""

    def __init__(self, stage: Stage, subject: Subject, *, socket: Path | None = None, timeout: float = 45.0) -> None:
        """`socket`: the driver's registration socket, if it runs already."""
        self.stage = stage
        self.subject = subject
        self.timeout = timeout
        self.many: Mapping[str, str] = {}
        """Environment variables with which the driver publishes more than 128 devices."""
        self.cdi = cdi.Cache([stage.places.cdi])
        self.driver = ""
        self._socket = socket
        self._registration: Registration | None = None
        self._plugin: PluginConnection | None = None
        self._claims: list[ResourceClaim] = []
        self._started = False
        self._started_at = 0.0
        self._absent = ""
        self.untidy = ""
        """How cleaning up after a rule failed, if it did: what is prepared then says nothing any more."""
        self.unpublished = ""
        """What the driver has not published, although it was waited for; it is not waited for again."""
        self._unprepared = ""
        self._has_prepared = False

    async def start(self, extra: Mapping[str, str] | None = None) -> None:
        """Starts the driver, if it does not run."""
        if not self._started:
            await self.subject.start(self.stage.places, extra or {})
            self._started = True
            self._started_at = time.monotonic()

    async def settled(self) -> None:
        """Once the driver has run for a moment: who has just begun need not be ready for everything."""
        await asyncio.sleep(self._started_at + SETTLED_SECONDS - time.monotonic())

    async def end(self, end: Callable[[], Awaitable[T]]) -> T:
        """Ends the driver in some way; everything about it must be found out again."""
        await self._disconnect()
        self._started = False
        self._absent = ""
        return await end()

    async def registration(self) -> Registration:
        """The registration socket, once there is one. Raises Broken, and NotApplicable from then on."""
        await self.start()
        if self._absent:
            raise NotApplicable(self._absent)  # it was waited for once; not again for every rule
        if self._registration is None:
            try:
                found = await self.until(self._find_sockets, "no registration socket appeared where nodes look for it")
            except Broken as error:
                self._absent = "the driver does not run" if self.subject.problem() else str(error)
                raise
            self._registration = Registration(found[0], self.timeout)
        return self._registration

    async def plugin(self) -> PluginConnection:
        """The registered driver. Raises Broken."""
        if self._plugin is None:
            registration = await self.registration()
            try:
                info = await registration.get_info()
                await registration.notify()
            except CallFailed as error:
                raise Broken(f"the driver cannot be registered: {error}") from None
            self._plugin = PluginConnection(info, registration.socket, self.timeout)
            self.driver = info.name
        return self._plugin

    async def claim(self) -> ResourceClaim:
        """A claim with a device of the driver. Raises NotApplicable if the driver has none that is free."""
        await self.plugin()
        claim = await self.unallocated_claim()
        await self.allocate(claim)
        return claim

    async def allocate(self, claim: ResourceClaim) -> DeviceName:
        """Gives a claim a device. Raises NotApplicable if there is none that is free."""
        if not self.unpublished:
            try:
                await self.until(lambda: self.stage.devices(self.driver), "no device was published")
            except Broken as error:
                self.unpublished = str(error)
        device = await self.stage.allocate(claim, self.driver)
        if device is None:
            raise NotApplicable("the driver has not published enough devices that are free")
        return device

    async def unallocated_claim(self) -> ResourceClaim:
        """A claim without devices."""
        claim = await self.stage.create_claim()
        self._claims.append(claim)
        return claim

    async def prepared(self, *claims: ResourceClaim, version: str = "") -> list[Answer]:
        """Prepares claims in one call; the answers, in that order.

        Raises Broken unless all are prepared, or NotApplicable if an earlier rule was broken by that.
        """
        plugin = await self.plugin()
        try:
            answers = await plugin.prepare([ObjectRef.of(claim) for claim in claims], version)
            good = [self._good(answers, claim, "NodePrepareResources") for claim in claims]
        except CallFailed as error:
            raise self._unpreparable(f"NodePrepareResources failed with {error}") from None
        except Broken as error:
            raise self._unpreparable(str(error)) from None
        self._has_prepared = True
        return good

    def _unpreparable(self, why: str) -> Broken | NotApplicable:
        if self.untidy:
            return NotApplicable(f"after an earlier rule {self.untidy}; then {why}")
        if self._unprepared and not self._has_prepared:
            return NotApplicable("the driver has not prepared any claim so far")
        self._unprepared = why
        return Broken(why)

    async def unprepared(self, *claims: ResourceClaim) -> None:
        """Unprepares claims in one call. Raises UnprepareFailed unless that succeeds."""
        plugin = await self.plugin()
        try:
            answers = await plugin.unprepare([ObjectRef.of(claim) for claim in claims])
            for claim in claims:
                self._good(answers, claim, UNPREPARE)
        except CallFailed as error:
            raise UnprepareFailed(f"{UNPREPARE} failed with {error}") from None
        except Broken as error:
            raise UnprepareFailed(str(error)) from None

    async def refused(self, claim: ObjectRef) -> str:
        """Tries to prepare a claim that cannot be; how the driver says no. Raises Broken if it does not."""
        plugin = await self.plugin()
        try:
            answers = await plugin.prepare([claim])
        except CallFailed as error:
            if error.code is grpc.StatusCode.UNAVAILABLE and (problem := await self.death(DEATH_SECONDS)):
                raise Broken(problem) from None  # who is not there any more has refused nothing
            return str(error)
        answer = answers.get(claim.uid)
        if answer is None:
            raise Broken("NodePrepareResources left the claim out of its answer; it must have an entry for every claim")
        return answer.error

    def cdi_files(self) -> set[str]:
        """The names of all files in the CDI directory."""
        directory = self.stage.places.cdi
        return {path.name for path in directory.iterdir()} if directory.is_dir() else set()

    async def until(self, holds: Callable[[], T], otherwise: str) -> T:
        """What a function returns once that is true. Raises Broken after the timeout, or when the driver has ended."""
        deadline = time.monotonic() + self.timeout
        while not (found := holds()):
            problem = self.subject.problem()
            if problem or time.monotonic() > deadline:
                raise Broken(problem or f"{otherwise} within {self.timeout:g} s")
            await asyncio.sleep(POLL_SECONDS)
        return found

    async def tidy(self) -> bool:
        """Unprepares and removes the claims of a rule; whether that succeeded."""
        claims, self._claims = self._claims, []
        errors: list[str] = []
        if claims and self._plugin is not None:
            try:
                answers = await self._plugin.unprepare([ObjectRef.of(claim) for claim in claims])
                errors = [answer.error for answer in answers.values() if answer.error]
            except CallFailed as error:
                errors = [str(error)]
            except Broken:
                errors = []
            if errors and not self.untidy:
                self.untidy = f"{UNPREPARE} failed: {errors[0]}"
        for claim in claims:
            await self.stage.deallocate(claim)
        return not errors

    async def death(self, patience: float) -> str:
        """How the driver ended although nobody told it to; empty if it did not within so many seconds."""
        deadline = time.monotonic() + patience
        while self._started:
            problem = self.subject.problem()
            if problem or time.monotonic() > deadline:
                return problem
            await asyncio.sleep(POLL_SECONDS)
        return ""

    async def close(self) -> None:
        """Ends the driver, if the kit started it."""
        await self._disconnect()
        if self._started:
            await self.subject.stop(STOP_SECONDS)

    def _find_sockets(self) -> list[Path]:
        if self._socket is not None:
            return [self._socket] if self._socket.exists() else []
        return find_sockets(self.stage.places.registry)

    async def _disconnect(self) -> None:
        for connection in (self._registration, self._plugin):
            if connection is not None:
                await connection.close()
        self._registration = self._plugin = None

    def _good(self, answers: Mapping[str, Answer], claim: ResourceClaim, method: str) -> Answer:
        answer = answers.get(claim.metadata.uid)
        if answer is None:
            raise Broken(f"{method} left a claim out of its answer; it must have an entry for every claim")
        if answer.error:
            raise Broken(f"{method} failed for a claim: {answer.error}")
        return answer


async def run_trial(
    trial: Trial,
    rules: Iterable[Rule],
    heard: Callable[[Result], None] = lambda _: None,
    quoted: Callable[[str, tuple[str, ...]], None] = lambda _cause, _said: None,
) -> DriverReport:
    """Tries rules in order; `heard` is told of each result at once. Raises SubjectError or StageError.

    `quoted` is told the last lines that the driver said, once: how it ended by itself, before everything that follows
    from it; else with the first rule that it broke.
    """
    results: list[Result] = []
    cause = ""
    said: tuple[str, ...] = ()

    def note(result: Result) -> None:
        heard(result)
        results.append(result)

    is_unprepare_blamed = False
    try:
        for rule in rules:
            if cause:
                note(Result(rule.name, rule.title, Outcome.SKIPPED, "the driver does not run any more"))
                continue
            tried = await _try(trial, rule)
            result, cause = tried.result, tried.death or tried.late_death
            if tried.death:
                trial.subject.check_start(registered=bool(trial.driver))
                result = replace(result, outcome=Outcome.FAILED, message=cause)
            if cause:
                said = trial.subject.said()
                quoted(cause, said)
            note(result)
            is_unprepare_blamed |= result.is_broken and tried.unprepare_failed
            if tried.late_death:
                note(_unprepare_after_use(cause))
            elif result.is_broken and not cause and not said and (said := trial.subject.said()):
                quoted("", said)
        if trial.untidy and not cause and not is_unprepare_blamed:
            note(_unprepare_after_use(trial.untidy))
    finally:
        await trial.close()
    return DriverReport(trial.driver, tuple(results), cause, said)


class _Tried(NamedTuple):
    result: Result
    death: str
    """How the driver ended by itself while the rule was tried."""
    late_death: str
    """How it ended when the rule had been tried, and its claims were unprepared."""
    unprepare_failed: bool
    """Whether that is what ended the rule."""


def _unprepare_after_use(why: str) -> Result:
    return Result("unprepare-after-use", "Unprepare works after a rule was tried", Outcome.FAILED, why)


async def _try(trial: Trial, rule: Rule) -> _Tried:
    began = time.monotonic()
    outcome, message = Outcome.PASSED, ""
    unprepare_failed = False
    try:
        try:
            await rule.check(trial)
        except NotApplicable as error:
            outcome, message = Outcome.SKIPPED, str(error)
        except (Broken, CallFailed, ApiError, OSError) as error:
            outcome, message = Outcome.FAILED if rule.level is Level.MUST else Outcome.ADVICE, str(error)
            unprepare_failed = isinstance(error, UnprepareFailed)
        seconds = round(time.monotonic() - began, 3)
        death = await trial.death(0.0 if outcome in (Outcome.PASSED, Outcome.SKIPPED) else DEATH_SECONDS)
    finally:
        is_tidy = await trial.tidy()
    late = "" if death else await trial.death(0.0 if is_tidy else DEATH_SECONDS)
    return _Tried(Result(rule.name, rule.title, outcome, message, seconds), death, late, unprepare_failed)

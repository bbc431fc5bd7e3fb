"""Evaluates selectors on devices, once per distinct set of the values that the expressions read."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import Enum, auto
from itertools import count
from typing import Final, NamedTuple

from dray import cel
from dray.api.recent import Bounded, Recent
from dray.api.resource import Device
from dray.api.semver import Semver, SemverError
from dray.api.text_memory import remember_texts
from dray.cel.explain import Condition
from dray.tracker.view import EffectiveDevice

_CACHED_JUDGES: Final = 2048
_LONG_JUDGES: Final = 64
_CACHED_VERDICTS: Final = 65_536
_SHARED_VERDICTS: Final = 400_000
_COMPILED_BYTES: Final = 96 * 1024 * 1024
_BYTES_OF_A_LETTER: Final = 85
"""What an expression takes once it is compiled: ten kilobytes become more than 800."""
_CACHED_DRIVERS: Final = 64
_COMPILED_AT_ONCE: Final = 16
"""How many expressions are left to others at a time: fewer than are remembered until they are asked for."""

_Compiled = cel.Selector | cel.CompileError

_Read = tuple[str, str]
"""The domain and the name of an attribute or a capacity."""


class Unsettled(Enum):
    """Why there is no verdict yet."""

    BEING_JUDGED = auto()
    OUT_OF_TIME = auto()


class Refuted(NamedTuple):
    """The first expression that is not true for a device, by number; `error` is set if it has no result.

    One that does not compile has none on any device. `unsettled` is set if it is not known whether it is true; it may
    be known when asked again.
    """

    number: int
    error: str | None = None
    compiles: bool = True
    unsettled: Unsettled | None = None


class _Names(NamedTuple):
    """What expressions read of the devices of one driver, under the names that it may publish them with."""

    attributes: tuple[str, ...]
    capacities: tuple[str, ...]

    @classmethod
    def of(cls, driver: str, attributes: Iterable[_Read], capacities: Iterable[_Read]) -> _Names:
        return cls(_published(driver, attributes), _published(driver, capacities))


def _published(driver: str, read: Iterable[_Read]) -> tuple[str, ...]:
    """A name in the driver's own domain may be published with or without it."""
    return tuple(
        published
        for domain, name in read
        for published in ((f"{domain}/{name}", name) if domain == driver else (f"{domain}/{name}",))
    )


class Memory:
    """What the judges of one scheduler remember together: whoever makes claims chooses how many judges there are, and
    what they say. What is forgotten is found out anew."""

    def __init__(self) -> None:
        self._numbers = count()
        self._compiled: Recent[Judge, None] = Recent(_CACHED_JUDGES, _COMPILED_BYTES)
        self.verdicts: Bounded[Hashable, Refuted | None] = Bounded(_SHARED_VERDICTS)

    def new_number(self) -> int:
        """What tells the verdicts of a judge from those of others."""
        return next(self._numbers)

    def note_compiled(self, judge: Judge, letters: int) -> None:
        """A judge has compiled its expressions; others may have to do so again for it."""
        for other in self._compiled.put(judge, None, letters * _BYTES_OF_A_LETTER):
            other.forget_programs()


class Judge:
    """Expressions that must all be true, in order. It remembers verdicts, which never change.

    With a backlog, what takes long is left to it, and unsettled until then.
    """

    def __init__(
        self, expressions: tuple[str, ...], backlog: cel.Backlog | None = None, memory: Memory | None = None
    ) -> None:
        self._expressions: Final = expressions
        self._backlog: Final = backlog
        self._memory: Final = memory
        self._programs: tuple[_Compiled, ...] = ()
        self._compiling: list[_Compiled] = []
        self._is_cached = False
        self._attributes: list[_Read] = []
        self._capacities: list[_Read] = []
        self._names: Bounded[str, _Names] = Bounded(_CACHED_DRIVERS)
        self._verdicts = Bounded(_CACHED_VERDICTS) if memory is None else memory.verdicts
        self._number: Final = None if memory is None else memory.new_number()

    def judge(self, device: EffectiveDevice) -> Refuted | None:
        """None if all expressions are true for a device."""
        programs = self._programs
        if len(programs) < len(self._expressions):
            programs = self._compile()
            if len(programs) < len(self._expressions):
                return Refuted(len(programs), unsettled=Unsettled.BEING_JUDGED)
        look = self.look_of(device)
        if look is None:
            return self._evaluate(device, programs)
        key = (self._number, look)
        try:
            return self._verdicts[key]
        except KeyError:
            verdict = self._evaluate(device, programs)
            if verdict is None or verdict.unsettled is None:
                self._verdicts.keep(key, verdict)
            return verdict

    def look_of(self, device: EffectiveDevice) -> Hashable | None:
        """Equal for devices that look the same to the expressions once one was judged; None if that is not known."""
        return self._projection(device) if self._is_cached and _is_readable(device.device) else None

    @property
    def may_settle_later(self) -> bool:
        """Whether what was unsettled a moment ago may be known now."""
        return self._backlog is not None

    def must_wait(self) -> bool:
        """Whether there is no time to look at more devices now."""
        return self._backlog is not None and self._backlog.is_turn_over()

    def forget_programs(self) -> None:
        """They take much room, and are compiled again when they are needed."""
        self._programs = ()

    def _compile(self) -> tuple[_Compiled, ...]:
        """Compile the expressions, or those that others have not to compile first."""
        backlog, done = self._backlog, self._compiling
        if backlog is not None:
            for expression in self._expressions[len(done) : len(done) + _COMPILED_AT_ONCE]:
                backlog.must_wait_for(expression)
        for expression in self._expressions[len(done) :]:
            if backlog is not None and backlog.must_wait_for(expression):
                return tuple(done)
            done.append(_compile(expression))
        self._programs = compiled = tuple(done)
        self._compiling = []
        if self._memory is not None:
            self._memory.note_compiled(self, sum(map(len, self._expressions)))
        programs = [program for program in compiled if not isinstance(program, cel.CompileError)]
        self._is_cached = not any(program.reads.everything for program in programs)
        read = sorted({value for program in programs for value in program.reads.values})
        self._attributes = [(domain, name) for kind, domain, name in read if kind == "attribute"]
        self._capacities = [(domain, name) for kind, domain, name in read if kind == "capacity"]
        return compiled

    def _evaluate(self, device: EffectiveDevice, programs: tuple[_Compiled, ...]) -> Refuted | None:
        if not programs:
            return None
        backlog = self._backlog
        if backlog is not None and backlog.is_turn_over():
            return Refuted(0, unsettled=Unsettled.BEING_JUDGED)
        view = device.view
        for number, program in enumerate(programs):
            if isinstance(program, cel.CompileError):
                return Refuted(number, f"CEL compile error: {program.message}", compiles=False)
            try:
                if not (program.matches(view) if backlog is None else program.matches_now(view)):
                    return Refuted(number)
            except cel.EvaluationError as error:
                return Refuted(number, f"CEL runtime error: {error.message}")
            except cel.Postponed:
                assert backlog is not None
                backlog.note(program, view)
                return Refuted(number, unsettled=Unsettled.BEING_JUDGED)
            except cel.OutOfTime:
                return Refuted(number, unsettled=Unsettled.OUT_OF_TIME)
        return None

    def _projection(self, device: EffectiveDevice) -> Hashable:
        """What the expressions see of a device.

        Quantities are told apart by notation, too, because expressions can ask for it.
        """
        driver = device.id.driver
        entry = device.device
        names = self._names.get(driver)
        if names is None:
            names = self._names.keep(driver, _Names.of(driver, self._attributes, self._capacities))
        amounts = [entry.capacity.get(name) for name in names.capacities]
        return (
            driver,
            entry.allow_multiple_allocations,
            *map(entry.attributes.get, names.attributes),
            *[None if amount is None else amount.value.notation for amount in amounts],
        )


def conditions_of(expression: str, device: EffectiveDevice) -> list[Condition]:
    """The conditions of an expression and what they came to; none if it does not compile, or takes long."""
    program = _compile(expression)
    if isinstance(program, cel.CompileError) or program.outcomes.are_kept:
        return []  # what takes long is not done again to tell its parts
    return program.explain(device.view)


def _compile(expression: str) -> cel.Selector | cel.CompileError:
    """As stored expressions are: what a newer version accepted is still tried (4381-52)."""
    try:
        return cel.compile(expression, mode="stored")
    except cel.CompileError as error:
        return error


def _is_readable(device: Device) -> bool:
    """Whether all values can be converted; if not, every expression fails on the device."""
    for attribute in device.attributes.values():
        if attribute.string is not None or attribute.int_value is not None or attribute.bool_value is not None:
            continue
        if attribute.ints or attribute.bools or attribute.strings:
            continue
        versions = attribute.versions or ((attribute.version,) if attribute.version is not None else ())
        if not versions or not all(map(_is_version, versions)):
            return False
    return True


@remember_texts(4096)
def _is_version(text: str) -> bool:
    try:
        Semver.parse(text)
    except SemverError:
        return False
    return True


@remember_texts(_CACHED_JUDGES, long_entries=_LONG_JUDGES)
def judge_of(expressions: tuple[str, ...]) -> Judge:
    """The judge for some expressions; the same one for equal expressions, up to a bounded number."""
    return Judge(expressions)

"""The options that `taint`, `untaint` and `drain` share, and how their texts are read."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec
import typer
from msgspec.structs import replace

from dray.cli import completion, output
from dray.cli.names import node_name, node_option
from dray.cli.option_groups import OptionGroup

if TYPE_CHECKING:
    from dray.api.times import Time
    from dray.cli.live import Source
    from dray.eviction.drain import DrainTerms
    from dray.snapshot.device_selection import DeviceSelection
    from dray.what_if.taint_preview import TaintPreview

DEVICE_EFFECTS: Final = ("None", "NoSchedule", "NoExecute")
NODE_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
CLUSTER_EFFECTS: Final = ("NoSelect", "PreferNoSelect", "NoSelectIfNew")
GOES_ON: Final = "The eviction goes on; to stop it"

_DURATION: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?", re.ASCII)
_UNITS: Final = ("days", "hours", "minutes", "seconds", "milliseconds")
_LONGEST: Final = timedelta(days=3650)
_MAX_RATE: Final = 999_999_999

TIMEOUT: Final[Any] = typer.Option(metavar="TIME", help="Wait no longer than this, such as 90s or 10m.")

Format: TypeAlias = Annotated[output.Format, typer.Option("--output", "-o", help="How to print.")]
Rate: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--evictions-per-second", min=1, max=_MAX_RATE, metavar="N", help="How fast pods leave; 10 if not given."
    ),
]
NodeRate: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--evictions-per-second",
        min=1,
        max=_MAX_RATE,
        metavar="N",
        help="How fast pods leave, all these nodes together; all at once if not given.",
    ),
]
For: TypeAlias = Annotated[
    str, typer.Option("--for", metavar="TIME", help="Take the taint away again after this time, such as 2h or 1d12h.")
]


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How to go about it."""

    dry_run: bool = False
    wait: bool = False
    until_idle: bool = False
    """Whether to wait until all that was used is released, not just until everybody is leaving."""
    timeout: float | None = None
    yes: bool = False
    format: output.Format = output.Format.TEXT
    drain: DrainTerms | None = None
    """Pods leave through the eviction API, which keeps budgets; None if controllers delete them for the taint."""

    @property
    def is_json(self) -> bool:
        """Whether standard output is for programs."""
        return self.format is output.Format.JSON

    def say(self, text: str) -> None:
        """Prints for people; programs get one document at the end."""
        if not self.is_json:
            print(text, flush=True)


class Devices(OptionGroup, frozen=True):
    """Which devices are meant: everything that is given must hold of them."""

    node: Annotated[str, node_option("Devices of this node.")] = ""
    device: Annotated[str, typer.Option(help="Devices of this name.", autocompletion=completion.devices)] = ""
    driver: Annotated[str, typer.Option(help="Devices of this driver.", autocompletion=completion.drivers)] = ""
    pool: Annotated[str, typer.Option(help="Devices of this pool.", autocompletion=completion.pools)] = ""
    device_class: Annotated[
        str,
        typer.Option("--class", help="Devices that this device class selects.", autocompletion=completion.classes),
    ] = ""
    cel: Annotated[
        list[str] | None, typer.Option(metavar="EXPR", help="Devices for which this is true; may be repeated.")
    ] = None

    def selection(self) -> DeviceSelection:
        """The same for those who look for them."""
        from dray.snapshot.device_selection import DeviceSelection

        return DeviceSelection(self.node, self.driver, self.pool, self.device, self.device_class, tuple(self.cel or ()))


class Showing(OptionGroup, frozen=True):
    """How to go about something that takes no time."""

    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show who is hit, and change nothing.")] = False
    format_: Format = output.Format.TEXT

    def manner(self) -> Manner:
        """The same, read. Ends with exit code 2 for what cannot be."""
        return Manner(dry_run=self.dry_run, format=self.format_)


class Waiting(Showing, frozen=True):
    """How to go about something that takes time."""

    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is done, and show how far it is.")] = False
    timeout: Annotated[str, typer.Option(metavar="TIME", help="Wait no longer than this, such as 90s or 10m.")] = ""

    def manner(self) -> Manner:
        """The same, read. Ends with exit code 2 for what cannot be."""
        return replace(super().manner(), wait=self.wait, timeout=read_timeout(self.timeout))


class Asking(Waiting, frozen=True):
    """How to go about something that may hit many."""

    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, however many devices or pods are hit.")] = False

    def manner(self) -> Manner:
        """The same, read. Ends with exit code 2 for what cannot be."""
        return replace(super().manner(), yes=self.yes)


class Draining(Asking, frozen=True):
    """How to empty devices or nodes."""

    ignore_budgets: Annotated[
        bool, typer.Option("--ignore-budgets", help="Taint with NoExecute: pods leave whatever disruption budgets say.")
    ] = False
    wait_for_replacements: Annotated[
        bool,
        typer.Option(
            "--wait-for-replacements",
            help="The next ready pod of a controller leaves when those that left before are replaced elsewhere.",
        ),
    ] = False
    deadline: Annotated[
        str,
        typer.Option(metavar="TIME", help="After this time, such as 30m, who is left is deleted whatever budgets say."),
    ] = ""

    def at_rate(self, rate: int | None) -> Manner:
        """The same, read, with so many pods a second. Ends with exit code 2 for what does not go together."""
        terms = self._terms(rate)
        return replace(self.manner(), wait=self.wait or terms is not None, until_idle=self.wait, drain=terms)

    def _terms(self, rate: int | None) -> DrainTerms | None:
        """What the drain keeps; None if it ignores budgets."""
        from dray.eviction.drain import DrainTerms

        length = read_duration(self.deadline, "--deadline")
        if self.ignore_budgets:
            if self.wait_for_replacements or length is not None:
                what = "--wait-for-replacements" if self.wait_for_replacements else "--deadline"
                output.fail(f"{what} needs a drain that keeps budgets: leave out --ignore-budgets.")
            return None
        seconds = None if length is None else length.total_seconds()
        return DrainTerms(rate=rate, wait_for_replacements=self.wait_for_replacements, deadline=seconds)


class Terms(NamedTuple):
    """What comes with a taint: how fast pods leave, and until when it lasts."""

    rate: int | None = None
    until: Time | None = None

    @classmethod
    def read(cls, rate: int | None, length: str) -> Terms:
        """From the options `--evictions-per-second` and `--for`. Ends with exit code 2."""
        return cls(rate, read_until(length))


class TaintText(NamedTuple):
    """A taint as people write it."""

    key: str
    value: str
    effect: str


def check_preview(source: Source, manner: Manner) -> None:
    """A cluster in files can only be looked at. Ends with exit code 2 if it is to be changed."""
    source.check_alone(source.given)
    if source.given and not manner.dry_run:
        output.fail("-f is a cluster in files, which cannot be changed: give --dry-run, too.")


def read_taint(text: str, effects: tuple[str, ...], default_effect: str = "") -> TaintText:
    """`key=value:Effect`, `key:Effect`, or without the effect if there is a default. Ends with exit code 2."""
    from dray.api.names import validate_label_key, validate_label_value

    rest, colon, effect = text.rpartition(":")
    if not colon:
        rest, effect = text, default_effect
    key, _, value = rest.partition("=")
    if effect not in effects:
        known = " or ".join(filter(None, (", ".join(effects[:-1]), effects[-1])))
        wanted = f"KEY[=VALUE]:EFFECT with the effect {known}"
        output.fail(f"taint {text!r}: {f'there is no effect {effect!r}' if effect else 'no effect'}. Write {wanted}.")
    for what, problems in (("key", validate_label_key(key)), ("value", validate_label_value(value))):
        if problems:
            output.fail(f"taint {text!r}: the {what} {key if what == 'key' else value!r} is not valid: {problems[0]}")
    return TaintText(key, value, effect)


def read_taints(texts: Sequence[str], effects: tuple[str, ...]) -> list[TaintText]:
    """Several: of a key and an effect there is one. Ends with exit code 2."""
    found = [read_taint(text, effects) for text in texts]
    for number, one in enumerate(found):
        if any((one.key, one.effect) == (other.key, other.effect) for other in found[:number]):
            output.fail(f"taint {texts[number]!r}: {one.key}:{one.effect} is given twice. Write it once.")
    return found


def split_nodes(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names of nodes, each once, and taints, which are told apart by `:` or `=`."""
    taints = [word for word in words if ":" in word or "=" in word]
    return list(dict.fromkeys(node_name(word) for word in words if word not in taints)), taints


def read_duration(text: str, option: str) -> timedelta | None:
    """`2h`, `90m`, `1d12h`, `30s`; None if nothing was given. Ends with exit code 2 for anything else."""
    if not text:
        return None
    found = _DURATION.fullmatch(text)
    parts = [int((part or "0")[:9]) for part in (found.groups() if found else ("",) * len(_UNITS))]
    length = timedelta(**dict(zip(_UNITS, parts, strict=True)))
    if not timedelta(0) < length <= _LONGEST:
        wrong = f"{option} {text[:40]!r} is not a time from 1s to {_LONGEST.days}d"
        output.fail(f"{wrong}. Write it as 2h, 90m, 1d12h or 30s.")
    return length


def read_until(text: str) -> Time | None:
    """When `--for` is over; None if it was not given."""
    from dray.api.times import Time
    from dray.snapshot.objects import current_time

    length = read_duration(text, "--for")
    return None if length is None else Time.of(current_time().datetime() + length)


def read_timeout(text: str) -> float | None:
    """How many seconds to wait at most."""
    length = read_duration(text, "--timeout")
    return None if length is None else length.total_seconds()


def mark(is_good: bool) -> str:
    """A tick, or a cross."""
    return "✔" if is_good else "✘"


def confirm_many(preview: TaintPreview, manner: Manner) -> None:
    """Asks before a drain makes more pods leave than the guard allows: no controller holds what a client evicts."""
    guard = preview.guard
    if manner.drain is not None and guard is not None and guard.is_over and not manner.yes:
        confirm(guard.pods, f"More pods leave than the guard's limit of {guard.allowed}.", "pods")


def confirm(count: int, what: str, noun: str) -> None:
    """Asks for the number of things that are hit. Ends with exit code 1 unless it is given."""
    print(f"{what} Type the number of {noun} ({count}) to go on: ", file=sys.stderr, end="", flush=True)
    answer = sys.stdin.readline().strip()
    if answer != str(count):
        print("Nothing was changed. Type the number, or give --yes.", file=sys.stderr)
        raise SystemExit(output.NO)

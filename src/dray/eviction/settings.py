"""How evictions are configured: which policy decides, what if it fails, how many need a confirmation. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from dray.eviction.builtin_policies import DEFAULT

POLICY_ANNOTATION: Final = "dray.dev/eviction-policy"
"""On a pod: which of the offered policies decides about it."""
FEW: Final = 5
"""So many may leave any cluster that is to be spared."""
_COUNT: Final = re.compile(r"[0-9]{1,9}")
_SHARE: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?)%")


class SettingsError(ValueError):
    """A setting that cannot be. The message names it and says what can."""


class FailurePolicy(StrEnum):
    """What becomes of a pod whose policy cannot be asked: it fails, says nonsense or takes too long."""

    HOLD = "hold"
    """It stays, and the policy is asked again later."""
    DELETE = "delete"
    """It is deleted, as without a policy."""


class Limit(msgspec.Struct, frozen=True):
    """So many pods may be evicted without being asked: the largest of the parts that are given."""

    count: int | None = None
    percent: float | None = None
    """Of those that could be evicted."""
    node: bool = False
    """As many as a node's worth (`guard.Base`)."""
    spare: bool = False
    """And as long as nobody has come in their place no more than a few, a tenth or a node's worth."""

    @classmethod
    def parse(cls, text: str) -> Limit:
        """`100`, `10%`, or several of these, `node` and `spare`, with commas between. Raises SettingsError."""
        count, percent, words = None, None, set[str]()
        for part in map(str.strip, text.split(",")):
            share = _SHARE.fullmatch(part)
            if part in ("node", "spare") and part not in words:
                words.add(part)
            elif share is not None and float(share[1]) <= 100 and percent is None:
                percent = float(share[1])
            elif _COUNT.fullmatch(part) and count is None:
                count = int(part)
            else:
                what = "write a number of pods, a share such as 10%, `node`, `spare`, each once, with commas between"
                raise SettingsError(f"{text!r} is no limit of evictions; {what}")
        if words == {"spare"} and count is None and percent is None:
            raise SettingsError(f"{text!r} is no limit of evictions; `spare` is what a limit does besides: 50,spare")
        return cls(count, percent, "node" in words, "spare" in words)

    def pods(self, of: int, nodes_worth: int = 0) -> int:
        """How many pods that is, out of so many, in an hour."""
        # A share has three digits behind the point at most; binary fractions would round some numbers down.
        share = 0 if self.percent is None else round(self.percent * 1000) * of // 100_000
        return max(self.count or 0, share, nodes_worth if self.node else 0)

    def missing(self, of: int, nodes_worth: int) -> int | None:
        """How many of so many may be gone and not replaced; None if that is nobody's concern."""
        return max(FEW, of // 10, nodes_worth) if self.spare else None

    def at_once(self, of: int, nodes_worth: int) -> int:
        """How many may leave if nobody has left yet."""
        missing = self.missing(of, nodes_worth)
        in_all = self.pods(of, nodes_worth)
        return in_all if missing is None else min(in_all, missing)

    def __str__(self) -> str:
        parts = [] if self.count is None else [str(self.count)]
        parts += [] if self.percent is None else [f"{self.percent:g}%"]
        return ",".join([*parts, *(["node"] if self.node else []), *(["spare"] if self.spare else [])])


class PolicyChoice(msgspec.Struct, frozen=True):
    """A policy by name, with options."""

    name: str
    options: Mapping[str, str] = {}

    @classmethod
    def parse(cls, text: str) -> PolicyChoice:
        """`NAME` or `NAME=option:value,option:value`. Raises SettingsError."""
        name, _, rest = text.partition("=")
        options: dict[str, str] = {}
        for part in filter(None, map(str.strip, rest.split(","))):
            option, colon, value = part.partition(":")
            if not colon or not option.isidentifier() or option in options:
                raise SettingsError(f"{part!r} in {text!r} is no option of a policy; write option:value, each once")
            options[option] = value.strip()
        if not name.strip():
            raise SettingsError(f"{text!r} names no eviction policy")
        return cls(name.strip(), options)


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that another process decides, over HTTPS."""

    name: str
    url: str
    ca_file: str = ""
    """A bundle of certificates to trust; the system's if there is none."""
    follows_up: bool = False
    """Whether it is asked again about pods that it let go and that are still there."""


class EvictionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Of both eviction controllers. By default nobody is asked, and nothing is held."""

    policy: PolicyChoice = PolicyChoice(DEFAULT)
    offered: tuple[PolicyChoice, ...] = ()
    """What pods may choose instead, by annotation."""
    webhooks: tuple[Webhook, ...] = ()
    failure_policy: FailurePolicy = FailurePolicy.HOLD
    timeout: float = 10.0
    """Seconds that a policy which is not built in may take for one answer."""
    max_evictions: Limit | None = None

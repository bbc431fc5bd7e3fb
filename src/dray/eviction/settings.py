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
CONFIRM_ANNOTATION: Final = "dray.dev/confirm-evictions"
"""On a rule, a ResourceSlice or a node: the evictions that the guard holds are meant (`guard`)."""

_COUNT: Final = re.compile(r"[0-9]{1,9}")
_SHARE: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?)%")


class SettingsError(ValueError):
    """A setting that cannot be. The message names it and says what can."""


class Fallback(StrEnum):
    """What becomes of a pod whose policy fails or takes too long."""

    DELETE = "delete"
    """It is deleted, as without a policy."""
    HOLD = "hold"
    """It stays, and the policy is asked again later."""


class Limit(msgspec.Struct, frozen=True):
    """So many pods may be evicted for one taint without being asked: a number, or percent of those that could be."""

    count: int | None = None
    percent: float | None = None

    @classmethod
    def parse(cls, text: str) -> Limit:
        """`100` or `10%`. Raises SettingsError."""
        share = _SHARE.fullmatch(text.strip())
        if share is not None and float(share[1]) <= 100:
            return cls(percent=float(share[1]))
        if _COUNT.fullmatch(text.strip()):
            return cls(count=int(text))
        raise SettingsError(f"{text!r} is no limit of evictions; write a number of pods or a share such as 10%")

    def is_passed(self, pods: int, of: int) -> bool:
        """Whether so many pods out of so many are too many."""
        if self.count is not None:
            return pods > self.count
        return self.percent is not None and pods * 100 > self.percent * of

    def __str__(self) -> str:
        return f"{self.count}" if self.count is not None else f"{self.percent:g}%"


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
    fallback: Fallback = Fallback.DELETE
    timeout: float = 10.0
    """Seconds that a policy which is not built in may take for one answer."""
    max_evictions: Limit | None = None

    @property
    def asks_nobody(self) -> bool:
        """Whether pods leave as planned, without anybody having a say."""
        return self.policy.name == DEFAULT and not self.offered

"""The labels of a namespace about Pod Security, read."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dray.api.field import FieldError, invalid
from dray.api.meta import ObjectMeta
from dray.api.sharing import remembered

PREFIX: Final = "pod-security.kubernetes.io/"
PRIVILEGED: Final = "privileged"
BASELINE: Final = "baseline"
RESTRICTED: Final = "restricted"
LEVELS: Final = (PRIVILEGED, BASELINE, RESTRICTED)
"""From the one that allows everything to the one that allows least."""
LATEST: Final = 10**6
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]{0,5})")


class Standard(NamedTuple):
    """A level in a version of Kubernetes: its minor number, or LATEST."""

    level: str = PRIVILEGED
    minor: int = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"


class Policy(NamedTuple):
    """What a namespace wants of its pods."""

    enforce: Standard = Standard()
    audit: Standard = Standard()
    warn: Standard = Standard()

    @property
    def is_free(self) -> bool:
        """Whether everything is allowed."""
        return all(standard.level == PRIVILEGED for standard in self)


FREE: Final = Policy()
"""That of a namespace that says nothing."""


@remembered
def read(meta: ObjectMeta) -> tuple[Policy, tuple[FieldError, ...]]:
    """The policy of a namespace, and what is wrong with its labels.

    A level that nobody knows is enforced as `restricted`, and neither noted nor warned of.
    """
    labels = {key.removeprefix(PREFIX): value for key, value in meta.labels.items() if key.startswith(PREFIX)}
    if not labels:
        return FREE, ()
    errors: list[FieldError] = []
    enforce = _standard(labels, "enforce", RESTRICTED, errors)
    audit = _standard(labels, "audit", PRIVILEGED, errors)
    warn = _standard(labels, "warn", PRIVILEGED, errors)
    if "warn" not in labels and labels.get("enforce", PRIVILEGED) in LEVELS[1:]:
        # Whoever enforces a level hears about workloads whose pods would be refused.
        warn = Standard(enforce.level, warn.minor if "warn-version" in labels else enforce.minor)
    return Policy(enforce, audit, warn), tuple(errors)


def _standard(labels: dict[str, str], mode: str, otherwise: str, errors: list[FieldError]) -> Standard:
    level = labels.get(mode, PRIVILEGED)
    if level not in LEVELS:
        where = f"metadata.labels[{PREFIX}{mode}]"
        errors.append(invalid(where, level, f"must be one of {', '.join(LEVELS)}"))
        level = otherwise
    version = labels.get(f"{mode}-version", "latest")
    found = _VERSION.fullmatch(version)
    if found is None and version != "latest":
        where = f"metadata.labels[{PREFIX}{mode}-version]"
        errors.append(invalid(where, version, 'must be "latest" or "v1.x"'))
    return Standard(level, LATEST if found is None else int(found[1]))


def is_stricter(new: Standard, old: Standard) -> bool:
    """Whether pods that were allowed may not be any more."""
    if new == old or new.level == PRIVILEGED:
        return False
    return new.minor != old.minor or LEVELS.index(new.level) > LEVELS.index(old.level)

"""A pod as the checks see it, and the words that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from dray.api.generated.core import Container, EphemeralContainer, PodSecurityContext, PodSpec, SecurityContext
from dray.api.pods import containers_of

AnyContainer = Container | EphemeralContainer
_NOTHING = SecurityContext()
_NOTHING_OF_POD = PodSecurityContext()


class Violation(NamedTuple):
    """What is not allowed, in short, and who does it."""

    reason: str
    detail: str


class Subject(NamedTuple):
    """The spec of a pod, or of a template, and the annotations that checks look at."""

    spec: PodSpec
    annotations: tuple[tuple[str, str], ...]

    @property
    def shared(self) -> PodSecurityContext:
        """What is set for all containers."""
        return self.spec.security_context or _NOTHING_OF_POD

    def containers(self) -> Iterator[tuple[AnyContainer, SecurityContext]]:
        """All containers with what is set for each alone."""
        for container in containers_of(self.spec):
            yield container, container.security_context or _NOTHING
        for ephemeral in self.spec.ephemeral_containers:
            yield ephemeral, ephemeral.security_context or _NOTHING

    def where(self, is_bad: Callable[[AnyContainer, SecurityContext], bool]) -> list[str]:
        """The names of the containers of which something holds."""
        return [container.name for container, own in self.containers() if is_bad(container, own)]

    @property
    def is_windows(self) -> bool:
        """Whether it says that it is for Windows."""
        return self.spec.os is not None and self.spec.os.name == "windows"

    @property
    def has_own_users(self) -> bool:
        """Whether its users are not those of the host."""
        return self.spec.host_users is False


Check = Callable[[Subject, int], Violation | None]
"""Looks at a pod, in a version of the standards."""


def quoted(words: Iterable[str]) -> str:
    """`"a", "b"`."""
    return ", ".join(f'"{word}"' for word in words)


def number(words: Iterable[str], one: str, many: str) -> str:
    """The form that goes with so many."""
    return one if len(list(words)) == 1 else many


def named(names: list[str]) -> str:
    """`container "a"`, `containers "a", "b"`."""
    return f"{number(names, 'container', 'containers')} {quoted(names)}"


def setters(by_pod: bool, names: list[str]) -> str:
    """Who sets something: `pod and containers "a", "b"`; empty if nobody does."""
    return " and ".join((["pod"] if by_pod else []) + ([named(names)] if names else []))

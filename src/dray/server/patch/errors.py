"""How a patch fails, and with which HTTP code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple


class PatchError(Exception):
    """A patch that cannot be carried out.

    `code` is 400 for a patch that is none, 409 for one that others stand against, 413 for one that is too large, 422
    for one that does not fit the document, and 500 where an apply of kube-apiserver, too, blames itself.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class FailedTest(PatchError):
    """A `test` of a JSON patch that found another value."""

    def __init__(self, message: str) -> None:
        super().__init__(422, message)


@contextmanager
def bounded_depth() -> Iterator[None]:
    """Work on documents that somebody may have nested deeper than we can follow."""
    try:
        yield
    except RecursionError:
        raise PatchError(400, "JSON is nested too deeply") from None


class Conflict(NamedTuple):
    """A field that somebody else set to another value."""

    manager: str
    """Who, in quotes and with what tells the manager's entries apart, such as `"m1" using v1`."""
    field: str
    """Which one, such as `.spec.containers[name="a"].image`."""

    @property
    def message(self) -> str:
        """The text of the cause; the field is told apart from it."""
        return f"conflict with {self.manager}"


class ConflictsError(PatchError):
    """An apply without force that would overwrite what others set."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        super().__init__(409, _summary(conflicts))
        self.conflicts = tuple(conflicts)


def _summary(conflicts: Sequence[Conflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: {conflicts[0].message}: {conflicts[0].field}"
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(_lines(conflicts))


def _lines(conflicts: Sequence[Conflict]) -> Iterator[str]:
    """A line for each manager, then one for each of its fields."""
    by_manager: dict[str, list[str]] = {}
    for conflict in conflicts:
        by_manager.setdefault(conflict.manager, []).append(conflict.field)
    for manager, found in by_manager.items():
        yield f"conflicts with {manager}:"
        yield from (f"- {field}" for field in found)

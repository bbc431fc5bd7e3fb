"""Whom a client certificate names. Everybody who is shown one reads it here, so that nobody is two users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def holder(subject: Iterable[Iterable[tuple[str, Any]]] | None) -> tuple[str, tuple[str, ...]]:
    """Common name → user, organisations → groups, of a subject as `ssl` tells it.

    The user is empty if there is no common name, or more than one: who signed it may have meant either.
    """
    parts = [pair for part in subject or () for pair in part]
    users = [value for name, value in parts if name == "commonName"]
    groups = tuple(value for name, value in parts if name == "organizationName")
    return (users[0] if len(users) == 1 else ""), groups

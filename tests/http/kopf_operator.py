"""An operator that somebody could have written for any cluster: it says hello to every greeting."""

from __future__ import annotations

from typing import Any

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Progress goes into annotations, as kopf does it by default; nothing is posted as an event."""
    settings.posting.enabled = False


@kopf.on.create("example.org", "v1", "greetings")
@kopf.on.update("example.org", "v1", "greetings")
def greet(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
    """Answers in the status."""
    patch.status["said"] = f"hello, {spec['whom']}"


@kopf.on.delete("example.org", "v1", "greetings")
def part(**_: Any) -> None:
    """That there is such a handler makes kopf hold objects by a finalizer."""

"""What the agent asks of a runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from dray.api.generated.core import Container, Pod

if TYPE_CHECKING:
    from dray.node.runtime.console import Console

CONFIG_ERROR: Final = "CreateContainerConfigError"


class StartFailed(Exception):
    """A container cannot be started. `reason` is what its status shows, such as CreateContainerError."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Order(msgspec.Struct, frozen=True):
    """One container to start: the `attempt`th of its name, with all references in its environment resolved."""

    pod: Pod
    container: Container
    attempt: int
    environment: dict[str, str]
    cdi_ids: tuple[str, ...] = ()


class Exit(msgspec.Struct, frozen=True):
    """How a container ended; `code` is None if nobody knows, as after a power cut."""

    code: int | None
    at: float


class Running:
    """A container that was started. `warnings` name what could not be applied of what was asked for."""

    def __init__(self, identity: str, attempt: int, started_at: float, warnings: tuple[str, ...] = ()) -> None:
        self.identity = identity
        self.attempt = attempt
        self.started_at = started_at
        self.warnings = warnings
        self.exit: Exit | None = None


OnExit = Callable[[], None]


class Runtime(Protocol):
    """Runs containers. Everything is called on one event loop."""

    name: str
    console: Console | None
    """How people get at containers; None if there are none."""

    def refusal(self, pod: Pod, /) -> str:
        """Why a pod must not run here although its claims are fine; empty if it may."""
        ...

    async def start(self, order: Order, on_exit: OnExit) -> Running:
        """Starts a container; `on_exit` is called once `exit` is set. Raises StartFailed."""
        ...

    def terminate(self, container: Running) -> None:
        """Asks a container to end."""
        ...

    def kill(self, container: Running) -> None:
        """Ends a container at once."""
        ...

    def recover(self, pod: Pod, on_exit: OnExit, /) -> dict[str, Running]:
        """The last containers of a pod by name, from before the agent was restarted; they may have ended meanwhile.

        Raises OSError if nobody can tell now: to be asked again, for what runs must not be started once more.
        """
        ...

    def known_pods(self) -> set[str]:
        """The uids of pods of which something is left."""
        ...

    def recover_stray(self, uid: str, on_exit: OnExit, /) -> list[Running]:
        """The containers that are left of a pod which is not in the API any more. Raises OSError, as `recover`."""
        ...

    def clean(self, uid: str) -> None:
        """The pod is gone: nothing of it is needed any more."""
        ...

    async def close(self) -> None:
        """The agent ends; containers go on."""
        ...

"""CDI hooks: programs that run at points of a container's life, with its state on standard input, as OCI has it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterable
from typing import Final

import msgspec

from dray.cdi import Hook
from dray.node.runtime.interface import StartFailed

BEFORE: Final = ("prestart", "createRuntime", "createContainer", "startContainer")
AFTER: Final = ("poststart",)
END: Final = ("poststop",)
SECONDS: Final = 30.0
SHOWN: Final = 300


class ContainerInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The state that a hook reads."""

    id: str
    status: str
    bundle: str
    pid: int = 0
    oci_version: str = "1.0.2"


async def run_hooks(hooks: Iterable[Hook], names: tuple[str, ...], info: ContainerInfo) -> None:
    """Runs the hooks of some points of time, one after the other. Raises StartFailed at the first that fails."""
    state = msgspec.json.encode(info)
    for hook in hooks:
        if hook.hook_name in names:
            await asyncio.to_thread(_run, hook, state)


def _run(hook: Hook, state: bytes) -> None:
    name = f"{hook.hook_name} hook {hook.path}"
    environment = dict(entry.partition("=")[::2] for entry in hook.env)
    try:
        done = subprocess.run(
            list(hook.args) or [hook.path],
            executable=hook.path,
            env=environment,
            input=state,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=hook.timeout or SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StartFailed("CreateContainerError", f"{name} did not end in {error.timeout:g} s") from None
    except OSError as error:
        raise StartFailed("CreateContainerError", f"{name}: {error.strerror}") from None
    if done.returncode:
        said = done.stdout[-SHOWN:].decode(errors="replace").strip()
        raise StartFailed("CreateContainerError", f"{name} ended with {done.returncode}: {said}")

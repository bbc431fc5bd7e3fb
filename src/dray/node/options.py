"""How the command line tells the agent what to do: `dray node` becomes `python -m dray.node OPTIONS`."""

from __future__ import annotations

from typing import Final

import msgspec

MOST_PROCESSES: Final = 4096


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says. Paths are absolute; `runtime` is `process` or `none`."""

    name: str
    root: str
    cdi: tuple[str, ...]
    runtime: str
    kubeconfig: str | None
    context: str
    address: str
    metrics_bind: str
    metrics_port: int | None
    wipe_delay: float
    handle_claims: bool
    port: int | None = None
    """Where logs and commands are served: -1 for nowhere, 0 for a free port, None for a kubelet's or a free one."""
    client_authority: str = ""
    serving_certificate: str = ""
    serving_key: str = ""
    """Paths of files; empty for the authority of the kubeconfig, and a certificate of the agent's own."""
    container_user: tuple[int, int] | None = None
    """User and group of containers that do not say; None for the agent's own."""
    container_ids: tuple[int, int] | None = None
    """The first and the last of the users and groups that pods may ask for; None for all."""
    pod_network: str = "host"
    most_processes: int = MOST_PROCESSES
    """How many processes and threads a container can have."""
    cdi_vendors: dict[str, tuple[str, ...]] = {}
    """By driver, vendors of CDI devices that are not named after it."""

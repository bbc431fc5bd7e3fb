"""How the command line tells the agent what to do: `dray node` becomes `python -m dray.node OPTIONS`."""

from __future__ import annotations

import msgspec


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

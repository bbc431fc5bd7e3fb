"""`dray server`: the API server alone, on a state directory."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dray.cli import output

if TYPE_CHECKING:
    from dray.server.instance import Settings

DEFAULT_DIRECTORY = Path("~/.local/share/dray/default")


def run(
    directory: Annotated[Path, typer.Option("--dir", help="State directory; made if absent.")] = DEFAULT_DIRECTORY,
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 6443,
    bind: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help='Static tokens, one `token,user,uid,"group1,group2"` per line.')
    ] = None,
    feature_gates: Annotated[
        str, typer.Option("--feature-gates", help="Gates to turn off: Name=false,...; all are on by default.")
    ] = "",
    runtime_config: Annotated[
        str, typer.Option("--runtime-config", help="API versions to turn off: group/version=false,...")
    ] = "",
    insecure_http: Annotated[
        bool, typer.Option("--insecure-http", help="Plain HTTP instead of TLS; only on a loopback address.")
    ] = False,
) -> None:
    """Run the API server. kubectl works with the kubeconfig that it writes."""
    settings = _settings(
        directory.expanduser(), bind, port, token_file, feature_gates, runtime_config, tls=not insecure_http
    )
    import uvloop

    uvloop.run(_serve(settings))


def _settings(
    directory: Path,
    bind: str,
    port: int,
    token_file: Path | None,
    feature_gates: str,
    runtime_config: str,
    *,
    tls: bool,
) -> Settings:
    from dray.server.instance import Settings, disabled_versions
    from dray.server.security.token_file import TokenFileError, read_token_file

    if not tls and not bind.startswith(("127.", "localhost", "::1")):
        output.fail(
            f"--insecure-http: plain HTTP is served on loopback only, not on {bind}. Use TLS, or --bind 127.0.0.1."
        )
    try:
        tokens = read_token_file(token_file) if token_file else {}
        off = disabled_versions(part for part in runtime_config.split(",") if part)
    except (TokenFileError, ValueError) as error:
        output.fail(str(error))
    return Settings(
        directory=directory,
        bind=bind,
        port=port,
        tls=tls,
        tokens=tokens,
        disabled_gates=_disabled_gates(feature_gates),
        disabled_versions=off,
    )


def _disabled_gates(text: str) -> frozenset[str]:
    off = set()
    for setting in (part.strip() for part in text.split(",") if part.strip()):
        name, _, value = setting.partition("=")
        if value.lower() not in ("true", "false"):
            output.fail(f"--feature-gates: give {name}=true or {name}=false, not {setting!r}.")
        if value.lower() == "false":
            off.add(name)
    return frozenset(off)


async def _serve(settings: Settings) -> None:
    from dray.server.instance import Instance
    from dray.server.security.state_directory import StateDirectoryError
    from dray.store import StoreError

    try:
        instance = Instance(settings)
    except (StateDirectoryError, StoreError) as error:
        output.fail(str(error))
    try:
        await instance.start()
    except OSError as error:
        await instance.stop()
        output.fail(f"cannot listen on {settings.bind}:{settings.port}: {error.strerror}. Give --port, or --port 0.")
    print(f"API server {instance.url}  kubeconfig {instance.kubeconfig}", flush=True)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    await instance.stop()

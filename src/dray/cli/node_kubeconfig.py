"""`dray node-kubeconfig`: a credential for a node agent, from the state directory of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dray.cli import output, server_options
from dray.files import home


def run(
    name: Annotated[str, typer.Argument(help="The node's name.")],
    directory: Annotated[Path, server_options.directory_option("State directory of a server that was started.")],
    server: Annotated[str, typer.Option("--server", help="URL of the server; by default that of the admin.")] = "",
) -> None:
    """Print a kubeconfig for a node agent: it may do what a node may, and nothing of other nodes.

    Runs beside the server or without it: the certificate is signed with the authority in --dir.
    """
    print(_kubeconfig(name, home.expand(directory), server), end="")


def _kubeconfig(name: str, directory: Path, server: str) -> str:
    import datetime as dt

    from dray.api import names
    from dray.client.kubeconfig import KubeconfigError, load_kubeconfig
    from dray.server.security.certificates import Authority, CertificateError, KeyPair
    from dray.server.security.identity import NODE_PREFIX, NODES
    from dray.server.security.kubeconfig import client_kubeconfig

    problems = names.validate_dns1123_subdomain(name)
    if problems:
        output.fail(f"{name!r} cannot be a node's name: {problems[0]}")
    pki = directory / "pki"
    user = f"{NODE_PREFIX}{name}"
    try:
        authority = Authority(KeyPair((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes()))
        url = server or load_kubeconfig([directory / "kubeconfig"]).server
        return client_kubeconfig(authority, url, user, (NODES,), dt.datetime.now(dt.UTC)).decode()
    except OSError as error:
        output.fail(
            f"cannot read {error.filename}: {(error.strerror or '').lower()}. Give --dir of a server that was started."
        )
    except (CertificateError, KubeconfigError) as error:
        output.fail(f"{directory}: {error}")

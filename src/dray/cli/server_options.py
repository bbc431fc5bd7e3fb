"""The options that commands which run a server, or a part of one, have in common."""

from pathlib import Path
from typing import Annotated

import typer

from dray.cli import output

DEFAULT_DIRECTORY = Path("~/.local/share/dray/default")

Directory = Annotated[Path, typer.Option("--dir", help="State directory; made if absent.")]
Port = Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)]
Bind = Annotated[str, typer.Option(help="Address to listen on.")]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help='Static tokens, one `token,user,uid,"group1,group2"` per line.')
]
FeatureGates = Annotated[
    str, typer.Option("--feature-gates", help="Gates to turn off: Name=false,...; all are on by default.")
]
RuntimeConfig = Annotated[
    str, typer.Option("--runtime-config", help="API versions to turn off: group/version=false,...")
]
LogFormat = Annotated[
    output.Format, typer.Option("--log-format", help="Logs on standard error as text or as JSON lines.")
]
Verbosity = Annotated[int, typer.Option("--verbosity", "-v", help="1 logs every request.", min=0)]

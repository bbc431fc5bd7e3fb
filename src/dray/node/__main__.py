"""The agent as a process of its own: `python -m dray.node OPTIONS`, with `Options` as JSON. `dray node` makes them.

The agent runs for months on every machine, so it does without the command line's libraries, which are a sixth of its
memory, and sees to it that those that it needs take no more than they must.
"""

from __future__ import annotations

import gc
import importlib
import ssl
import sys

import msgspec

from dray.api.visible import visible
from dray.node.options import Options

CANNOT = 2


def main() -> None:
    """Runs the agent until it is told to stop. Ends with exit code 2 if it cannot go on."""
    options = msgspec.json.decode(sys.argv[1], type=Options)
    _load_http_library()
    from dray.node import program

    gc.freeze()  # modules stay: nobody is to wait while they are looked through for garbage
    problem = program.run(options)
    if problem:
        print(f"dray: {visible(problem)}", file=sys.stderr)
        raise SystemExit(CANNOT)


def _load_http_library() -> None:
    """Loads aiohttp, which makes a TLS context with all authorities of the system meanwhile, for whoever brings none.

    That is 2 MiB that the agent never uses: its connections have a context of their own. The one that aiohttp keeps
    instead trusts nobody.
    """
    make = ssl.create_default_context
    ssl.create_default_context = lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # type: ignore[assignment, misc]  # for a moment
    try:
        importlib.import_module("aiohttp")
    finally:
        ssl.create_default_context = make


if __name__ == "__main__":
    main()

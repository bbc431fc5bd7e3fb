"""The files of the page, as they are in the package: read once, served with a tag of what is in them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

from dray.dashboard.answers import HEADERS
from dray.process.http import Request, Response

FOLDER: Final = Path(__file__).parent / "static"
TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


class File(NamedTuple):
    """A file."""

    data: bytes
    type: str
    tag: str


def load() -> dict[str, File]:
    """All files by name; the page itself by an empty one."""
    found = {}
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in TYPES:
            data = path.read_bytes()
            found[path.name] = File(data, TYPES[path.suffix], f'"{hashlib.sha256(data).hexdigest()[:20]}"')
    found[""] = found["index.html"]
    return found


def serve(file: File, request: Request) -> Response:
    """A file, or that it has not changed."""
    headers = (*HEADERS, ("ETag", file.tag), ("Cache-Control", "no-cache"))
    if request.header("if-none-match") == file.tag:
        return Response(304, b"", file.type, headers)
    return Response(200, file.data, file.type, headers)

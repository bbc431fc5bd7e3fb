"""Large answers in gzip, for clients that accept it: what kube-apiserver compresses, and as fast as it does."""

from __future__ import annotations

import gzip

from dray.api.text_memory import remember_texts
from dray.process.http import Response
from dray.server.beside import Beside

LARGE_ANSWER = 128 * 1024
"""Bytes from which on an answer is compressed: below, sending it takes less time than compressing it."""
FASTEST = 1
HEADERS = (("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))


@remember_texts(256)
def is_accepted(header: str) -> bool:
    """Whether a client takes gzip, by its Accept-Encoding."""
    for part in header.split(","):
        coding, _, weight = part.replace(" ", "").lower().partition(";q=")
        if coding in ("gzip", "*"):
            return weight not in ("0", "0.0", "0.00", "0.000")
    return False


async def compressed(answer: Response, accept_encoding: str, workers: Beside, caller: str) -> Response:
    """A large answer, compressed beside the loop; a small one and what is compressed stay as they are."""
    if len(answer.body) <= LARGE_ANSWER or not is_accepted(accept_encoding):
        return answer
    if any(name.lower() == "content-encoding" for name, _ in answer.headers):
        return answer
    body = await workers.run(caller, gzip.compress, answer.body, FASTEST, mtime=0)
    return Response(answer.code, body, answer.content_type, (*answer.headers, *HEADERS))

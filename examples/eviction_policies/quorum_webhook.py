"""Story 3: an external system that decides who may leave, so that no replicated application loses its quorum.

It speaks the webhook protocol of docs/eviction.md and needs nothing but the standard library:

    python quorum_webhook.py --cert cert.pem --key key.pem --port 9443
"""

from __future__ import annotations

import argparse
import json
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOOK_AGAIN = 5


def decide(request: dict[str, Any]) -> dict[str, Any]:
    """A pod may leave if more than half of its siblings are ready without it."""
    siblings = request["state"]["siblings"]
    if siblings is None:
        return {"decision": "now", "reason": "it stands alone"}
    others = siblings["ready"] - siblings["evicting"] - 1
    if 2 * others > siblings["wanted"]:
        return {"decision": "now", "reason": f"{others} of {siblings['wanted']} replicas stay"}
    reason = f"only {others} of {siblings['wanted']} replicas would be left"
    return {"decision": "wait", "waitSeconds": LOOK_AGAIN, "reason": reason}


class Handler(BaseHTTPRequestHandler):
    """Answers questions."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """One question."""
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": decide(review["request"])}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


def serve(cert: str, key: str, port: int) -> ThreadingHTTPServer:
    """A server that listens on loopback; call `serve_forever`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server


def main() -> None:
    """Serves until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--port", type=int, default=9443)
    given = parser.parse_args()
    serve(given.cert, given.key, given.port).serve_forever()


if __name__ == "__main__":
    main()

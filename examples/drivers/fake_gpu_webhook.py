"""The admission webhook of the fake GPU driver: parameters that it could not use are refused when they are written.

    python examples/drivers/fake_gpu_webhook.py --cert tls.crt --key tls.key --port 8443

It is optional: without it, the driver refuses the same parameters when a pod is about to start. It answers
AdmissionReviews of `admission.k8s.io/v1` about ResourceClaims, ResourceClaimTemplates and DeviceClasses, as
`fake_gpu_webhook.yaml` asks an API server to send them.
"""

from __future__ import annotations

import argparse
import json
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fake_gpu import FakeGpu, problem_with

LONGEST = 3 * 1024 * 1024


def problems(obj: dict[str, Any]) -> Iterator[str]:
    """What the driver could not use, with the field; works on every version of the kinds."""
    spec, path = obj.get("spec") or {}, "spec"
    if obj["kind"] == "ResourceClaimTemplate":
        spec, path = spec.get("spec") or {}, "spec.spec"
    from_class = obj["kind"] == "DeviceClass"
    if not from_class:
        spec, path = spec.get("devices") or {}, f"{path}.devices"
    for index, config in enumerate(spec.get("config") or ()):
        opaque = config.get("opaque") or {}
        if opaque.get("driver") == FakeGpu.name:
            problem = problem_with(opaque.get("parameters"), from_class=from_class)
            if problem:
                yield f"{path}.config[{index}].opaque.parameters: {problem}"


def review(question: dict[str, Any]) -> dict[str, Any]:
    """The answer to an AdmissionReview."""
    request = question["request"]
    found = "; ".join(problems(request["object"]))
    response: dict[str, Any] = {"uid": request["uid"], "allowed": not found}
    if found:
        response["status"] = {"code": 422, "reason": "Invalid", "message": found}
    return {"apiVersion": question["apiVersion"], "kind": question["kind"], "response": response}


class Handler(BaseHTTPRequestHandler):
    """Answers questions."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """One question; what is none gets 400."""
        try:
            length = int(self.headers.get("Content-Length", ""))
            if not 0 < length <= LONGEST:
                raise ValueError("no body, or too large a body")
            code, answer = 200, review(json.loads(self.rfile.read(length)))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self.close_connection = True
            code, answer = 400, {"error": f"this is no AdmissionReview: {error!r}"}
        body = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


def serve(cert: str, key: str, port: int, address: str = "127.0.0.1") -> ThreadingHTTPServer:
    """A server that listens; call `serve_forever`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server = ThreadingHTTPServer((address, port), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server


def main() -> None:
    """Serves until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--port", type=int, default=8443)
    parser.add_argument("--address", default="0.0.0.0", help="where to listen; by default everywhere")
    given = parser.parse_args()
    serve(given.cert, given.key, given.port, given.address).serve_forever()


if __name__ == "__main__":
    main()

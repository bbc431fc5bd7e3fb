"""Webhooks behind real TLS, each with its own way to answer, by the path of the URL."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from webhook_certificates import write_certificate


class WebhookServer:
    """Where webhooks listen, and what they were asked: `(path, review)` each."""

    def __init__(self, port: int, bundle: str) -> None:
        self.port = port
        self.bundle = bundle
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.patches: dict[str, Any] = {}
        """By path: what the webhook wants changed, or a function of the object."""
        self.patch_type = "JSONPatch"
        self.converters: dict[str, Callable[[dict[str, Any], str], dict[str, Any]]] = {}
        """By path: what becomes of a custom object in another version."""

    def client(self, path: str) -> dict[str, Any]:
        """A `clientConfig` that leads to a path."""
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.bundle}

    def requests(self, path: str) -> list[dict[str, Any]]:
        """What was asked at a path."""
        return [review["request"] for asked, review in self.asked if asked == path]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one connection, once or until it ends."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                path = head.split(" ")[1].partition("?")[0]
                length = next(
                    int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-l")
                )
                review = json.loads(await reader.readexactly(length))
                self.asked.append((path, review))
                await self._send(path, review, writer)
        writer.close()

    async def _send(self, path: str, review: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if path in self.converters:
            asked = review["request"]
            made = [self.converters[path](one, asked["desiredAPIVersion"]) for one in asked["objects"]]
            said = {"uid": asked["uid"], "convertedObjects": made, "result": {"status": "Success"}}
            return await _write(writer, json.dumps({**review, "response": said}).encode())
        response: dict[str, Any] = {"uid": review["request"]["uid"], "allowed": not path.startswith("/deny")}
        answer = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
        match path:
            case "/hang":
                await asyncio.sleep(3600)
            case "/close":
                raise ConnectionError
            case "/redirect":
                return await _write(writer, b"", "307 Temporary Redirect", "Location: /allow\r\n")
            case "/500":
                return await _write(writer, b"oh", "500 Internal Server Error")
            case "/garbage":
                return await _write(writer, b"<html>")
            case "/huge":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
                for _ in range(100):
                    writer.write(b" " * 1_000_000)
                    await writer.drain()
                return None
            case "/wrong-uid":
                response["uid"] = "other"
            case "/no-response":
                del answer["response"]
            case "/not-a-review":
                answer["kind"] = "Review"
            case "/no-patch-type":
                response["patch"] = "W10="
            case "/bad-patch":
                response |= {"patchType": "JSONPatch", "patch": "e30="}
            case "/deny-with-reason":
                response["status"] = {"code": 402, "reason": "PaymentRequired", "message": "pay first"}
            case "/deny-with-nonsense":
                response["status"] = {"code": 99999, "reason": "r" * 100_000, "message": "m" * 3_000_000}
            case "/tell":
                response |= {"warnings": ["watch out"], "auditAnnotations": {"seen": "yes"}}
        if path in self.patches:
            wanted = self.patches[path]
            wanted = wanted(review["request"]["object"]) if callable(wanted) else wanted
            if wanted or self.patch_type != "JSONPatch":
                patch = base64.b64encode(json.dumps(wanted).encode()).decode()
                response |= {"patchType": self.patch_type, "patch": patch}
        data = json.dumps(answer).encode()
        if path == "/crumbs":
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(100):
                writer.write(b"1\r\n \r\n" * 1_000)
                await writer.drain()
            return None
        if path == "/pieces":
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for byte in data:
                writer.write(b"1\r\n%c\r\n" % byte)
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            return None
        return await _write(writer, data)


async def _write(writer: asyncio.StreamWriter, body: bytes, status: str = "200 OK", more: str = "") -> None:
    writer.write(f"HTTP/1.1 {status}\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()


@contextlib.asynccontextmanager
async def webhook_server() -> AsyncIterator[WebhookServer]:
    """Webhooks that listen until the end of the block."""
    with tempfile.TemporaryDirectory() as directory:
        certificate, key = write_certificate(Path(directory))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        bundle = base64.b64encode(certificate.read_bytes()).decode()
    found = WebhookServer(0, bundle)
    connections: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(found.answer(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

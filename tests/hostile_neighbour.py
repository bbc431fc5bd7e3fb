"""Mallory, as a program of her own: she attacks a server in a way that she is told, until she is told to stop.

    python tests/hostile_neighbour.py URL STATE-DIRECTORY     reads the name of an attack, says `begun`;
                                                              reads `stop`, hangs up, says what she was answered

Most attacks are a request that takes long, again and again on some connections; the others (`ON_THE_WIRE`) are no
proper requests.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from live_server import LiveServer
from patience import PATIENCE

MALLORY = "token-of-mallory-0123456789"
MAPS = "/api/v1/namespaces/mallory/configmaps"
PODS = "/api/v1/namespaces/mallory/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/mallory/resourceclaims"
JSON, YAML, APPLY = "application/json", "application/yaml", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MEGABYTE = 1024 * 1024
PAUSE = 0.002
"""Seconds between two pieces of a flood: she has to leave the machine to the server, too."""


OnTheWire = Callable[[socket.socket, threading.Event], None]


class Attack(NamedTuple):
    """The same request again and again, on so many connections at once."""

    method: str
    path: str
    body: Callable[[], Any] = lambda: None
    content_type: str = JSON
    accept: str = JSON
    connections: int = 3


def owners(count: int) -> list[dict[str, str]]:
    return [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"o-{n}", "uid": f"uid-{n}"} for n in range(count)]


def _manyowners() -> Any:
    return {"metadata": {"generateName": "x-", "ownerReferences": owners(30_000)}}


def _many_claims() -> Any:
    claims = [{"name": f"claim-{number}"} for number in range(27_000)]
    return {
        "metadata": {"generateName": "x-"},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"claims": claims}}]},
    }


def _many_containers() -> Any:
    containers = [{"name": f"c-{number}", "image": "x"} for number in range(15_000)]
    return {"metadata": {"generateName": "x-"}, "spec": {"containers": containers}}


def _containers_of_nothing(count: int = 700_000) -> Any:
    return {"metadata": {"generateName": "x-"}, "spec": {"containers": [{}] * count}}


def _yaml(name: str = "generateName: x-", megabytes: float = 2.9) -> bytes:
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{{name}}}\ndata:\n".encode()
    count = int((megabytes * MEGABYTE - len(head)) / len(b"  key-123456: v\n"))
    return head + b"".join(b"  key-%06d: v\n" % number for number in range(count))


def _nested_selectors() -> Any:
    nested = "[1,2,3,4,5,6,7,8].all(a, [1,2,3,4,5,6,7,8].all(b, [1,2,3,4,5,6,7,8].all(c, a*b*c > 0)))"
    expressions = [" && ".join([nested] * 90)[:9900].rpartition(" && ")[0] + f" && {n} > 0" for n in range(1, 13)]
    exactly = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": text}} for text in expressions]}
    return {"metadata": {"generateName": "x-"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}


def _copies() -> Any:
    annotated = {"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}
    copies = [{"op": "copy", "from": "/metadata", "path": f"/metadata/annotations/k{n}"} for n in range(60)]
    return [annotated, *copies]


def _review() -> Any:
    asked = {"verb": "get", "resource": "pods", "namespace": "mallory", "name": "x" * int(2.8 * MEGABYTE)}
    return {"spec": {"resourceAttributes": asked}}


_SELECTOR = f"labelSelector=a+in+({','.join(f'v{number}' for number in range(8_000))})"

ATTACKS = {
    "claims-of-a-container": Attack("POST", PODS, _many_claims),
    "containers": Attack("POST", f"{PODS}?dryRun=All", _many_containers),
    "containers-of-nothing": Attack("POST", f"{PODS}?dryRun=All", _containers_of_nothing),
    "few-bytes-many-errors": Attack("POST", f"{PODS}?dryRun=All", lambda: _containers_of_nothing(2_900)),
    "owners": Attack("POST", f"{MAPS}?dryRun=All", _manyowners),
    "patch-of-owners": Attack(
        "PATCH", f"{MAPS}/large?dryRun=All", lambda: {"metadata": {"ownerReferences": owners(15_000)}},
        "application/merge-patch+json",
    ),
    "strategic-patch": Attack(
        "PATCH", f"{MAPS}/large?dryRun=All", lambda: {"metadata": {"ownerReferences": owners(15_000)}},
        "application/strategic-merge-patch+json",
    ),
    "json-patch": Attack(
        "PATCH", f"{MAPS}/large?dryRun=All", lambda: [{"op": "add", "path": "/data/a", "value": "d"}] * 9_000,
        "application/json-patch+json",
    ),
    "yaml": Attack("POST", f"{MAPS}?dryRun=All", _yaml, YAML),
    "apply": Attack(
        "PATCH", f"{MAPS}/applied?fieldManager=m&dryRun=All", lambda: _yaml("name: applied", 1), APPLY
    ),
    "copies-of-copies": Attack("PATCH", f"{MAPS}/small?dryRun=All", _copies, "application/json-patch+json"),
    "fields-of-a-selector": Attack("GET", f"{PODS}?fieldSelector={'a=b,' * 15_000}", connections=8),
    "nested-selectors": Attack("POST", f"{CLAIMS}?dryRun=All", _nested_selectors),
    "unknown-fields": Attack("POST", f"{MAPS}?dryRun=All", lambda: {f"key-{n}": n for n in range(150_000)}),
    "access-reviews": Attack("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", _review),
    "many-connections": Attack("GET", f"{MAPS}/small", connections=24),
    "many-writers": Attack("POST", f"{MAPS}?dryRun=All", lambda: {"metadata": {"generateName": "x-"}}, connections=24),
    "tables": Attack("GET", PODS, accept=TABLE, connections=8),
    "lists-in-yaml": Attack("GET", PODS, accept=YAML, connections=8),
    "long-selectors": Attack("GET", f"{PODS}?{_SELECTOR}", connections=8),
    "large-answers": Attack("GET", f"{MAPS}/large", connections=8),
}  # fmt: skip


def _endless_header(raw: socket.socket, stop: threading.Event) -> None:
    raw.sendall(b"GET /api HTTP/1.1\r\nHost: x\r\nX-Endless: ")
    while not stop.wait(PAUSE):
        raw.sendall(b"x" * 16_384)


def _many_headers(raw: socket.socket, stop: threading.Event) -> None:
    raw.sendall(b"GET /api HTTP/1.1\r\nHost: x\r\n")
    for number in itertools.count():
        if stop.wait(PAUSE):
            return
        raw.sendall(b"".join(b"X-%d-%d: y\r\n" % (number, each) for each in range(500)))


def _headers_without_letters(raw: socket.socket, stop: threading.Event) -> None:
    while not stop.wait(PAUSE):
        raw.sendall(b"GET /api HTTP/1.1\r\nHost: x\r\n" + b"a:\r\n" * 60_000 + b"\r\n")
        raw.recv(1 << 16)


def _parameters(raw: socket.socket, stop: threading.Event) -> None:
    while not stop.wait(PAUSE):
        raw.sendall((b"GET /api?" + b"%61=%62&" * 1_900 + b" HTTP/1.1\r\nHost: x\r\n\r\n") * 10)
        raw.recv(1 << 16)


def _cookies(raw: socket.socket, stop: threading.Event) -> None:
    cookie = b'__Secure-dray="' + b'\\"' * 31_000 + b'"'
    while not stop.wait(PAUSE):
        raw.sendall(b"GET /dashboard/api/session HTTP/1.1\r\nHost: x\r\nCookie: " + cookie + b"\r\n\r\n")
        raw.recv(1 << 16)


def _body_of_a_stranger(raw: socket.socket, stop: threading.Event) -> None:
    raw.sendall(b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n" % MAPS.encode())
    while not stop.wait(PAUSE):
        raw.sendall(b"x" * 65_536)


def _reads_nothing(raw: socket.socket, stop: threading.Event) -> None:
    head = b"GET %b/large HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\n\r\n" % (MAPS.encode(), MALLORY.encode())
    raw.sendall(head * 15)
    stop.wait(PATIENCE)


def _says_nothing(raw: socket.socket, stop: threading.Event) -> None:  # noqa: ARG001
    stop.wait(PATIENCE)


def _watches(raw: socket.socket, stop: threading.Event) -> None:
    """Everything from the beginning, again and again."""
    raw.sendall(
        b"GET %b?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\n\r\n" % (PODS.encode(), MALLORY.encode())
    )
    while not stop.is_set() and raw.recv(1 << 20):
        pass


def _pages_that_are_not(raw: socket.socket, stop: threading.Event) -> None:
    for number in itertools.count():
        if stop.is_set():
            return
        raw.sendall(b"GET /livez/%d%b HTTP/1.1\r\nHost: x\r\n\r\n" % (number, b"x" * 30_000))
        raw.recv(1 << 16)


ON_THE_WIRE: dict[str, tuple[OnTheWire, int]] = {
    "endless-header": (_endless_header, 4),
    "many-headers": (_many_headers, 4),
    "headers-without-letters": (_headers_without_letters, 4),
    "parameters": (_parameters, 4),
    "cookies": (_cookies, 4),
    "body-of-a-stranger": (_body_of_a_stranger, 4),
    "reads-nothing": (_reads_nothing, 8),
    "says-nothing": (_says_nothing, 60),
    "watches": (_watches, 40),
    "pages-that-are-not": (_pages_that_are_not, 8),
}


class Mallory:
    """Some connections that do one thing, each on a thread."""

    def __init__(self, server: LiveServer, name: str) -> None:
        self._server = server
        self._stop = threading.Event()
        self._sockets: list[socket.socket] = []
        self.begun = threading.Event()
        self.answers: collections.Counter[str] = collections.Counter()
        attack, connections = ON_THE_WIRE.get(name) or (_again_and_again(ATTACKS[name], self.answers), 0)
        count = connections or ATTACKS[name].connections
        self._threads = [threading.Thread(target=self._attack, args=(attack,), daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _attack(self, attack: OnTheWire) -> None:
        server = self._server
        while not self._stop.is_set():
            with contextlib.suppress(OSError):  # the server may end it, or she is told to stop
                plain = socket.create_connection((server.host, server.port), PATIENCE)
                with server.tls.wrap_socket(plain, server_hostname=server.host) as raw:
                    self._sockets.append(raw)
                    self.begun.set()
                    attack(raw, self._stop)

    def stop(self) -> None:
        """Hangs up."""
        self._stop.set()
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE)


def _again_and_again(attack: Attack, answers: collections.Counter[str]) -> OnTheWire:
    """The same request, each after the answer to the one before."""
    wanted = attack.body()
    body: bytes = b"" if wanted is None else wanted if isinstance(wanted, bytes) else json.dumps(wanted).encode()
    assert len(body) < 3 * MEGABYTE
    head = (
        f"{attack.method} {attack.path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {MALLORY}\r\n"
        f"Accept: {attack.accept}\r\nContent-Type: {attack.content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()

    def on_the_wire(raw: socket.socket, stop: threading.Event) -> None:
        with raw.makefile("rb") as file:
            while not stop.is_set():
                raw.sendall(head + body)
                status = file.readline().split()
                length = 0
                while line := file.readline().strip():
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.partition(b":")[2])
                file.read(length)
                if len(status) > 1:
                    answers[status[1].decode()] += 1

    return on_the_wire


def main(url: str, directory: str) -> None:
    """Does as she is told, line by line."""
    server = LiveServer(url, Path(directory))
    for line in sys.stdin:
        mallory = Mallory(server, line.strip())
        assert mallory.begun.wait(PATIENCE)
        print("begun", flush=True)
        sys.stdin.readline()
        mallory.stop()
        print(json.dumps(mallory.answers), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

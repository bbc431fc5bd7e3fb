"""A real API server on a free port with TLS, and the ways that tests talk to it: plain requests and stock kubectl."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Generator, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dray.api import wire
from dray.api.wire import MEDIA_TYPE
from dray.server.protobuf import read as protobuf
from dray_process import DrayProcess
from patience import PATIENCE, eventually

_numbers = itertools.count(1)


class Answer:
    """What a request came back with."""

    def __init__(self, code: int, headers: http.client.HTTPMessage, body: bytes) -> None:
        self.code = code
        self.headers = headers
        self.body = body

    @cached_property
    def json(self) -> Any:
        """The body as JSON has it, also if it is protobuf."""
        is_protobuf = self.headers.get("Content-Type", "").startswith(MEDIA_TYPE)
        return protobuf.decode(self.body) if is_protobuf else json.loads(self.body)

    @property
    def causes(self) -> set[tuple[str, str]]:
        """Reason and field of every cause of a failure."""
        return {(cause["reason"], cause["field"]) for cause in self.json["details"]["causes"]}


class LiveServer:
    """Where a server listens, and how its admin gets in."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url = url
        self.directory = directory
        self.kubeconfig = directory / "kubeconfig"
        self.token = (directory / "admin-token").read_text().strip()
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self.host, self.port = parts.hostname, parts.port
        self._kept: http.client.HTTPSConnection | None = None

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """Trusts the server's own authority, and nobody else."""
        return ssl.create_default_context(cafile=str(self.directory / "pki" / "ca.crt"))

    def connect(self, timeout: float = PATIENCE) -> http.client.HTTPSConnection:
        """A connection of one's own."""
        return http.client.HTTPSConnection(self.host, self.port, context=self.tls, timeout=timeout)

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **headers: str
    ) -> Answer:
        """One request by the admin. A body that is no bytes is sent as JSON; headers have `_` for `-`."""
        sent = {"Authorization": f"Bearer {self.token}"} | {key.replace("_", "-"): it for key, it in headers.items()}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            sent["Content-Type"] = content_type
        for attempt in (1, 2):
            if self._kept is None:
                self._kept = self.connect()
            try:
                self._kept.request(method, path, data, sent)
                response = self._kept.getresponse()
                return Answer(response.status, response.headers, response.read())
            except (http.client.HTTPException, ConnectionError, ssl.SSLEOFError):
                self.close()  # the server ends idle connections when it likes to
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")

    def watch(self, path: str, **headers: str) -> Generator[dict[str, Any], None, None]:
        """The events of a watch, until it ends; close the iterator to end it."""
        connection = self.connect()
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}", **headers})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            if response.headers["Content-Type"].startswith(MEDIA_TYPE):
                yield from _framed(response)
            for line in response:
                yield json.loads(line)
        finally:
            connection.close()

    def new_namespace(self) -> str:
        """Makes a namespace that nobody else uses."""
        name = f"test-{os.getpid()}-{next(_numbers)}"
        made = self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        assert made.code == 201, made.body
        return name

    def close(self) -> None:
        """Ends the connection that `request` keeps."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None


def _framed(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The events of a watch in protobuf, each after its length."""
    while size := response.read(4):
        event = response.read(int.from_bytes(size, "big"))
        kind, raw = (bytes(value) for _, _, value in wire.fields(memoryview(event)) if not isinstance(value, int))
        (body,) = (bytes(value) for _, _, value in wire.fields(memoryview(raw)) if not isinstance(value, int))
        yield {"type": kind.decode(), "object": protobuf.decode(body)}


@contextlib.contextmanager
def running_server(directory: Path, *options: str, program: str = "server") -> Iterator[LiveServer]:
    """`dray server`, or `dray up`, as a process of its own on a free port, stopped at the end.

    What it says goes into a file: nobody reads on, and a process whose pipe is full stands still.
    """
    words = (program, "--dir", str(directory), "--port", "0", *options)
    log = directory.with_name(f"{directory.name}.log")
    with log.open("w") as sink, DrayProcess(*words, stdout=sink, stderr=subprocess.STDOUT) as process:
        try:
            server = LiveServer(_announced(process, log), directory)
            yield server
            server.close()
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


def _announced(process: DrayProcess, log: Path) -> str:
    """The address that the server prints once it listens."""

    def look() -> re.Match[str] | None:
        ended = process.poll() is not None
        found = re.search(r"https://\S+(?=\s)", log.read_text())
        assert found is not None or not ended, f"the server did not start: {log.read_text()}"
        return found

    return eventually(look, "the server to listen")[0]


class Kubectl:
    """Stock kubectl, of whatever version there is, with a home of its own."""

    def __init__(self, server: LiveServer, home: Path) -> None:
        path = shutil.which("kubectl")
        assert path is not None, "kubectl is missing: run tools/ensure_kubectl.sh"
        self._path = path
        self._environment = {**os.environ, "HOME": str(home), "KUBECONFIG": str(server.kubeconfig)}

    def command(self, *arguments: str) -> list[str]:
        """The whole command line."""
        return [self._path, *arguments]

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs to its end, whatever that is."""
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE + 30,  # one that waits says for what, first
            env=self._environment | environment,
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> str:
        """What it prints; it must succeed."""
        done = self.run(*arguments, stdin=stdin, **environment)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts a command that goes on."""
        return subprocess.Popen(
            self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._environment
        )

    def knows(self, command: str) -> bool:
        """Whether this version has a command, such as `auth whoami`."""
        *parents, last = command.split()
        return re.search(rf"^\s+{last}\s", self(*parents, "--help"), re.MULTILINE) is not None

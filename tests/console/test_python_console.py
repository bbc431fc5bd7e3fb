"""Kubernetes' own Python client, which speaks older channel protocols over WebSockets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client, config
from kubernetes.stream import portforward, stream

from live_server import LiveServer
from patience import PATIENCE, eventually
from ports import free_port

Run = Callable[..., str]


@pytest.fixture
def api(server: LiveServer) -> Iterator[Any]:
    with config.new_client_from_config(str(server.kubeconfig)) as found:  # type: ignore[no-untyped-call]
        yield client.CoreV1Api(found)
        found.rest_client.pool_manager.clear()  # which the client leaves to the garbage


def test_exec_and_logs(api: Any, namespace: str, run: Run) -> None:
    run("echo hello; sleep 600")
    eventually(lambda: api.read_namespaced_pod_log("p", namespace) == "hello\n")
    talk = stream(
        api.connect_get_namespaced_pod_exec,
        "p",
        namespace,
        command=["/bin/sh", "-c", "read line; echo out $line; echo err >&2; exit 4"],
        stdin=True,
        stdout=True,
        stderr=True,
        tty=False,
        _preload_content=False,
    )
    talk.write_stdin("typed\n")
    talk.run_forever(timeout=PATIENCE)
    assert (talk.read_stdout(), talk.read_stderr(), talk.returncode) == ("out typed\n", "err\n", 4)
    talk.sock.shutdown()


def test_ports(api: Any, namespace: str, run: Run) -> None:
    port = free_port()
    program = (
        f"import socket; s = socket.create_server(('127.0.0.1', {port})); print('up', flush=True)\n"
        "while True: c, _ = s.accept(); c.sendall(c.recv(100).upper()); c.close()"
    )
    run(f'exec python3 -c "{program}"')
    eventually(lambda: api.read_namespaced_pod_log("p", namespace) == "up\n")
    forward = portforward(api.connect_get_namespaced_pod_portforward, "p", namespace, ports=str(port))
    connected = forward.socket(port)
    connected.setblocking(True)
    connected.sendall(b"hello")
    assert connected.recv(100) == b"HELLO"
    connected.close()
    assert forward.error(port) is None
    for thread in threading.enumerate():
        if thread.name.startswith("Kubernetes port forward"):
            thread.join(PATIENCE)
    forward.websocket.shutdown()

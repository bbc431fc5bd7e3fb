"""`kubectl logs|exec|attach|cp|port-forward` with containers that really run, through the API server."""

from __future__ import annotations

import hashlib
import http.client
import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from live_server import Kubectl
from patience import PATIENCE, eventually
from ports import free_port

Run = Callable[..., str]
SLEEP = "sleep 600"
SHOW = b'until [ "$(stty size)" = "33 77" ]; do sleep 0.05; done; tty; stty size'
"""The size of the window comes some time after the beginning."""
PROTOCOLS = ["true", "false"]
"""WebSockets, as kubectl has them since 1.31; and SPDY, as before."""


def with_protocol(protocol: str) -> dict[str, str]:
    return {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": protocol, "KUBECTL_PORT_FORWARD_WEBSOCKETS": protocol}


class TestLogs:
    """`kubectl logs`."""

    def test_what_a_container_wrote(self, kubectl: Kubectl, namespace: str, run: Run) -> None:
        run("echo out; echo err >&2; printf 'no end'", phase="Succeeded")
        assert kubectl("-n", namespace, "logs", "p") == "out\nerr\nno end"

    def test_the_last_lines_and_the_first_bytes(self, kubectl: Kubectl, namespace: str, run: Run) -> None:
        run("for n in 1 2 3 4 5; do echo line $n; done", phase="Succeeded")
        assert kubectl("-n", namespace, "logs", "p", "--tail=2") == "line 4\nline 5\n"
        assert kubectl("-n", namespace, "logs", "p", "--tail=0") == ""
        assert kubectl("-n", namespace, "logs", "p", "--limit-bytes=8") == "line 1\nl"

    def test_times_are_those_of_the_writing(self, kubectl: Kubectl, namespace: str, run: Run, tmp_path: Path) -> None:
        flag = tmp_path / "flag"
        run(f"echo early; until [ -e {flag} ]; do sleep 0.1; done; echo late; sleep 600")

        def stamped_logs() -> str:
            return kubectl("-n", namespace, "logs", "p", "--timestamps")

        # What was not noted yet is stamped with the time of the reading.
        eventually(lambda: "early" in stamped_logs() and stamped_logs() == stamped_logs())
        between = datetime.now(UTC).isoformat()
        flag.touch()
        eventually(lambda: "late" in kubectl("-n", namespace, "logs", "p"))
        stamped = stamped_logs().splitlines()
        times = {}
        for line in stamped:
            found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) (\w+)", line)
            assert found is not None, line
            times[found[2]] = found[1]
        assert times["early"] < between < times["late"]
        assert kubectl("-n", namespace, "logs", "p", "--since=1h") == "early\nlate\n"

    def test_a_log_is_followed_until_the_container_ends(
        self, kubectl: Kubectl, namespace: str, run: Run, tmp_path: Path
    ) -> None:
        flag = tmp_path / "flag"
        run(f"echo one; while [ ! -e {flag} ]; do sleep 0.1; done; echo two")
        following = kubectl.start("-n", namespace, "logs", "-f", "p")
        try:
            assert following.stdout is not None
            assert following.stdout.readline() == "one\n"
            flag.touch()
            assert following.stdout.read() == "two\n"
            assert following.wait(PATIENCE) == 0
        finally:
            following.kill()
            following.communicate()

    def test_the_attempt_before(self, kubectl: Kubectl, namespace: str, run: Run, tmp_path: Path) -> None:
        mark = tmp_path / "mark"
        script = f"if [ -e {mark} ]; then echo second; {SLEEP}; else touch {mark}; echo first; exit 1; fi"
        refused = kubectl.run("-n", namespace, "logs", run(script, spec={"restartPolicy": "Always"}), "-p")
        if refused.returncode:
            assert "previous terminated container" in refused.stderr
        eventually(lambda: kubectl("-n", namespace, "logs", "p") == "second\n")
        assert kubectl("-n", namespace, "logs", "p", "--previous") == "first\n"

    def test_one_of_several_containers(self, kubectl: Kubectl, namespace: str, run: Run) -> None:
        other = {"name": "other", "image": "none", "command": ["/bin/sh", "-c", "echo of the other"]}
        run("echo of main", phase="Succeeded", spec={"containers": [other]})
        assert kubectl("-n", namespace, "logs", "p", "-c", "other") == "of the other\n"
        assert "not valid for pod" in kubectl.run("-n", namespace, "logs", "p", "-c", "none").stderr
        whole = kubectl("-n", namespace, "logs", "p", "--all-containers", "--prefix")
        assert set(whole.splitlines()) == {"[pod/p/main] of main", "[pod/p/other] of the other"}

    def test_a_large_log_arrives_whole(self, kubectl: Kubectl, namespace: str, run: Run) -> None:
        run("seq 1 300000", phase="Succeeded")
        expected = "".join(f"{number}\n" for number in range(1, 300001))
        assert kubectl("-n", namespace, "logs", "p") == expected
        assert kubectl("-n", namespace, "logs", "p", "--tail=3") == "299998\n299999\n300000\n"


@pytest.mark.parametrize("protocol", PROTOCOLS)
class TestExec:
    """`kubectl exec` and `kubectl cp`."""

    def test_a_command_with_its_streams_and_exit_code(self, kubectl: Kubectl, sleeper: str, protocol: str) -> None:
        script = "echo out $COLOR; pwd; echo err >&2; exit 7"
        done = kubectl.run("-n", sleeper, "exec", "p", "--", "sh", "-c", script, **with_protocol(protocol))
        assert done.returncode == 7
        assert done.stdout == "out blue\n/etc\n"
        assert done.stderr.splitlines()[0] == "err"

    def test_what_is_typed_arrives_and_ends(self, kubectl: Kubectl, sleeper: str, protocol: str) -> None:
        done = kubectl(
            "-n", sleeper, "exec", "-i", "p", "--", "tr", "a-z", "A-Z", stdin="typed\n", **with_protocol(protocol)
        )
        assert done == "TYPED\n"

    def test_a_command_that_is_not_there(self, kubectl: Kubectl, sleeper: str, protocol: str) -> None:
        done = kubectl.run("-n", sleeper, "exec", "p", "--", "no-such-program", **with_protocol(protocol))
        assert done.returncode == 127
        assert "127" in done.stderr

    def test_megabytes_both_ways(self, kubectl: Kubectl, sleeper: str, protocol: str, tmp_path: Path) -> None:
        blob, there, back = tmp_path / "blob", tmp_path / "there", tmp_path / "back"
        blob.write_bytes(os.urandom(5_000_000))
        kubectl("-n", sleeper, "cp", str(blob), f"p:{there}", **with_protocol(protocol))
        assert there.read_bytes() == blob.read_bytes()
        kubectl("-n", sleeper, "cp", f"p:{blob}", str(back), **with_protocol(protocol))
        assert hashlib.sha256(back.read_bytes()).digest() == hashlib.sha256(blob.read_bytes()).digest()

    def test_a_terminal(self, kubectl: Kubectl, sleeper: str, protocol: str) -> None:
        said = in_terminal(kubectl, ["-n", sleeper, "exec", "-it", "p", "--", "sh"], b"%b; exit 5\n" % SHOW, protocol)
        assert said.code == 5
        assert "/dev/pts/" in said.text
        assert "33 77" in said.text

    def test_a_command_ends_with_its_client(self, kubectl: Kubectl, sleeper: str, protocol: str) -> None:
        mark = f"{time.monotonic_ns()}.5"
        client = subprocess.Popen(
            kubectl.command("-n", sleeper, "exec", "p", "--", "sh", "-c", f"echo up; sleep {mark}"),
            stdout=subprocess.PIPE,
            env={**kubectl._environment, **with_protocol(protocol)},
        )
        assert client.stdout is not None
        try:
            assert client.stdout.readline() == b"up\n"
            eventually(lambda: runs(f"sleep {mark}"))
        finally:
            client.kill()
            client.wait()
            client.stdout.close()
        eventually(lambda: not runs(f"sleep {mark}"))


class Said:
    """What a terminal showed, and how it ended."""

    def __init__(self, text: str, code: int) -> None:
        self.text = text
        self.code = code


def in_terminal(kubectl: Kubectl, arguments: list[str], typed: bytes, protocol: str) -> Said:
    """Runs kubectl in a terminal of 33 lines and 77 columns, and types something once it shows anything."""
    import fcntl
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    environment = {**kubectl._environment, **with_protocol(protocol), "TERM": "dumb"}
    process = subprocess.Popen(
        kubectl.command(*arguments), stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    text, sent, deadline = b"", False, time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 0.1)
        if ready:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            text += data
        if text and not sent:
            os.write(master, typed)
            sent = True
        if process.poll() is not None and not ready:
            break
    os.close(master)
    return Said(text.decode(errors="replace"), process.wait(PATIENCE))


def runs(command: str) -> bool:
    """Whether a process with this command line is there."""
    wanted = command.replace(" ", "\0").encode() + b"\0"
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                if (path / "cmdline").read_bytes() == wanted:
                    return True
            except OSError:
                continue
    return False


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_attach_shows_what_comes_and_hands_on_what_is_typed(
    kubectl: Kubectl, namespace: str, run: Run, protocol: str
) -> None:
    run('echo before; while read line; do echo got $line; [ "$line" = end ] && exit 0; done', stdin=True)
    attached = subprocess.Popen(
        kubectl.command("-n", namespace, "attach", "-i", "p"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**kubectl._environment, **with_protocol(protocol)},
        text=True,
    )
    assert attached.stderr is not None
    assert "command prompt" in attached.stderr.readline()
    said, _ = attached.communicate("hello\nend\n", timeout=PATIENCE)
    assert said.endswith("got hello\ngot end\n")
    assert "before" not in said


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", ["host", "refused"])
def test_ports_are_forwarded(kubectl: Kubectl, namespace: str, run: Run, protocol: str, kind: str) -> None:
    port = free_port()
    server = f"python3 -m http.server {port} --bind 127.0.0.1 --directory /etc" if kind == "host" else SLEEP
    run(server)
    if kind == "host":
        eventually(lambda: fetched(port, "/hostname"))
    forwarding = subprocess.Popen(
        kubectl.command("-n", namespace, "port-forward", "p", f":{port}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**kubectl._environment, **with_protocol(protocol)},
        text=True,
    )
    try:
        assert forwarding.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", forwarding.stdout.readline())
        assert found is not None
        local = int(found[1])
        if kind == "host":
            expected = Path("/etc/hostname").read_bytes()
            assert all(fetched(local, "/hostname") == expected for _ in range(5))
        else:
            assert fetched(local, "/hostname") is None
            said = eventually(lambda: (line := forwarding.stdout.readline()) and "error forwarding" in line and line)  # type: ignore[union-attr]
            assert f"error forwarding port {port}" in said
    finally:
        forwarding.kill()
        forwarding.wait()
        forwarding.stdout.close()  # type: ignore[union-attr]


def fetched(port: int, path: str) -> bytes | None:
    """What a web server answers; None if it does not."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.read() if answer.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_container_with_a_terminal_is_attached_to(kubectl: Kubectl, namespace: str, run: Run, protocol: str) -> None:
    run("exec sh", stdin=True, tty=True)
    said = in_terminal(kubectl, ["-n", namespace, "attach", "-it", "p"], b"\n%b; exit\n" % SHOW, protocol)
    assert "/dev/pts/" in said.text
    assert "33 77" in said.text
    assert "/dev/pts/" in kubectl("-n", namespace, "logs", "p")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_input_that_is_for_once_ends_with_who_typed(
    kubectl: Kubectl, namespace: str, run: Run, protocol: str
) -> None:
    run("wc -l; sleep 600", stdin=True, stdinOnce=True)
    environment = {**kubectl._environment, **with_protocol(protocol)}
    command = kubectl.command("-n", namespace, "attach", "-i", "p")
    attached = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
    )
    assert attached.stderr is not None
    assert attached.stdin is not None
    assert "command prompt" in attached.stderr.readline()
    attached.stdin.write("one\ntwo\n")
    attached.stdin.flush()
    attached.stdin.close()
    eventually(lambda: kubectl("-n", namespace, "logs", "p").strip() == "2")
    attached.kill()
    attached.wait()
    for stream in (attached.stdout, attached.stderr):
        assert stream is not None
        stream.close()

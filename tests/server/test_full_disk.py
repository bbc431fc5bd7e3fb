"""A disk that is really full: a small one, in a mount namespace of its own."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dray_process import DRAY
from live_server import LiveServer
from patience import PATIENCE

DISK = Path("/mnt")
MAPS = "/api/v1/namespaces/default/configmaps"


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[tuple[tuple[str, ...], Path]]:
    """A command that runs others where the disk is at `DISK`, and where that is seen from here."""
    mount = f"mount -t tmpfs -o size={megabytes}m none {DISK} && echo mounted && exec sleep 3600"
    holder = subprocess.Popen(["unshare", "-rm", "sh", "-c", mount], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        if holder.stdout.readline() != "mounted\n":
            pytest.skip("this system lets nobody mount anything")
        inside = ("nsenter", "-t", str(holder.pid), "-U", "-m", "--preserve-credentials")
        yield inside, Path(f"/proc/{holder.pid}/root{DISK}")
    finally:
        holder.kill()
        holder.wait(PATIENCE)
        if holder.stdout is not None:
            holder.stdout.close()


@contextlib.contextmanager
def server_on(inside: tuple[str, ...], disk: Path, log: Path) -> Iterator[LiveServer]:
    """A server on the disk, killed at the end."""
    with log.open("a") as written:
        command = [*inside, DRAY, "server", "--dir", str(DISK / "state"), "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=written, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"https://\S+", process.stdout.readline())
        assert found is not None, log.read_text()
        server = LiveServer(found[0], disk / "state")
        yield server
        server.close()
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def fill(disk: Path) -> None:
    """Leaves nothing free."""
    with contextlib.suppress(OSError), (disk / "filler").open("ab", buffering=0) as file:
        while True:
            file.write(b"x" * 65536)


def create(server: LiveServer, name: str, size: int = 100_000) -> tuple[int, str]:
    answer = server.request("POST", MAPS, {"metadata": {"name": name}, "data": {"filling": "x" * size}})
    return answer.code, answer.json.get("message", "")


def test_on_a_full_disk_deletes_work_and_a_stopped_server_starts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with small_disk(32) as (inside, disk):
        with server_on(inside, disk, log) as server:
            for name in ("a", "b", "c", "d"):
                assert create(server, name)[0] == 201
            fill(disk)
            answers = (create(server, f"new-{number}") for number in range(200))
            message = next(message for code, message in answers if code != 201)
            assert create(server, "more")[0] == 507
            assert "the disk is full" in message
            assert "deletes are taken" in message
            assert server.request("DELETE", f"{MAPS}/a").code == 200
            patch = {"metadata": {"finalizers": ["example.com/held"]}}
            assert server.request("PATCH", f"{MAPS}/b", patch, "application/merge-patch+json").code == 200
            assert server.request("DELETE", f"{MAPS}/b").code == 200
            assert "deletionTimestamp" in server.request("GET", f"{MAPS}/b").json["metadata"]
        fill(disk)
        with server_on(inside, disk, log) as server:
            assert "the disk is full" in log.read_text()
            assert server.request("GET", f"{MAPS}/a").code == 404
            assert server.request("GET", f"{MAPS}/c").code == 200
            assert server.request("DELETE", f"{MAPS}/c").code == 200
            assert create(server, "new")[0] == 507
            (disk / "filler").unlink()
            assert create(server, "new")[0] == 201
    assert "Traceback" not in log.read_text()

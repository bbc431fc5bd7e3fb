"""A full disk, a directory that cannot be written, a damaged file, a clock that jumps, a second server, a signal."""

from __future__ import annotations

import resource
import socket
import threading
import time
from pathlib import Path

import pytest

from dray.process.clock import RealClock
from dray_process import run_dray
from live_server import LiveServer
from patience import PATIENCE
from server_process import ServerProcess, server_on_thread

MAPS = "/api/v1/namespaces/default/configmaps"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def create_map(server: LiveServer, name: str, size: int = 0) -> int:
    body = {"metadata": {"name": name}, "data": {"filling": "x" * size}}
    return server.request("POST", MAPS, body).code


def test_a_full_disk_refuses_writes_serves_reads_and_heals(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    with ServerProcess(directory) as process:
        server = process.client
        assert create_map(server, "before") == 201
        size = (directory / "data.mdb").stat().st_size
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, hard))
        codes = [create_map(server, f"large-{number}", 400_000) for number in range(4)]
        assert codes[-1] == 500
        refused = server.request("POST", MAPS, {"metadata": {"name": "refused"}, "data": {"filling": "x" * 400_000}})
        assert refused.json["reason"] == "InternalError"
        assert "cannot write" in refused.json["message"]
        assert "data.mdb" in refused.json["message"]
        assert server.request("GET", f"{MAPS}/before").code == 200
        assert server.request("GET", f"{MAPS}/refused").code == 404
        assert server.request("GET", "/readyz").code == 500
        assert "store failed: cannot write" in server.request("GET", "/readyz/store").body.decode()
        assert server.request("GET", "/livez").code == 200
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert create_map(server, "after", 400_000) == 201
        assert server.request("GET", "/readyz").code == 200
        acknowledged = {f"large-{number}" for number, code in enumerate(codes) if code == 201} | {"before", "after"}
        process.kill()
    with ServerProcess(directory) as process:
        stored = {item["metadata"]["name"] for item in process.client.request("GET", MAPS).json["items"]}
    assert stored == acknowledged
    assert "Traceback" not in process.log.read_text()


@pytest.mark.parametrize("directory", ["/sys/dray", "/sys"])
def test_a_directory_that_cannot_be_written_is_named(directory: str) -> None:
    done = run_dray("server", "--dir", directory, "--port", "0")
    assert done.returncode == 2
    assert directory in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    done = run_dray("server", "--dir", tmp_path / "state", "--port", "0")
    assert done.returncode == 2
    assert f"{tmp_path / 'state'}" in done.stderr
    assert "it is not a directory" in done.stderr


@pytest.mark.parametrize("damage", ["overwritten", "truncated", "empty"])
def test_a_damaged_database_is_left_as_it_is_and_named(tmp_path: Path, damage: str) -> None:
    directory = tmp_path / "state"
    with server_on_thread(directory) as (server, _):
        for number in range(50):
            assert create_map(server, f"map-{number}", 2000) == 201
    file = directory / "data.mdb"
    data = file.read_bytes()
    broken = {
        "overwritten": data[:8192] + b"\xff" * (len(data) - 8192),
        "truncated": data[: len(data) // 2],
        "empty": b"",
    }[damage]
    file.write_bytes(broken)
    done = run_dray("server", "--dir", directory, "--port", "0")
    assert done.returncode == 2
    assert f"database {file} is damaged" in done.stderr
    assert "dray restore" in done.stderr
    assert "Traceback" not in done.stderr
    assert file.read_bytes() == broken


def test_a_second_server_on_the_directory_is_told_who_has_it(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    with ServerProcess(directory) as process:
        done = run_dray("server", "--dir", directory, "--port", "0")
        assert done.returncode == 2
        assert f"cannot use state directory {directory}: another dray (pid {process.pid}) is using it." in done.stderr
        assert process.client.request("GET", "/readyz").code == 200


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_dray("server", "--dir", tmp_path / "state", "--port", str(port))
    assert done.returncode == 2
    assert done.stderr == f"dray: port {port} is taken. Give --port, or --port 0 for a free one.\n"


class JumpingClock(RealClock):
    """The system's clock, which somebody sets."""

    jumped = 0

    def now(self) -> float:
        return time.time() + self.jumped


def test_a_clock_that_jumps_back_changes_neither_revisions_nor_uids(tmp_path: Path) -> None:
    clock = JumpingClock()
    with server_on_thread(tmp_path / "state", clock=clock) as (server, _):
        made = []
        for number, jump in enumerate((0, -400 * 86_400, 400 * 86_400, -5)):
            clock.jumped = jump
            answer = server.request("POST", MAPS, {"metadata": {"name": f"map-{number}"}})
            assert answer.code == 201, answer.body
            made.append(answer.json["metadata"])
        clock.jumped = 0
        revisions = [int(meta["resourceVersion"]) for meta in made]
        assert revisions == sorted(set(revisions))
        assert len({meta["uid"] for meta in made}) == len(made)
        assert made[1]["creationTimestamp"] < made[0]["creationTimestamp"] < made[2]["creationTimestamp"]
        listing = server.request("GET", MAPS).json
        assert int(listing["metadata"]["resourceVersion"]) >= revisions[-1]
        events = server.watch(f"{MAPS}?watch=true&resourceVersion={revisions[0]}")
        assert [next(events)["object"]["metadata"]["name"] for _ in range(3)] == ["map-1", "map-2", "map-3"]
        events.close()


@pytest.mark.req("implied-15")
def test_sigterm_ends_watches_in_good_order_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    seen: list[str] = []
    with ServerProcess(directory) as process:
        server = process.client
        assert create_map(server, "kept") == 201
        watching = threading.Event()

        def watch() -> None:
            # `watch` would raise if the stream broke off in the middle instead of coming to its end.
            for event in server.watch(f"{MAPS}?watch=true"):
                seen.append(event["object"]["metadata"]["name"])
                watching.set()

        thread = threading.Thread(target=watch)
        thread.start()
        assert watching.wait(PATIENCE)
        code = process.terminate()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert (code, seen) == (0, ["kept"])
    assert "Traceback" not in process.log.read_text()
    with server_on_thread(directory) as (again, _):
        assert again.request("GET", f"{MAPS}/kept").code == 200


@pytest.mark.req("4381-38", "4381-36")
def test_the_status_of_a_claim_is_the_systems_alone_and_survives_a_restart(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    allocation = {
        "devices": {"results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}]}
    }
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    body = {"metadata": {"name": "one"}, "spec": {"devices": {"requests": requests}}}
    with ServerProcess(directory) as process:
        made = process.client.request("POST", CLAIMS, {**body, "status": {"allocation": allocation}})
        assert made.code == 201, made.body
        assert not made.json.get("status")
        claim = {**made.json, "status": {"allocation": allocation}}
        written = process.client.request("PUT", f"{CLAIMS}/one/status", claim)
        assert written.code == 200, written.body
        process.kill()
    with ServerProcess(directory) as process:
        stored = process.client.request("GET", f"{CLAIMS}/one").json
    assert stored == written.json
    assert stored["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-0"

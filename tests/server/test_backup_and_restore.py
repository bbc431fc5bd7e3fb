"""`dray backup` of a running server, `dray restore` into a new directory, and what both refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from dray_process import run_dray
from server_process import ServerProcess, server_on_thread

MAPS = "/api/v1/namespaces/default/configmaps"


def test_a_backup_of_a_running_server_becomes_a_new_one(tmp_path: Path) -> None:
    file, restored = tmp_path / "backup.mdb", tmp_path / "restored"
    with ServerProcess(tmp_path / "state") as process:
        server = process.client
        kept = server.request("POST", MAPS, {"metadata": {"name": "kept"}, "data": {"a": "b"}}).json
        done = run_dray("backup", "--dir", tmp_path / "state", file)
        assert (done.returncode, done.stderr) == (0, "")
        assert str(file) in done.stdout
        later = server.request("POST", MAPS, {"metadata": {"name": "later"}}).json
    assert file.stat().st_mode & 0o777 == 0o600
    done = run_dray("restore", file, "--dir", restored)
    assert (done.returncode, done.stderr) == (0, "")
    with server_on_thread(restored) as (server, _):
        listing = server.request("GET", MAPS).json
        assert [item["metadata"]["name"] for item in listing["items"]] == ["kept"]
        assert server.request("GET", f"{MAPS}/kept").json == kept
        # No revision that a client has seen may ever name something else.
        assert int(listing["metadata"]["resourceVersion"]) > int(later["metadata"]["resourceVersion"])
        old = server.watch(f"{MAPS}?watch=true&resourceVersion={later['metadata']['resourceVersion']}")
        assert next(old)["object"]["reason"] == "Expired"
        old.close()


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    with server_on_thread(tmp_path / "state"):
        pass
    file = tmp_path / "backup.mdb"
    assert run_dray("backup", "--dir", tmp_path / "state", file).returncode == 0
    return file


def test_nothing_is_overwritten(tmp_path: Path, backup: Path) -> None:
    again = run_dray("backup", "--dir", tmp_path / "state", backup)
    assert again.returncode == 2
    assert again.stderr == f"dray: cannot write backup {backup}: it exists. Give another name.\n"
    into = run_dray("restore", backup, "--dir", tmp_path / "state")
    assert into.returncode == 2
    assert "it already holds a database. Move it away." in into.stderr


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    done = run_dray("backup", "--dir", tmp_path / "none", tmp_path / "backup.mdb")
    assert done.returncode == 2
    assert "there is no database in it" in done.stderr
    done = run_dray("restore", tmp_path / "none.mdb", "--dir", tmp_path / "state")
    assert done.returncode == 2
    assert "there is no such file" in done.stderr
    assert not (tmp_path / "state").exists()


def test_a_damaged_backup_is_refused_and_leaves_no_database(tmp_path: Path, backup: Path) -> None:
    backup.write_bytes(backup.read_bytes()[:5000])
    done = run_dray("restore", backup, "--dir", tmp_path / "new")
    assert done.returncode == 2
    assert "is damaged" in done.stderr
    assert not (tmp_path / "new" / "data.mdb").exists()


@pytest.mark.parametrize("content", [b"", b"no database", bytes(range(256)) * 40])
def test_what_is_no_backup_is_not_called_a_database_to_be_restored(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "junk").write_bytes(content)
    for file in (tmp_path / "junk", tmp_path):
        done = run_dray("restore", file, "--dir", tmp_path / "new")
        assert done.returncode == 2
        assert done.stderr.startswith(f"dray: cannot restore {file}: it is ")
        assert "dray restore" not in done.stderr
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "new" / "data.mdb").exists()

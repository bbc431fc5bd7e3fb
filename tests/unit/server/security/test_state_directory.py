from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dray.server.security.state_directory import MAX_FILE_BYTES, StateDirectory, StateDirectoryError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_directory_and_files_are_private(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path / "a" / "state")
    directory.write("pki/ca.key", b"secret")
    assert mode(directory.path) == 0o700
    assert mode(directory.file("pki")) == 0o700
    assert mode(directory.file("pki/ca.key")) == 0o600
    assert directory.read("pki/ca.key") == b"secret"


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    assert StateDirectory(tmp_path).read("nothing") is None


def test_an_empty_shared_directory_is_closed(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    StateDirectory(shared)
    assert mode(shared) == 0o700


def test_a_shared_directory_with_content_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "file").touch()
    shared.chmod(0o777)
    with pytest.raises(StateDirectoryError, match=rf"{shared} can be written by other users .*chmod 700"):
        StateDirectory(shared)
    assert mode(shared) == 0o777


def test_a_state_directory_that_others_can_read_is_closed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    StateDirectory(state).write("pki/ca.key", b"secret")
    state.chmod(0o755)
    StateDirectory(state)
    assert mode(state) == 0o700


def test_a_directory_that_others_read_for_something_else_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "file").touch()
    shared.chmod(0o755)
    with pytest.raises(StateDirectoryError, match=rf"{shared} can be read by other users .*chmod 700"):
        StateDirectory(shared)
    assert mode(shared) == 0o755


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(StateDirectoryError, match=rf"{tmp_path} belongs to user \d+, who could replace the keys"):
        StateDirectory(tmp_path)


def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateDirectoryError, match="it is not a directory"):
        StateDirectory(tmp_path / "file")


def test_a_key_that_others_can_read_is_closed(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path)
    directory.write("key", b"secret")
    directory.file("key").chmod(0o644)
    assert directory.read("key") == b"secret"
    assert mode(directory.file("key")) == 0o600


def test_writing_replaces_whole_files_and_leaves_nothing_behind(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path)
    directory.write("token", b"first")
    before = directory.file("token").stat().st_ino
    directory.write("token", b"second")
    assert directory.read("token") == b"second"
    assert directory.file("token").stat().st_ino != before
    assert os.listdir(tmp_path) == ["token"]


def test_equal_content_is_not_written_again(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path)
    directory.write("token", b"same")
    before = directory.file("token").stat()
    directory.write("token", b"same")
    assert directory.file("token").stat().st_ino == before.st_ino


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = StateDirectory(tmp_path)
    directory.write("token", b"old")

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(StateDirectoryError, match=r"cannot write .*token: no space left on device"):
        directory.write("token", b"new")
    assert directory.read("token") == b"old"
    assert os.listdir(tmp_path) == ["token"]


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path)
    directory.file("token").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    with pytest.raises(StateDirectoryError, match="larger than"):
        directory.read("token")


@pytest.mark.parametrize("stranger", ["pki", "pki/ca.key"])
def test_keys_that_somebody_else_put_there_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stranger: str
) -> None:
    """As when the directory was open to others, and was closed because the server said so."""
    directory = StateDirectory(tmp_path / "state")
    directory.write("pki/ca.key", b"secret")
    owners = {directory.file(name).stat().st_ino: 0 for name in ("pki", "pki/ca.key")}
    owners[directory.file(stranger).stat().st_ino] = 1000
    real, real_of_file = Path.stat, os.fstat
    monkeypatch.setattr(Path, "stat", lambda self: _owned(real(self), owners))
    monkeypatch.setattr(os, "fstat", lambda file: _owned(real_of_file(file), owners))
    with pytest.raises(StateDirectoryError, match=f"{stranger} belongs to user 1000, who may have put it there"):
        directory.read("pki/ca.key")


@pytest.mark.parametrize("name", ["data.mdb", "admin-token", "pki/ca.key"])
def test_links_that_somebody_else_put_there_are_refused_wherever_they_lead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What they lead to may be root's, and known to everybody."""
    StateDirectory(tmp_path / "state").write("pki/ca.crt", b"one")
    link = tmp_path / "state" / name
    link.symlink_to("/etc/hostname")
    owners, real = {link.lstat().st_ino: 1000}, Path.lstat
    monkeypatch.setattr(Path, "lstat", lambda self: _owned(real(self), owners))
    with pytest.raises(StateDirectoryError, match=f"{name} belongs to user 1000, who may have put it there"):
        StateDirectory(tmp_path / "state")


def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path)
    os.mkfifo(directory.file("admin-token"))
    with pytest.raises(StateDirectoryError, match="admin-token is no file of this server"):
        directory.read("admin-token")


def _owned(found: os.stat_result, owners: dict[int, int]) -> os.stat_result:
    fields = list(found)
    fields[stat.ST_UID] = owners.get(found.st_ino, found.st_uid)
    return os.stat_result(fields)

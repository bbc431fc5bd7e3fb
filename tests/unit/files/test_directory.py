"""Files below a directory: whatever somebody puts in the way, nothing else is read, written or removed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dray.files import Directory, UnsafeFile

NAMES = ["..", ".", "", "a/b", "/etc/passwd", "../precious", "a\0b", "x" * 256]


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file that nobody must reach through the directory."""
    path = tmp_path / "precious"
    path.write_text("precious")
    return path


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Directory]:
    with Directory.open(tmp_path / "root", create=0o755) as opened:
        yield opened


def place_symlink(path: Path, precious: Path) -> None:
    path.symlink_to(precious)


def place_dangling(path: Path, precious: Path) -> None:
    path.symlink_to(precious.with_name("new"))


def place_directory_link(path: Path, precious: Path) -> None:
    path.symlink_to(precious.parent)


def place_hard_link(path: Path, precious: Path) -> None:
    path.hardlink_to(precious)


def place_fifo(path: Path, _precious: Path) -> None:
    os.mkfifo(path)


def place_directory(path: Path, _precious: Path) -> None:
    path.mkdir()


TRAPS = [place_symlink, place_dangling, place_directory_link, place_hard_link, place_fifo, place_directory]
Trap = Callable[[Path, Path], None]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_name(directory: Directory, precious: Path, name: str) -> None:
    uses: list[Callable[[str], object]] = [
        directory.child,
        directory.create,
        lambda name: directory.read(name, 100),
        lambda name: directory.replace(name, b"x"),
        lambda name: directory.rename(name, "other"),
        lambda name: directory.rename("other", name),
        directory.remove,
        directory.remove_tree,
        directory.status,
    ]
    for use in uses:
        with pytest.raises(UnsafeFile):
            use(name)
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("trap", TRAPS)
def test_a_new_file_is_new(directory: Directory, precious: Path, trap: Trap) -> None:
    trap(directory.path / "0.log", precious)
    with pytest.raises(FileExistsError):
        directory.create("0.log")
    assert precious.read_text() == "precious"
    assert not precious.with_name("new").exists()


@pytest.mark.parametrize("trap", [one for one in TRAPS if one is not place_hard_link])
def test_only_regular_files_are_read_and_nobody_waits_for_a_writer(
    directory: Directory, precious: Path, trap: Trap
) -> None:
    trap(directory.path / "0.exit", precious)
    with pytest.raises(OSError, match=r"0\.exit"):
        directory.read("0.exit", 100)


@pytest.mark.parametrize("trap", [one for one in TRAPS if one is not place_directory])
def test_replacing_and_removing_concern_the_name_alone(directory: Directory, precious: Path, trap: Trap) -> None:
    trap(directory.path / "state", precious)
    directory.replace("state", b"new", 0o640)
    path = directory.path / "state"
    assert (path.read_bytes(), stat.S_IMODE(path.lstat().st_mode)) == (b"new", 0o640)
    directory.remove("state")
    trap(path, precious)
    directory.remove("state")
    assert directory.names() == []
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("trap", [place_symlink, place_dangling, place_directory_link, place_fifo])
def test_a_directory_below_is_a_directory(directory: Directory, precious: Path, trap: Trap) -> None:
    trap(directory.path / "pods", precious)
    for create in (None, 0o700):
        with pytest.raises(OSError, match="pods"):
            directory.child("pods", create=create)


def test_a_tree_is_removed_without_what_its_links_point_to(directory: Directory, precious: Path) -> None:
    below = directory.path / "pod"
    (below / "deep").mkdir(parents=True)
    for index, trap in enumerate(TRAPS):
        trap(below / "deep" / str(index), precious)
    directory.remove_tree("pod")
    place_directory_link(directory.path / "link", precious)
    directory.remove_tree("link")
    assert precious.read_text() == "precious"
    assert not below.exists()


def test_it_does_not_matter_what_the_path_becomes(directory: Directory, precious: Path) -> None:
    path = directory.path
    moved = path.rename(path.with_name("moved"))
    path.symlink_to(precious.parent)
    directory.replace("file", b"here")
    assert (moved / "file").read_bytes() == b"here"
    assert not (precious.parent / "file").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(("owner", "mode"), [(1000, 0o755), (0, 0o775), (0, 0o757), (0, 0o1777)])
def test_where_others_can_put_something_nothing_is_opened(tmp_path: Path, owner: int, mode: int) -> None:
    path = tmp_path / "shared"
    (path / "below").mkdir(parents=True)
    (path / "file").write_text("x")
    path.chmod(mode)
    os.chown(path, owner, 0)
    with pytest.raises(UnsafeFile, match=r"chmod go-w|belongs to user 1000"):
        Directory.open(path)
    with Directory.open(tmp_path) as parent, pytest.raises(UnsafeFile):
        parent.child("shared")
    if mode & stat.S_ISVTX:
        Directory.open(path / "below").close()
    else:
        with pytest.raises(UnsafeFile, match="shared"):
            Directory.open(path / "below")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(("owner", "mode"), [(1000, 0o600), (0, 0o666), (0, 0o660)])
def test_a_file_that_others_can_write_is_not_believed(directory: Directory, owner: int, mode: int) -> None:
    path = directory.path / "spec.json"
    path.write_text("{}")
    path.chmod(mode)
    os.chown(path, owner, 0)
    with pytest.raises(UnsafeFile, match=r"spec\.json"):
        directory.read("spec.json", 100)


def test_an_own_directory_is_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "root"
    path.mkdir()
    path.chmod(0o777)
    with Directory.open(path, tighten=True):
        assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_modes_are_as_asked_whatever_the_umask(directory: Directory) -> None:
    before = os.umask(0)
    try:
        os.close(directory.create("log", 0o640))
        directory.replace("state", b"")
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE((directory.path / name).stat().st_mode) for name in directory.names()}
    assert modes == {"log": 0o640, "state": 0o600}


def test_what_a_killed_process_left_is_removed(directory: Directory) -> None:
    (directory.path / ".state-0011.tmp").write_text("half")
    (directory.path / "state").write_text("whole")
    directory.remove_left()
    assert directory.names() == ["state"]

"""Spec files in directories: which device an id means, what it changes, and how files are written."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dray import cdi


def make_spec(*names: str, kind: str = "example.com/gpu", value: str = "1", common: str = "") -> cdi.Spec:
    """A spec whose devices set one variable each."""
    edits = cdi.ContainerEdits(env=(f"ALL={common}",)) if common else cdi.ContainerEdits()
    devices = tuple(
        cdi.CdiDevice(name=name, container_edits=cdi.ContainerEdits(env=(f"{name.upper()}={value}",))) for name in names
    )
    return cdi.Spec(cdi_version="0.6.0", kind=kind, devices=devices, container_edits=edits)


@pytest.fixture
def directories(tmp_path: Path) -> tuple[Path, Path]:
    """The static and the dynamic directory; neither exists yet."""
    return tmp_path / "etc", tmp_path / "run"


def test_edits_come_in_order_and_common_ones_once(directories: tuple[Path, Path]) -> None:
    first, second = directories
    cdi.write_spec(first, "gpus", make_spec("a", "b", common="yes"))
    cdi.write_spec(second, "nics", make_spec("n", kind="example.com/nic"))
    cache = cdi.Cache(directories)
    edits = cache.edits(["example.com/gpu=b", "example.com/nic=n", "example.com/gpu=a"])
    assert edits.env == ("ALL=yes", "B=1", "N=1", "A=1")
    assert cache.devices() == ("example.com/gpu=a", "example.com/gpu=b", "example.com/nic=n")
    assert cache.edits([]) == cdi.ContainerEdits()


def test_a_later_directory_wins(directories: tuple[Path, Path]) -> None:
    first, second = directories
    cdi.write_spec(first, "one", make_spec("a", value="static"))
    cdi.write_spec(second, "two", make_spec("a", value="dynamic"))
    assert cdi.Cache(directories).edits(["example.com/gpu=a"]).env == ("A=dynamic",)
    assert cdi.Cache(reversed(directories)).edits(["example.com/gpu=a"]).env == ("A=static",)


def test_a_device_that_is_defined_twice_is_unusable_and_reported(directories: tuple[Path, Path]) -> None:
    directory, later = directories
    cdi.write_spec(directory, "one", make_spec("a", "b"))
    cdi.write_spec(directory, "two", make_spec("a", "c"))
    cdi.write_spec(directory, "zzz", make_spec("a"))
    cache = cdi.Cache(directories)
    with pytest.raises(cdi.CdiError, match=r"defined twice, in .*one.json and .*two.json"):
        cache.edits(["example.com/gpu=a"])
    assert cache.edits(["example.com/gpu=b", "example.com/gpu=c"]).env == ("B=1", "C=1")
    assert "also defined in" in cache.problems[directory / "two.json"]
    cdi.write_spec(later, "override", make_spec("a", value="decided"))
    assert cache.edits(["example.com/gpu=a"]).env == ("A=decided",)


def test_changes_are_seen(directories: tuple[Path, Path]) -> None:
    directory, _ = directories
    cache = cdi.Cache(directories)
    with pytest.raises(cdi.CdiError, match="is not defined in"):
        cache.edits(["example.com/gpu=a"])
    cdi.write_spec(directory, "one", make_spec("a"))
    assert cache.edits(["example.com/gpu=a"]).env == ("A=1",)
    cdi.write_spec(directory, "one", make_spec("a", value="22"))
    assert cache.edits(["example.com/gpu=a"]).env == ("A=22",)
    cdi.remove_spec(directory, "one")
    cdi.remove_spec(directory, "one")
    with pytest.raises(cdi.CdiError, match="is not defined in"):
        cache.edits(["example.com/gpu=a"])


def test_a_broken_file_takes_away_only_its_own_devices(directories: tuple[Path, Path]) -> None:
    directory, _ = directories
    cdi.write_spec(directory, "good", make_spec("a"))
    (directory / "broken.json").write_text('{"cdiVersion": "0.6.0"')
    (directory / "readme.txt").write_text("no spec")
    (directory / ".half.json.tmp").write_text("{")
    os.mkfifo(directory / "pipe.json")
    cache = cdi.Cache(directories)
    assert cache.edits(["example.com/gpu=a"]).env == ("A=1",)
    assert set(cache.problems) == {directory / "broken.json", directory / "pipe.json"}
    with pytest.raises(cdi.CdiError, match=r"broken.json"):
        cache.edits(["example.com/gpu=z"])
    with pytest.raises(cdi.CdiError, match="not qualified"):
        cache.edits(["gpu-0"])


def test_writing_is_all_or_nothing_on_a_full_disk(directories: tuple[Path, Path], monkeypatch: Any) -> None:
    directory, _ = directories
    cdi.write_spec(directory, "one", make_spec("a"))
    real = os.fdopen

    class Full:
        """A file on a disk that has no room."""

        def __init__(self, number: int, mode: str) -> None:
            self._file = real(number, mode)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def write(self, _data: bytes) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fdopen", Full)
    for name in ("one", "two"):
        with pytest.raises(cdi.CdiError, match=rf"cannot write .*{name}.json: No space left"):
            cdi.write_spec(directory, name, make_spec("b"))
    assert [path.name for path in directory.iterdir()] == ["one.json"]
    assert cdi.Cache([directory]).edits(["example.com/gpu=a"]).env == ("A=1",)


def test_what_is_written_is_readable_by_all_and_valid(directories: tuple[Path, Path]) -> None:
    directory, _ = directories
    path = cdi.write_spec(directory, "one", make_spec("a"))
    assert path.stat().st_mode & 0o777 == 0o644
    before = path.stat()
    cdi.write_spec(directory, "one", make_spec("a"))
    assert path.stat().st_ino == before.st_ino
    with pytest.raises(cdi.CdiError, match="devices: Required"):
        cdi.write_spec(directory, "two", make_spec())
    for name in ("", "../x", "a/b", ".hidden"):
        with pytest.raises(cdi.CdiError, match="no name for a CDI spec file"):
            cdi.write_spec(directory, name, make_spec("a"))
    assert [entry.name for entry in directory.iterdir()] == ["one.json"]

"""Records of claims on disk: kept over restarts, shared by two instances, set aside when they are broken."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dray.driver import Claim, DriverError
from dray.driver.checkpoint import Checkpoint, Prepared, Record
from dray.files import Directory


def record(uid: str, *, ready: bool = True) -> Record:
    """A claim with one device."""
    devices = (Prepared(request="r", pool="p", device="d", cdi_ids=("a/b=c",)),) if ready else ()
    return Record(claim=Claim("ns", f"claim-{uid}", uid), ready=ready, devices=devices, cdi_spec=b"{}")


def test_records_survive_and_two_instances_see_the_same(tmp_path: Path) -> None:
    first, second = Checkpoint(tmp_path / "claims"), Checkpoint(tmp_path / "claims")
    first.put(record("1", ready=False))
    first.put(record("2"))
    assert second.get("1") == record("1", ready=False)
    first.put(record("1"))
    assert second.get("1") == record("1")
    assert {it.claim.uid for it in Checkpoint(tmp_path / "claims")} == {"1", "2"}
    second.remove("2")
    second.remove("2")
    assert first.get("2") is None
    assert [it.claim.uid for it in first] == ["1"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda data: data[:-3],
        lambda data: data.replace(b"claim-1", b"claim-2"),
        lambda data: data.replace(b'"version":1', b'"version":9'),
        lambda _: b'{"version":1,"checksum":0,"record":{}}',
        lambda _: b"\xff\xfe",
    ],
)
def test_a_record_that_does_not_read_back_is_set_aside(tmp_path: Path, spoil: Any) -> None:
    kept = Checkpoint(tmp_path)
    kept.put(record("1"))
    kept.put(record("2"))
    path = tmp_path / "1.json"
    path.write_bytes(spoil(path.read_bytes()))
    os.utime(path, ns=(1, 1))
    again = Checkpoint(tmp_path)
    assert [it.claim.uid for it in again] == ["2"]
    assert sorted(it.name for it in tmp_path.iterdir()) == ["1.json.corrupt", "2.json"]


def test_a_record_under_another_name_does_not_count(tmp_path: Path) -> None:
    Checkpoint(tmp_path).put(record("1"))
    (tmp_path / "1.json").rename(tmp_path / "other.json")
    assert list(Checkpoint(tmp_path)) == []


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Checkpoint(tmp_path)
    kept.put(record("1", ready=False))

    def full(directory: Directory, name: str, other: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory.path / name), None, other)

    monkeypatch.setattr(Directory, "rename", full)
    with pytest.raises(DriverError, match=r"cannot write .*1.json: No space left"):
        kept.put(record("1"))
    assert kept.get("1") == record("1", ready=False)
    assert [it.name for it in tmp_path.iterdir()] == ["1.json"]


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DriverError, match=r"cannot use .*file"):
        Checkpoint(tmp_path / "file")

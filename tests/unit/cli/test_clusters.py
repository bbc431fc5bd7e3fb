"""Clusters on directories of their own are known while they run, and not longer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dray.cli import clusters
from dray.cli.main import app
from dray.store.lock import DirectoryLock


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    return tmp_path


def listed() -> list[tuple[str, str]]:
    items = json.loads(CliRunner().invoke(app, ["ls", "-o", "json"]).stdout)["items"]
    return [(item["name"], item["directory"]) for item in items]


def test_a_cluster_on_a_directory_of_its_own_is_listed_while_it_runs(home: Path) -> None:
    there = home / "elsewhere"
    lock = DirectoryLock(there)
    with clusters.remembered(there):
        assert listed() == [("elsewhere", str(there))]
        assert "~/elsewhere  running" in CliRunner().invoke(app, ["ls"]).stdout
    assert listed() == []
    lock.release()


def test_a_note_of_a_process_that_was_killed_goes(home: Path) -> None:
    notes = home / ".local/share/dray/.elsewhere"
    notes.mkdir(parents=True)
    (notes / "0123").write_text(str(home / "gone"))
    assert listed() == []
    assert list(notes.iterdir()) == []


def test_a_cluster_in_the_usual_place_is_listed_once(home: Path) -> None:
    there = home / ".local/share/dray/mine"
    lock = DirectoryLock(there)
    (there / "kubeconfig").touch()
    with clusters.remembered(there):
        assert listed() == [("mine", str(there))]
    lock.release()


@pytest.mark.usefixtures("home")
def test_without_a_place_to_write_to_it_runs_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    with clusters.remembered(tmp_path / "state"):
        pass


def test_state_is_kept_where_the_user_keeps_data(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert clusters.directory_of("mine", None) == home / ".local/share/dray/mine"
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    assert clusters.directory_of("mine", None) == home / "data/dray/mine"
    kept = home / "data/dray/default"
    kept.mkdir(parents=True)
    (kept / "kubeconfig").write_text("")
    assert listed() == [("default", str(kept))]
    for command in (["backup", str(home / "copy")], ["node-kubeconfig", "node-1"]):
        assert str(kept) in CliRunner().invoke(app, command).stderr


def test_a_relative_place_for_data_is_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    assert clusters.place() == home / ".local/share/dray"


def test_who_named_no_cluster_is_told_of_those_that_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said that there is none, and to start one."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    assert "or start one with: dray up --detach" in CliRunner().invoke(app, ["get", "nodes"]).stderr
    locks = []
    for name, runs in (("mine", "mine runs here"), ("other", "mine, other run here")):
        locks.append(DirectoryLock(home / ".local/share/dray" / name))
        (home / ".local/share/dray" / name / "kubeconfig").touch()
        told = CliRunner().invoke(app, ["get", "nodes"])
        assert told.exit_code == 2
        assert told.stderr.endswith(f". {runs} (dray ls): export KUBECONFIG=~/.local/share/dray/mine/kubeconfig\n")
    for lock in locks:
        lock.release()

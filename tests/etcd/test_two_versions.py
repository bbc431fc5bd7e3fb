"""Servers of two versions on one etcd, as during an update.

`DRAY_OLDER=checkout` names the sources of the older version (`git worktree add`); without it the test is passed over.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dray.store.etcd.revisions import POSITIONS, marked, number, position, unmarked
from etcd_world import Etcd, new_prefix
from server_process import ServerProcess

OLDER = os.environ.get("DRAY_OLDER", "")
MAPS = "/api/v1/namespaces/default/configmaps"


def test_what_a_version_writes_is_kept_as_it_was_by_the_next() -> None:
    """The form of what is in etcd is a promise to the servers beside: who changes it must read the old one, too."""
    assert POSITIONS == 128
    assert number(5, 3) == 643
    value = marked(b'{"kind":"Pod"}', b"abc-7", 3)
    assert value == b'{"kind":"Pod"}\nabc-7.3'
    assert (position(value), unmarked(value)) == (3, b'{"kind":"Pod"}')


@pytest.mark.skipif(not OLDER, reason="DRAY_OLDER names no checkout")
@pytest.mark.timeout(600)
def test_two_versions_side_by_side(etcd: Etcd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sees what the other writes, in lists and watches, and is replaced by the next version under load."""
    options = ("--store", f"etcd={','.join(etcd.urls)}", "--etcd-prefix", new_prefix())
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(OLDER) / "src"))
        where = subprocess.run(
            [sys.executable, "-c", "import dray; print(dray.__file__)"], capture_output=True, text=True, check=True
        )
        assert where.stdout.startswith(OLDER), "the older version is not the one that is started"
        old = ServerProcess(tmp_path / "old", *options)
    try:
        new = ServerProcess(tmp_path / "new", *options)
        try:
            for number in range(30):
                writer, reader = (old, new) if number % 2 else (new, old)
                path = f"{MAPS}/m{number}"
                assert writer.client.request("POST", MAPS, {"metadata": {"name": f"m{number}"}}).code == 201
                assert reader.client.request("GET", path).code == 200
                patch_ = {"data": {"n": str(number)}}
                assert reader.client.request("PATCH", path, patch_, "application/merge-patch+json").code == 200
                assert writer.client.request("GET", path).json["data"] == {"n": str(number)}
            shown = [server.client.request("GET", MAPS).json["items"] for server in (old, new)]
            assert shown[0] == shown[1]
            assert old.terminate() == 0
            assert new.client.request("GET", MAPS).json["items"] == shown[0]
        finally:
            new.kill()
    finally:
        if old._process.poll() is None:
            old.kill()

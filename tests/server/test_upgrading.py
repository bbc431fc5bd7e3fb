"""State of released versions is opened for ever after: every file in `tests/fixtures` is a backup of one.

Each is of a `dray up --nodes 1` with a Deployment that holds two GPUs, a budget, a rule and a patch. They have no keys
in them, and are never made anew: a new format gets a file of its own beside those of the formats before it.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dray.store import restore
from dray_process import run_dray
from server_process import server_on_thread

STATES = sorted((Path(__file__).parents[1] / "fixtures").glob("state-*.backup.gz"))
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"


@pytest.mark.parametrize("state", STATES, ids=lambda path: path.name)
def test_the_state_of_a_released_version_is_opened_read_and_written(state: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    backup.write_bytes(gzip.decompress(state.read_bytes()))
    restore(backup, tmp_path / "state")
    with server_on_thread(tmp_path / "state") as (client, _):
        claims = client.request("GET", CLAIMS).json["items"]
        held = [one["status"]["allocation"]["devices"]["results"][0]["device"] for one in claims]
        assert len(set(held)) == 2
        (rule,) = client.request("GET", RULES).json["items"]
        assert rule["spec"]["taint"]["key"] == "example.com/worn"
        assert (
            client.request("GET", "/apis/apps/v1/namespaces/ml/deployments/trainer").json["status"]["readyReplicas"]
            == 2
        )
        assert client.request("GET", "/apis/resource.k8s.io/v1/resourceslices").json["items"][0]["spec"]["devices"]
        made = client.request("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})
        assert made.code == 201, made.body
        assert int(made.json["metadata"]["resourceVersion"]) > int(rule["metadata"]["resourceVersion"])


def test_a_format_that_is_not_known_is_refused_and_left_alone(tmp_path: Path) -> None:
    import lmdb

    backup = tmp_path / "backup"
    backup.write_bytes(gzip.decompress(STATES[0].read_bytes()))
    restore(backup, tmp_path / "state")
    file = tmp_path / "state" / "data.mdb"
    with lmdb.open(str(file), subdir=False, lock=False, max_dbs=2, map_size=1 << 24) as environment:
        meta = environment.open_db(b"meta")
        with environment.begin(write=True) as transaction:
            transaction.put(b"format", (99).to_bytes(8, "big"), db=meta)
    before = file.read_bytes()
    done = run_dray("server", "--dir", tmp_path / "state", "--port", "0")
    assert done.returncode == 2
    assert "its format is 99, this dray reads format 1" in done.stderr
    assert file.read_bytes() == before

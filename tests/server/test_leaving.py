"""A server that is going to end says so, and serves whoever comes until it is gone."""

from __future__ import annotations

from pathlib import Path

from server_process import server_on_thread

MAPS = "/api/v1/namespaces/default/configmaps"


def test_who_leaves_is_not_ready_and_answers_all_the_same(tmp_path: Path) -> None:
    with server_on_thread(tmp_path) as (client, instance):
        assert client.request("GET", "/readyz").headers["Connection"] is None
        instance.leave()
        assert client.request("GET", "/readyz").code == 500
        for name in ("a", "b"):  # over a connection of its own each
            made = client.request("POST", MAPS, {"metadata": {"name": name}})
            assert (made.code, made.headers["Connection"]) == (201, "close")

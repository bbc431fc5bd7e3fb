"""Members of etcd are killed and stopped, connections cut, while servers write and watch: nothing is lost.

`python -m soak.days --kind etcd` goes through many such histories, also with members that do not hear each other.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import etcd_histories
from etcd_world import Etcd


@pytest.mark.parametrize("seed", range(2))
async def test_answers_that_get_lost(etcd: Etcd, seed: int) -> None:
    await etcd_histories.lost_answers(etcd.urls, seed)


async def test_the_way_of_one_server_to_etcd_is_closed(etcd: Etcd) -> None:
    await etcd_histories.closed_way(etcd.urls, 0)


async def test_each_member_is_lost_in_turn(tmp_path: Path) -> None:
    await etcd_histories.lost_members(tmp_path, 0)


async def test_a_member_is_slow(tmp_path: Path) -> None:
    await etcd_histories.slow_member(tmp_path, 0)

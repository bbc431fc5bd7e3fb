"""What clients say that the version of a body is fills no memory."""

from __future__ import annotations

import pytest

from dray.server.protobuf import tables


def test_versions_that_clients_make_up_are_not_kept() -> None:
    names = {tables.name_of(f"v{number}.example.com/v1", "DeleteOptions") for number in range(3000)}
    assert names == {"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"}
    assert tables._name_of.cache_info().currsize <= 1024


def test_a_version_that_no_group_can_have_is_refused_and_told_shortly() -> None:
    longest = f"{'g' * 253}/{'v' * 63}"
    assert tables.name_of(longest, "Status")
    with pytest.raises(tables.UnknownMessage) as refused:
        tables.name_of(longest + "x" * 1_000_000, "DeleteOptions")
    assert len(str(refused.value)) < 1000
